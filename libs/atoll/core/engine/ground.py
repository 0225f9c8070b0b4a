"""Part of the nodes, on which a gang is tried with some victims gone.

The gang placer itself decides whether the gang fits then, on nodes, devices and
domains as they are: sums of what would come free prove nothing.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.gangs import Masks as ByShape
from atoll.core.engine.gangs import Outcome, gang_placer
from atoll.core.engine.placements import Assembler
from atoll.core.engine.score_kernels import Scoring
from atoll.core.model.plan import GangPlacement
from atoll.core.state.columns import Nodes, scratch_copy
from atoll.core.state.ledger_kernels import Uses, give_gangs
from atoll.core.state.ragged import offsets, spans
from atoll.core.state.snapshot import ClassView, Snapshot
from atoll.core.state.statement import Statement

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
ELSEWHERE = -1


@dataclass(frozen=True, slots=True)
class Ask:
    """The job that wants a place."""

    view: ClassView
    job: int
    """Its index in the snapshot's queue."""
    masks: ByShape
    """By shape: (N) where it may go at all."""
    gathers: bool


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """Some rows of a snapshot, and what each of V runs uses on them."""

    snapshot: Snapshot
    """Of these rows alone."""
    scoring: Scoring
    ask: Ask
    uses: Uses
    """One gang per run: its tasks on these rows."""

    def without(self, gone: Bools, units_left: int) -> Statement | None:
        """The statement in which the gang is placed once some of the runs are gone, or None."""
        nodes = scratch_copy(self.snapshot.nodes)
        give_gangs(nodes, self.uses, np.flatnonzero(gone))
        statement = Statement(nodes, self.snapshot.hardware, self.snapshot.shapes)
        placer = gang_placer(self.snapshot, statement, self.scoring, gathers=self.ask.gathers)
        ask = self.ask
        outcome = placer.place(ask.view, ask.masks, job=ask.job, units_left=units_left)
        return statement if outcome is Outcome.PLACED else None

    def placement(self, statement: Statement) -> GangPlacement:
        """What the statement holds for the job."""
        return Assembler(self.snapshot, statement).placements()[0]


def ground(
    snapshot: Snapshot, scoring: Scoring, ask: Ask, *, rows: Ints, uses: Uses
) -> tuple[Ground, Ints]:
    """Rows of a snapshot as a ground, and which of the runs in `uses` have tasks there."""
    place = np.full(len(snapshot.nodes.id), ELSEWHERE, np.int64)
    place[rows] = np.arange(len(rows))
    kept, here = _clip(uses, place)
    part = replace(
        snapshot,
        nodes=Nodes._make(column[rows] for column in snapshot.nodes),
        names=[snapshot.names[row] for row in rows.tolist()],
    )
    masks = {shape: mask[rows] for shape, mask in ask.masks.items()}
    return Ground(part, scoring, replace(ask, masks=masks), kept), here


def _clip(uses: Uses, place: Ints) -> tuple[Uses, Ints]:
    rows = place[uses.row]
    tasks = np.flatnonzero(rows != ELSEWHERE)
    of = np.repeat(np.arange(len(uses.first_task) - 1), np.diff(uses.first_task))[tasks]
    here, counts = np.unique(of, return_counts=True)
    grants = spans(uses.first_grant, tasks)
    kept = Uses(
        first_task=offsets(counts),
        row=rows[tasks],
        cpu=uses.cpu[tasks],
        memory=uses.memory[tasks],
        first_grant=offsets(np.diff(uses.first_grant)[tasks]),
        device=uses.device[grants],
        blocks=uses.blocks[grants],
        bits=uses.bits[grants],
    )
    return kept, here
