"""The arrays of a board: how large they are, what their columns mean, where domains lie."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.board_kernels import Board, Lanes, Work, used_rows
from atoll.core.engine.profiles import Mask, profiles
from atoll.core.engine.score_kernels import NO, Rules
from atoll.core.engine.state_kernels import (
    NO_ROOM_YET,
    UNKNOWN,
    ask,
    empty_states,
    follow,
    in_use,
    widened,
)
from atoll.core.engine.terrain import flat_terrain, terrain_of
from atoll.core.engine.tree_kernels import ARMS, SPARE, empty_trees
from atoll.core.model.resources import TaskShape
from atoll.core.policies.interfaces import Term
from atoll.core.state.columns import Nodes
from atoll.core.state.snapshot import Snapshot

COLUMNS: Final = 16
"""Columns come in multiples of this, so that a vertex is whole vector registers."""
LANES: Final = 4
MOST_SETS: Final = 1 << 10
"""Sets of columns that are remembered."""

Ints = NDArray[np.int64]
_Set = tuple[tuple[int, ...], tuple[int, ...]]


class Wanted(NamedTuple):
    """A column that a cycle needs."""

    value: TaskShape
    shape: int
    """Row of the value in the cycle's shape table."""
    allowed: Mask
    """(N)."""


class Arrays:
    """The arrays of one memo, for up to so many nodes of so many devices each."""

    def __init__(self, nodes: int, devices: int) -> None:
        self.blocks = max(1, -(-nodes // ARMS))
        size = self.blocks * ARMS
        self._trees = empty_trees(self.blocks)
        self._states = empty_states(size, devices)
        self._terrain = flat_terrain(0)
        self._lanes = _lanes(size, vertices=0, lanes=0)
        self._work = _work(size, vertices=0)
        self._ground: tuple[object, object, object] | None = None
        self.has_domains = False
        self._mask: list[Mask | None] = []
        self._masks: tuple[Mask, ...] = ()
        self._profile = profiles((), 0)
        self._sets: dict[_Set, int] = {}
        self._versions = 0

    @property
    def bytes_per_column(self) -> int:
        """What one more column takes, at most."""
        return 4 * (len(self._trees.least) + len(self._states.score))

    def board(self) -> Board:
        """For kernels; the arrays are those that it has at the moment."""
        return Board(self._trees, self._states, self._lanes, self._terrain, self._work)

    def follow(self, rules: Rules) -> None:
        """Learn what scores depend on besides devices and CPU."""
        matters = bool(rules.weights[:, [Term.MEMORY_LEFT, Term.ALIGNED]].any())
        follow(self._states, memory_matters=matters, by_chance=bool(rules.seed[0]))

    def survey(self, nodes: Nodes, snapshot: Snapshot, *, gathers: bool) -> tuple[bool, Ints]:
        """Learn where domains lie: whether that is new, and the nodes spared now or no more."""
        ground = (nodes.domain, nodes.cluster, snapshot.levels)
        old, self._ground = self._ground, ground
        if old is not None and _same_ground(old, ground):
            return False, np.zeros(0, np.int64)
        terrain = terrain_of(snapshot) if gathers else None
        self.has_domains = terrain is not None
        self._terrain = flat_terrain(len(nodes.id)) if terrain is None else terrain
        size, lanes = self._lanes.room.shape
        self._lanes = _lanes(size, vertices=len(self._terrain.real), lanes=lanes)
        self._work = _work(size, vertices=len(self._terrain.real))
        return True, self._measure(nodes)

    def widen(self, columns: int, lanes: int) -> None:
        """Make room for so many columns and lanes."""
        trees, old = self._trees, self._lanes
        self._states = widened(self._states, columns, lanes)
        if columns > trees.least.shape[1]:
            least = np.full((len(trees.least), columns), NO, np.int32)
            least[:, : trees.least.shape[1]] = trees.least
            shape = np.append(trees.shape, np.zeros(columns - len(trees.shape), np.int64))
            self._trees = trees._replace(least=least, shape=shape)
            self._mask += [None] * (columns - len(self._mask))
        if lanes > old.room.shape[1]:
            grown = _lanes(len(old.room), vertices=len(old.sums), lanes=lanes)
            grown.busy[:], grown.used[:] = old.busy, old.used
            for name in ("column", "most", "room", "sums"):
                getattr(grown, name)[..., : len(old.column)] = getattr(old, name)
            self._lanes = grown

    def forget(self, columns: Ints, lanes: Ints) -> None:
        """What was kept in some columns and lanes is of no use any more."""
        if len(columns) or len(lanes):
            self._sets.clear()
        self._states.score[1:, columns] = UNKNOWN
        self._states.room[1:, lanes] = NO_ROOM_YET
        for column in columns.tolist():
            self._mask[column] = None

    def point(self, columns: Sequence[int], wanted: Sequence[Wanted]) -> Ints:
        """Say what columns mean in this cycle; the nodes for which a filter has changed."""
        changed, same = _compared([self._mask[c] for c in columns], wanted)
        for column, each in zip(columns, wanted, strict=True):
            self._trees.shape[column] = each.shape
            self._mask[column] = same.get(id(each.allowed), each.allowed)
        masks = tuple({id(m): m for c in columns if (m := self._mask[c]) is not None}.values())
        if list(map(id, masks)) != list(map(id, self._masks)):
            self._masks = masks
            self._profile = profiles(masks, len(self._terrain.vertex))
        profile, lets = self._profile
        self._trees.profile[: len(profile)] = profile
        place = {id(mask): at for at, mask in enumerate(masks)}
        shut = np.full((len(lets), self._trees.least.shape[1]), NO, np.int32)
        at = [place[id(self._mask[column])] for column in columns]
        shut[:, list(columns)] = np.where(lets[:, at], UNKNOWN, NO)
        self._trees = self._trees._replace(shut=shut)
        return changed

    def aim(self, lanes: Sequence[int], aims: Sequence[tuple[int, int]]) -> None:
        """Say of which column and how many tasks gangs are."""
        for lane, (column, most) in zip(lanes, aims, strict=True):
            self._lanes.column[lane], self._lanes.most[lane] = column, most

    def activate(self, columns: Ints, lanes: Ints, *, memory: int) -> tuple[Ints, bool]:
        """Keep these up to date from now on.

        No task of theirs asks for more memory on a node. Returns the states that nodes are
        in, and whether states tell more memory apart than before.
        """
        self._trees = self._trees._replace(active=columns)
        self._lanes = self._lanes._replace(active=lanes)
        chosen = (tuple(columns.tolist()), tuple(lanes.tolist()))
        if len(self._sets) > MOST_SETS:
            self._sets.clear()
        if chosen not in self._sets:
            self._versions += 1
            self._sets[chosen] = self._versions
        grew = ask(self._states, self._sets[chosen], memory=memory)
        return in_use(self._states), grew

    def empty_lanes(self, lanes: Ints) -> None:
        """Count some gangs' room from nothing."""
        self._lanes.room[:, lanes] = 0
        self._lanes.sums[:, lanes] = 0

    def _measure(self, nodes: Nodes) -> Ints:
        """Find out which domains are whole; nodes that are spared now or no more."""
        if self._terrain.vertex.shape[1] < 2:
            return self._spare(np.zeros(len(nodes.id), np.bool_))
        used, vertex = used_rows(nodes), self._terrain.vertex[:, 0]
        self._lanes.used[: len(used)] = used
        self._lanes.busy[:] = np.bincount(vertex[used], minlength=len(self._lanes.busy))
        return self._spare((self._lanes.busy[vertex] == 0) & self._terrain.real[vertex])

    def _spare(self, spared: Mask) -> Ints:
        spare = np.where(spared, SPARE, 0)
        rows = np.flatnonzero(self._trees.spare[: len(spare)] != spare)
        self._trees.spare[: len(spare)] = spare
        return rows


def _same_ground(old: tuple[object, ...], new: tuple[object, ...]) -> bool:
    return all(a is b or np.array_equal(a, b) for a, b in zip(old, new, strict=True))  # type: ignore[arg-type]


def _compared(old: Sequence[Mask | None], wanted: Sequence[Wanted]) -> tuple[Ints, dict[int, Mask]]:
    """Nodes for which masks differ from the old ones; by a mask's id, its equal among those."""
    rows: list[Ints] = []
    same: dict[int, Mask] = {}
    done: set[tuple[int, int]] = set()
    for before, each in zip(old, wanted, strict=True):
        pair = (id(before), id(each.allowed))
        if before is None or before is each.allowed or pair in done:
            continue
        done.add(pair)
        known = min(len(before), len(each.allowed))
        differ = np.flatnonzero(before[:known] != each.allowed[:known])
        if len(differ) == 0 and len(before) == len(each.allowed):
            same.setdefault(id(each.allowed), before)
        rows.append(differ)
    return np.concatenate([np.zeros(0, np.int64), *rows]), same


def _lanes(size: int, *, vertices: int, lanes: int) -> Lanes:
    return Lanes(
        column=np.zeros(lanes, np.int64),
        most=np.zeros(lanes, np.int64),
        active=np.zeros(0, np.int64),
        room=np.zeros((size, lanes), np.int32),
        sums=np.zeros((vertices, lanes), np.int32),
        busy=np.zeros(vertices, np.int32),
        used=np.zeros(size, np.bool_),
    )


def _work(size: int, *, vertices: int) -> Work:
    return Work(
        rows=np.zeros(size, np.int64),
        scores=np.zeros(size, np.int32),
        above=np.zeros(vertices, np.int64),
        below=np.zeros(vertices, np.int64),
    )
