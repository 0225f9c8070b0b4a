"""Chooses nodes for a gang, or none.

A gang is placed whole: the statement is rolled back to where it began as soon
as one task group cannot have its least count. Groups are packed one after
another; a small gang for which that finds no way is searched for one.
"""

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, permutations, product

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.domains import Ladder, Rows, feasible, fewest, ladder
from atoll.core.engine.pack_kernels import Bound, pack, search
from atoll.core.engine.rooms import Rooms
from atoll.core.engine.score_kernels import Scoring
from atoll.core.model.plan import GroupRequest
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.core.model.spec import NODE_LEVEL, Topology
from atoll.core.state.apart import domain_keys_of
from atoll.core.state.columns import SHAPE_BLOCKS, SHAPE_CPU, SHAPE_MEMORY, SHAPE_SHARES
from atoll.core.state.snapshot import ClassView, Snapshot
from atoll.core.state.statement import Statement

MOST_COMBINATIONS = 64
"""Choices of alternatives over the groups of one gang that are tried."""
MOST_ORDERS = 6
"""Orders of the groups that are tried on one domain."""
UNLIMITED = 1 << 60

MOST_SEARCHES = 4
"""Domains that are searched through when packing found nothing."""
MOST_SEARCHED_TASKS = 16
MOST_TRIES = 5_000
"""Tasks tried on a node in one search."""

Masks = Mapping[int, NDArray[np.bool_]]


class Outcome(enum.Enum):
    """What became of a try."""

    PLACED = enum.auto()
    NO_PLACE = enum.auto()
    AT_LIMIT = enum.auto()


