"""What is kept from one cycle to the next, so that only what changed is scored anew.

A memo changes no plan, only how long it takes: rows are compared with what the
board was built from, and filters with what they said then.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.board import COLUMNS, LANES, Arrays, Wanted
from atoll.core.engine.board_kernels import Board, count_lanes, learn_all, touch_all
from atoll.core.engine.score_kernels import Rules, Scoring
from atoll.core.engine.slots import NEVER, Slots
from atoll.core.engine.tree_kernels import ARMS, changed_rows, climb_all, play_columns
from atoll.core.model.resources import BLOCKS_PER_DEVICE, TaskShape
from atoll.core.policies.interfaces import Term
from atoll.core.state.columns import (
    FORM_NONE,
    FORM_WHOLE,
    FREE_COLUMNS,
    SHAPE_FORM,
    SHAPE_MEMORY,
    SHAPE_SHARES,
    Nodes,
    Shapes,
    empty_nodes,
    scratch_copy,
)
from atoll.core.state.snapshot import Snapshot

MOST_BYTES: Final = 1 << 28
"""Of columns that no class asks for at the moment."""
MOST_LANES: Final = 64
"""Of gangs, unless more are asked for."""
OVERSIZED_CYCLES: Final = 64
"""So long may most columns be of no use before all are dropped."""

UNBOUNDED_TASKS: Final = 1 << 20

_Column = tuple[TaskShape, int]
_Lane = tuple[_Column, int]
_Ints = NDArray[np.int64]


class WantedLane(NamedTuple):
    """A gang that a cycle may place."""

    column: int
    """Place in the list of wanted columns."""
    most: int
    """Tasks."""


class Ready(NamedTuple):
    """A board that is true of the nodes, and where in it is what was asked for."""

    board: Board
    columns: list[int]
    lanes: list[int]
    gathers: bool
    """Whether the board knows domains: without them its lanes are of no use."""


class Memo:
    """The board of earlier cycles. One cycle at a time may use it."""

    def __init__(self) -> None:
        self._world: object = None
        self._nodes: Nodes | None = None
        """As the board knows them; None while a cycle goes on."""
        self._rules: Rules | None = None
        self._gathers = False
        self._clock = 0
        self._rows: list[_Ints] = []
        """Nodes that are not what the board knows."""
        self._forget(0, 1)

    def ready(
        self,
        snapshot: Snapshot,
        nodes: Nodes,
        scoring: Scoring,
        *,
        columns: Sequence[Wanted],
        lanes: Sequence[WantedLane],
        gathers: bool,
    ) -> Ready:
        """A board that is true of `nodes`, for these columns and gangs.

        `gathers`: whether gangs stay together and domains whole. `keep` has to follow, or
        the next cycle begins with nothing.
        """
        self._clock += 1
        self._see(snapshot, nodes, scoring.rules, gathers=gathers)
        numbers, places = self._assign(columns, lanes)
        self._rows.append(self._arrays.point(numbers, columns))
        most = _most_memory(scoring.shapes, nodes.model.shape[1], columns=columns, lanes=lanes)
        states, grew = self._arrays.activate(_ascending(numbers), _ascending(places), memory=most)
        if grew:
            # Nodes that were alike until now are so no more.
            self._rows.append(np.arange(len(nodes.id)))
        learn_all(scoring, self._arrays.board(), states)
        self._catch_up(nodes, scoring)
        return Ready(self._arrays.board(), numbers, places, self._arrays.has_domains)

    def keep(self, nodes: Nodes, ready: Ready, rows: _Ints) -> None:
        """All is placed: the nodes as the board knows them, and all rows that were touched.

        What is done to `nodes` from now on is not seen.
        """
        self._nodes = _copied(nodes, self._known, rows)
        played = ready.board.trees.played
        self._played_at[played] = self._clock
        played[:] = False
        self._columns.true_at[ready.columns] = self._clock
        self._lanes.true_at[ready.lanes] = self._clock

    def _see(self, snapshot: Snapshot, nodes: Nodes, rules: Rules, *, gathers: bool) -> None:
        old, self._nodes = self._nodes, None
        known = old is not None and not self._is_strange(
            snapshot.world, nodes, old=old, rules=rules
        )
        if old is not None and known and gathers == self._gathers:
            rows = changed_rows(old, nodes)
            self._known = _copied(nodes, old, rows)
        else:
            self._forget(len(nodes.id), nodes.model.shape[1])
            self._world, self._rules, self._gathers = snapshot.world, rules, gathers
            self._arrays.follow(rules)
            rows = np.arange(len(nodes.id))
            self._known = scratch_copy(nodes)
        moved, spared = self._arrays.survey(nodes, snapshot, gathers=gathers)
        self._rows = [rows, spared]
        if moved:
            self._lanes.true_at[:] = NEVER

    def _is_strange(self, world: object, nodes: Nodes, *, old: Nodes, rules: Rules) -> bool:
        known = len(old.id)
        return (
            world is not self._world
            or self._oversized > OVERSIZED_CYCLES
            or not known <= len(nodes.id) <= len(self._played_at) * ARMS
            or nodes.model.shape[1] != old.model.shape[1]
            or not np.array_equal(nodes.id[:known], old.id)
            or not _same_rules(rules, self._rules)
        )

    def _forget(self, nodes: int, devices: int) -> None:
        self._arrays = Arrays(nodes + nodes // 8, devices)
        self._columns: Slots[_Column] = Slots(COLUMNS)
        self._lanes: Slots[_Lane] = Slots(LANES)
        self._played_at = np.zeros(self._arrays.blocks, np.int64)
        """Blocks of columns that rested then are not true any more."""
        self._oversized = 0
        self._known = empty_nodes(0, devices, 1)

    def _assign(
        self, columns: Sequence[Wanted], lanes: Sequence[WantedLane]
    ) -> tuple[list[int], list[int]]:
        keys = _keys(columns)
        numbers = self._columns.assign(keys, most=MOST_BYTES // self._arrays.bytes_per_column)
        gangs = [(keys[lane.column], lane.most) for lane in lanes]
        places = self._lanes.assign(gangs, most=MOST_LANES)
        for place, lane in zip(places, lanes, strict=True):
            if self._columns.true_at[numbers[lane.column]] == NEVER:
                self._lanes.true_at[place] = NEVER
        wide, used = self._columns.wide, max(COLUMNS, len(keys))
        self._oversized = self._oversized + 1 if wide > 4 * used else 0
        self._arrays.widen(wide, self._lanes.wide)
        self._arrays.forget(
            _ascending([n for n in numbers if self._columns.true_at[n] == NEVER]),
            _ascending([n for n in places if self._lanes.true_at[n] == NEVER]),
        )
        self._arrays.aim(places, [(numbers[lane.column], lane.most) for lane in lanes])
        return numbers, places

    def _catch_up(self, nodes: Nodes, scoring: Scoring) -> None:
        board = self._arrays.board()
        trees, columns, lanes = board.trees, board.trees.active, board.lanes.active
        column_at, before = self._columns.true_at[columns], self._clock - 1
        since = min([before, *column_at[column_at != NEVER].tolist()])
        stale = self._played_at > since
        new = lanes[self._lanes.true_at[lanes] < before]
        self._arrays.empty_lanes(new)
        touch_all(nodes, scoring, board, np.unique(np.concatenate(self._rows)), stale)
        count_lanes(board, new, len(nodes.id))
        fresh = columns[column_at == NEVER]
        if 2 * len(fresh) > len(columns):
            # Whole blocks are played as fast as parts of them.
            stale[:] = True
        elif len(fresh):
            play_columns(trees, board.states, fresh)
        climb_all(trees, board.states, np.flatnonzero(stale))


def _keys(columns: Sequence[Wanted]) -> list[_Column]:
    seen: Counter[TaskShape] = Counter()
    keys: list[_Column] = []
    for each in columns:
        keys.append((each.value, seen[each.value]))
        seen[each.value] += 1
    return keys


def _ascending(numbers: Sequence[int]) -> _Ints:
    return np.array(sorted(set(numbers)), np.int64)


def _most_memory(
    shapes: Shapes, devices: int, *, columns: Sequence[Wanted], lanes: Sequence[WantedLane]
) -> int:
    # A node holds at most as many tasks of a gang as it has devices for them.
    rows = [shapes[each.shape] for each in columns]
    single = [int(row[SHAPE_MEMORY]) for row in rows]
    gangs = [
        single[lane.column] * min(lane.most, _most_tasks(rows[lane.column], devices))
        for lane in lanes
    ]
    return max([*single, *gangs], default=0)


def _most_tasks(shape: NDArray[np.int64], devices: int) -> int:
    if shape[SHAPE_FORM] == FORM_NONE:
        return UNBOUNDED_TASKS
    parts = devices if shape[SHAPE_FORM] == FORM_WHOLE else devices * BLOCKS_PER_DEVICE
    return int(parts // max(1, shape[SHAPE_SHARES]))


def _copied(nodes: Nodes, known: Nodes, rows: _Ints) -> Nodes:
    """`nodes` with free columns of its own: those of `known`, brought up to date at some rows."""
    if len(known.id) != len(nodes.id):
        return scratch_copy(nodes)
    for name in FREE_COLUMNS:
        getattr(known, name)[rows] = getattr(nodes, name)[rows]
    return nodes._replace(**{name: getattr(known, name) for name in FREE_COLUMNS})


def _same_rules(new: Rules, old: Rules | None) -> bool:
    terms = [Term.LOSS, Term.LOSS_SQUASHED]
    if old is None or (new.loss is not old.loss and new.weights[:, terms].any()):
        return False
    return np.array_equal(new.weights, old.weights) and np.array_equal(new.seed, old.seed)
