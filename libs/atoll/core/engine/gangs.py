"""Chooses nodes for a gang, or none.

A gang is placed whole: the statement is rolled back to where it began as soon
as one task group cannot have its least count.
"""

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, permutations, product

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.domains import Ladder, Rows, feasible, fewest, ladder
from atoll.core.engine.pack_kernels import pack
from atoll.core.engine.rooms import Rooms
from atoll.core.engine.score_kernels import Scoring
from atoll.core.model.plan import GangRequest, GroupRequest
from atoll.core.model.spec import Topology
from atoll.core.state.columns import SHAPE_BLOCKS, SHAPE_CPU, SHAPE_MEMORY, SHAPE_SHARES
from atoll.core.state.snapshot import ClassView, Snapshot
from atoll.core.state.statement import Statement

MOST_COMBINATIONS = 64
"""Choices of alternatives over the groups of one gang that are tried."""
MOST_ORDERS = 6
"""Orders of the groups that are tried on one domain."""
UNLIMITED = 1 << 60

Masks = Mapping[int, NDArray[np.bool_]]


class Outcome(enum.Enum):
    """What became of a try."""

    PLACED = enum.auto()
    NO_PLACE = enum.auto()
    AT_LIMIT = enum.auto()


@dataclass(frozen=True, slots=True)
class GangPlacer:
    """Places gangs by a statement."""

    snapshot: Snapshot
    statement: Statement
    scoring: Scoring
    gathers: bool
    rooms: Rooms
    _ladders: dict[Topology | None, Ladder] = field(default_factory=dict)

    def place(self, view: ClassView, masks: Masks, *, job: int, units_left: int) -> Outcome:
        """Place candidate `job` of a class. `masks`: by shape, where it may go at all.

        The operations since the caller's checkpoint are the gang's, or there are none; those
        before it must not be rolled back any more.
        """
        levels = self._ladder(view.request.topology)
        best = Outcome.NO_PLACE
        for choice in islice(product(*view.shapes), MOST_COMBINATIONS):
            for rows in self._candidates(view.request, choice, masks=masks, levels=levels):
                outcome = self._try(view.request, choice, rows, job=job, units_left=units_left)
                if outcome is Outcome.PLACED:
                    return outcome
                if outcome is Outcome.AT_LIMIT:
                    # Another domain would be charged the same; another alternative may not be.
                    best = outcome
                    break
        return best

    def _ladder(self, topology: Topology | None) -> Ladder:
        if topology not in self._ladders:
            self._ladders[topology] = ladder(self.snapshot, topology, gathers=self.gathers)
        return self._ladders[topology]

    def _candidates(
        self,
        request: GangRequest,
        choice: Sequence[int],
        *,
        masks: Masks,
        levels: Ladder,
    ) -> Iterator[Rows]:
        groups = request.groups
        rooms = np.stack([
            self.rooms.get(shape, masks[shape], most=group.count)
            for shape, group in zip(choice, groups, strict=True)
        ])
        need = [group.count for group in groups]
        for step, finer in zip(levels.steps, levels.finer, strict=True):
            for rows in feasible(step, rooms, need):
                alone = len(groups) == 1 and self.gathers
                yield fewest(finer, rows, rooms[0], need=need[0]) if alone else rows
        if levels.steps and any(group.min_count < group.count for group in groups):
            least = [group.min_count for group in groups]
            yield from feasible(levels.steps[-1], rooms, least, widest=True)

    def _try(
        self,
        request: GangRequest,
        choice: Sequence[int],
        rows: Rows,
        *,
        job: int,
        units_left: int,
    ) -> Outcome:
        mark = self.statement.checkpoint()
        for order in islice(self._orders(choice), MOST_ORDERS):
            outcome = self._pack(request.groups, choice, rows, order=order, units_left=units_left)
            if outcome is Outcome.PLACED:
                self.statement.journal.job[mark : self.statement.checkpoint()] = job
                return outcome
            self.statement.rollback(mark)
            if outcome is Outcome.AT_LIMIT:
                return outcome
        return Outcome.NO_PLACE

    def _orders(self, choice: Sequence[int]) -> Iterator[tuple[int, ...]]:
        # The largest tasks first: small ones find a place in what those leave.
        shapes = self.scoring.shapes
        largest = sorted(
            range(len(choice)),
            key=lambda g: (
                -int(shapes[choice[g], SHAPE_SHARES])
                * max(1, int(shapes[choice[g], SHAPE_BLOCKS])),
                -int(shapes[choice[g], SHAPE_CPU]),
                -int(shapes[choice[g], SHAPE_MEMORY]),
                g,
            ),
        )
        return permutations(largest)

    def _pack(
        self,
        groups: Sequence[GroupRequest],
        choice: Sequence[int],
        rows: Rows,
        *,
        order: Sequence[int],
        units_left: int,
    ) -> Outcome:
        for group in order:
            least = groups[group].min_count
            placed, units = self._pack_group(
                group, choice[group], rows, count=least, units_left=units_left
            )
            if placed < least:
                return Outcome.AT_LIMIT if units > units_left else Outcome.NO_PLACE
            units_left -= units
        for group in order:
            more = groups[group].count - groups[group].min_count
            if more:
                placed, units = self._pack_group(
                    group, choice[group], rows, count=more, units_left=units_left
                )
                if placed < more and units > units_left:
                    break
                units_left -= units
        return Outcome.PLACED

    def _pack_group(
        self, group: int, shape: int, rows: Rows, *, count: int, units_left: int
    ) -> tuple[int, int]:
        statement = self.statement
        statement.reserve(count, int(statement.shapes[shape, SHAPE_SHARES]))
        mark = statement.checkpoint()
        placed, units = pack(
            statement.nodes, self.scoring, statement.journal, rows, shape, count, units_left
        )
        statement.journal.group[mark : mark + placed] = group
        return placed, units


def gang_placer(
    snapshot: Snapshot, statement: Statement, scoring: Scoring, *, gathers: bool
) -> GangPlacer:
    """A placer that knows nothing yet."""
    return GangPlacer(snapshot, statement, scoring, gathers, Rooms(statement, scoring))
