"""What holds capacity now and when it ends at the latest: runs, and what a cycle has placed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.rights import Rights
from atoll.core.state.ledger_kernels import Uses
from atoll.core.state.limits import ALL_KINDS
from atoll.core.state.ragged import offsets
from atoll.core.state.run_columns import uses_of
from atoll.core.state.shares import DEVICES
from atoll.core.state.snapshot import Snapshot
from atoll.core.state.statement import Statement

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
SOON_S = 1.0
"""What should have ended already is taken to end so much after now."""


@dataclass(frozen=True, slots=True, eq=False)
class Loads:
    """L loads: what they use, when they end, and what they count against the limits."""

    uses: Uses
    """One gang per load."""
    ends: Floats
    """(L) infinity for those without a time limit."""
    quota: Ints
    """(L, limits) in 1/56 block."""


def loads_of(snapshot: Snapshot, statement: Statement, *, now: float) -> Loads:
    """Runs of a snapshot and the placements of a statement over it."""
    running = snapshot.running
    slots = running.slots()
    ends = running.runs.ends_at[slots]
    told = running.stopping[slots]
    ends = np.where(told, np.minimum(ends, now + running.runs.grace_s[slots]), ends)
    placed = _placed(snapshot, statement, now=now)
    return _joined([
        Loads(
            uses_of(running.tasks, slots, snapshot.nodes),
            np.maximum(ends, now + SOON_S),
            _quota(snapshot, slots, now=now),
        ),
        placed,
    ])


def with_load(loads: Loads, uses: Uses, end: float) -> Loads:
    """One load more, which counts against no limit."""
    quota = np.zeros((1, loads.quota.shape[1]), np.int64)
    return _joined([loads, Loads(uses, np.array([end]), quota)])


def _placed(snapshot: Snapshot, statement: Statement, *, now: float) -> Loads:
    journal, size, queue = statement.journal, statement.checkpoint(), snapshot.queue
    jobs = journal.job[:size]
    starts = np.flatnonzero(np.diff(jobs, prepend=-1))
    group = np.searchsorted(queue.first, jobs[starts], side="right") - 1
    limits = np.array([v.request.terms.time_limit_s or np.inf for v in queue.classes], np.float64)
    shares = int(journal.uses.first_grant[size])
    uses = Uses(
        first_task=np.append(starts, size),
        row=journal.uses.row[:size],
        cpu=journal.uses.cpu[:size],
        memory=journal.uses.memory[:size],
        first_grant=journal.uses.first_grant[: size + 1],
        device=journal.uses.device[:shares],
        blocks=journal.uses.blocks[:shares],
        bits=journal.uses.bits[:shares],
    )
    # What it would give back of the limits is left out: it ends later than runs, mostly.
    quota = np.zeros((len(starts), len(snapshot.limits.limit)), np.int64)
    return Loads(uses, now + limits[group], quota)


def _quota(snapshot: Snapshot, slots: Ints, *, now: float) -> Ints:
    limits = snapshot.limits
    quota = np.zeros((len(slots), len(limits.limit)), np.int64)
    if not quota.size:
        return quota
    rights = Rights(snapshot, snapshot.shares.held[:, DEVICES:], now=now)
    for number, queue in enumerate(limits.queues):
        kind = int(limits.kind[number])
        units = rights.units[slots]
        mine = units.sum(axis=1) if kind == ALL_KINDS else units[:, kind]
        quota[:, number] = np.where(rights.below(queue, slots), mine, 0)
    return quota


def _joined(parts: Sequence[Loads]) -> Loads:
    each = [part.uses for part in parts]
    return Loads(
        Uses(
            first_task=offsets(np.concatenate([np.diff(u.first_task) for u in each])),
            row=np.concatenate([u.row for u in each]),
            cpu=np.concatenate([u.cpu for u in each]),
            memory=np.concatenate([u.memory for u in each]),
            first_grant=offsets(np.concatenate([np.diff(u.first_grant) for u in each])),
            device=np.concatenate([u.device for u in each]),
            blocks=np.concatenate([u.blocks for u in each]),
            bits=np.concatenate([u.bits for u in each]),
        ),
        np.concatenate([part.ends for part in parts]),
        np.concatenate([part.quota for part in parts]),
    )