@dataclass(frozen=True, slots=True)
class _Ask:
    """One choice of alternatives for a gang."""

    groups: Sequence[GroupRequest]
    shapes: Sequence[int]
    """By group: the row of the alternative in the shape table."""
    allowed: Sequence[NDArray[np.bool_]]
    """By group: (N) where it may go at all."""
    units_left: int
    mark: int
    """Operations of the statement before those of the gang."""


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
        mark = self.statement.checkpoint()
        best = Outcome.NO_PLACE
        for shapes in islice(product(*view.shapes), MOST_COMBINATIONS):
            allowed = [masks[shape] for shape in shapes]
            ask = _Ask(view.request.groups, shapes, allowed, units_left, mark)
            outcome = self._place(ask, view.request.topology)
            if outcome is Outcome.PLACED:
                self.statement.journal.job[mark : self.statement.checkpoint()] = job
                return outcome
            best = outcome if outcome is Outcome.AT_LIMIT else best
        return best

    def _place(self, ask: _Ask, topology: Topology | None) -> Outcome:
        searches = MOST_SEARCHES if len(ask.groups) > 1 else 0
        for rows in self._candidates(ask, topology):
            outcome = self._pack(ask, rows)
            if outcome is Outcome.NO_PLACE and searches > 0:
                searches -= 1
                outcome = self._search(ask, rows)
            # Another domain would be charged the same; another alternative may not be.
            if outcome is not Outcome.NO_PLACE:
                return outcome
        return Outcome.NO_PLACE

    def _candidates(self, ask: _Ask, topology: Topology | None) -> Iterator[Rows]:
        if topology not in self._ladders:
            self._ladders[topology] = ladder(self.snapshot, topology, gathers=self.gathers)
        levels, groups = self._ladders[topology], ask.groups
        rooms = np.stack([
            self.rooms.get(shape, mask, most=most_on_a_node(group))
            for shape, mask, group in zip(ask.shapes, ask.allowed, groups, strict=True)
        ])
        need = [group.count for group in groups]
        for step, finer in zip(levels.steps, levels.finer, strict=True):
            for rows in feasible(step, rooms, need):
                # Whose tasks are to be spread are not gathered.
                alone = len(groups) == 1 and self.gathers and groups[0].spread is None
                yield fewest(finer, rows, rooms[0], need=need[0]) if alone else rows
        if levels.steps and any(group.min_count < group.count for group in groups):
            least = [group.min_count for group in groups]
            yield from feasible(levels.steps[-1], rooms, least, widest=True)

    def _pack(self, ask: _Ask, rows: Rows) -> Outcome:
        mark = self.statement.checkpoint()
        for order in islice(self._orders(ask.shapes), MOST_ORDERS):
            outcome = self._pack_least(ask, rows, order)
            if outcome is Outcome.PLACED:
                self._pack_more(ask, rows, mark=mark)
                return outcome
            self.statement.rollback(mark)
            if outcome is Outcome.AT_LIMIT:
                return outcome
        return Outcome.NO_PLACE

    def _orders(self, shapes: Sequence[int]) -> Iterator[tuple[int, ...]]:
        # The largest tasks first: small ones find a place in what those leave.
        return permutations(sorted(range(len(shapes)), key=lambda g: self._size(shapes[g])))

    def _size(self, shape: int) -> tuple[int, int, int]:
        row = self.scoring.shapes[shape]
        blocks = min(BLOCKS_PER_DEVICE, int(row[SHAPE_BLOCKS]))
        return -int(row[SHAPE_SHARES]) * blocks, -int(row[SHAPE_CPU]), -int(row[SHAPE_MEMORY])

    def _pack_least(self, ask: _Ask, rows: Rows, order: Sequence[int]) -> Outcome:
        left = ask.units_left
        for group in order:
            least = ask.groups[group].min_count
            placed, units = self._pack_group(ask, group, rows, count=least, left=left)
            if placed < least:
                return Outcome.AT_LIMIT if units > left else Outcome.NO_PLACE
            left -= units
        return Outcome.PLACED

    def _pack_more(self, ask: _Ask, rows: Rows, *, mark: int) -> None:
        left = ask.units_left - self._charged(mark)
        for group, request in enumerate(ask.groups):
            more = request.count - request.min_count
            placed, units = self._pack_group(ask, group, rows, count=more, left=left)
            if placed < more and units > left:
                return
            left -= units

    def _pack_group(
        self, ask: _Ask, group: int, rows: Rows, *, count: int, left: int
    ) -> tuple[int, int]:
        statement, shape = self.statement, ask.shapes[group]
        statement.reserve(count, int(statement.shapes[shape, SHAPE_SHARES]))
        mark = statement.checkpoint()
        mine = rows[ask.allowed[group][rows]]
        placed, units = pack(
            statement.nodes,
            self.scoring,
            statement.journal,
            mine,
            self._bound(ask, group, mine),
            shape,
            count,
            left,
        )
        statement.journal.group[mark : mark + placed] = group
        return placed, units

    def _bound(self, ask: _Ask, group: int, rows: Rows) -> Bound:
        spread = ask.groups[group].spread
        if spread is None:
            return Bound(np.zeros(len(rows), np.int64), np.zeros(1, np.int64), UNLIMITED)
        column = self.snapshot.level_column(spread.level)
        mine = self._rows_of(ask, group)
        both = domain_keys_of(self.snapshot.nodes, column, np.concatenate([rows, mine]))
        numbers, domain = np.unique(both, return_inverse=True)
        used = np.bincount(domain[len(rows) :], minlength=len(numbers) + 1).astype(np.int64)
        return Bound(domain[: len(rows)].astype(np.int64), used, spread.most)

    def _rows_of(self, ask: _Ask, group: int) -> Rows:
        placed = slice(ask.mark, self.statement.checkpoint())
        here = self.statement.journal.group[placed] == group
        rows: Rows = self.statement.journal.uses.row[placed][here]
        return rows

    def _search(self, ask: _Ask, rows: Rows) -> Outcome:
        if any(group.spread is not None for group in ask.groups):
            return Outcome.NO_PLACE
        order = sorted(range(len(ask.groups)), key=lambda g: self._size(ask.shapes[g]))
        tasks = [group for group in order for _ in range(ask.groups[group].min_count)]
        if len(tasks) > MOST_SEARCHED_TASKS:
            return Outcome.NO_PLACE
        statement = self.statement
        statement.reserve(len(tasks), int(statement.shapes[ask.shapes, SHAPE_SHARES].max()))
        mark = statement.checkpoint()
        found = search(
            statement.nodes,
            self.scoring,
            statement.journal,
            rows,
            np.stack([mask[rows] for mask in ask.allowed]),
            np.array(ask.shapes, np.int64),
            np.array(tasks, np.int64),
            MOST_TRIES,
        )
        if not found:
            return Outcome.NO_PLACE
        statement.journal.group[mark : mark + len(tasks)] = tasks
        if self._charged(mark) > ask.units_left:
            statement.rollback(mark)
            return Outcome.AT_LIMIT
        self._pack_more(ask, rows, mark=mark)
        return Outcome.PLACED

    def _charged(self, mark: int) -> int:
        return int(self.statement.journal.units[mark : self.statement.checkpoint()].sum())


def most_on_a_node(group: GroupRequest) -> int:
    """How many tasks of a group one node may have."""
    spread = group.spread
    if spread is None or spread.level != NODE_LEVEL:
        return group.count
    return min(spread.most, group.count)


def gang_placer(
    snapshot: Snapshot, statement: Statement, scoring: Scoring, *, gathers: bool
) -> GangPlacer:
    """A placer that knows nothing yet."""
    return GangPlacer(snapshot, statement, scoring, gathers, Rooms(statement, scoring))
