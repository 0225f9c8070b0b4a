"""Trees that are kept from one cycle to the next, so that only what changed is scored anew.

A memo changes no plan, only how long it takes: rows are compared with what the
trees were built from, and filters with what they said then.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.score_kernels import NO, Rules, Scoring
from atoll.core.engine.tree_kernels import Trees, build, changed_rows, refresh
from atoll.core.model.resources import TaskShape
from atoll.core.state.columns import Nodes, copy_leading

LANES: Final = 8
"""Columns come in multiples of this, so that a vertex is whole vector registers."""
MOST_BYTES: Final = 1 << 28
"""Of trees that no class asks for at the moment."""
OVERSIZED_CYCLES: Final = 64
"""So long may most columns be of no use before all are dropped."""

_Key = tuple[TaskShape, int]
NEVER: Final = -1
"""Before any change: a column that knows nothing."""


class Wanted(NamedTuple):
    """A column that a cycle needs."""

    value: TaskShape
    shape: int
    """Row of the value in the cycle's shape table."""
    allowed: NDArray[np.bool_]
    """(N)."""


class Memo:
    """Trees of earlier cycles. One cycle at a time may use it."""

    def __init__(self) -> None:
        self._world: object = None
        self._nodes: Nodes | None = None
        self._rules: Rules | None = None
        self._clock = 0
        self._oversized = 0
        self._forget(0, 0)

    def trees(
        self, world: object, nodes: Nodes, scoring: Scoring, *, wanted: Sequence[Wanted]
    ) -> tuple[Trees, list[int]]:
        """Trees that are true of `nodes`, and the column of each wanted one.

        `world`: whose numbers nodes and scoring are in. `keep` has to follow, or the next
        cycle begins with nothing.
        """
        self._clock += 1
        if world is not self._world:
            self._world, self._nodes = world, None
        self._see(nodes, scoring.rules, len(wanted))
        columns = self._assign(wanted)
        turned = self._filter(columns, wanted)
        for true_at in np.unique(self._true_at[columns]).tolist():
            together = [c for c in columns if self._true_at[c] == true_at]
            rows = np.flatnonzero(self._changed_at[: len(nodes.id)] > true_at)
            self._score(nodes, scoring, together, rows=rows)
        for column, rows in turned:
            self._score(nodes, scoring, [column], rows=rows)
        return self._only(columns), columns

    def keep(self, nodes: Nodes, columns: Sequence[int], rows: NDArray[np.int64]) -> None:
        """A cycle is over: its nodes as it left them, its columns, the rows that it scored."""
        self._nodes = nodes
        self._changed_at[rows] = self._clock
        self._true_at[columns] = self._clock

    def _see(self, nodes: Nodes, rules: Rules, columns: int) -> None:
        old, self._nodes = self._nodes, None
        if old is None or self._is_strange(nodes, old, rules):
            self._forget(len(nodes.id), columns)
            self._rules = rules
            self._changed_at[:] = self._clock
        else:
            self._changed_at[changed_rows(old, nodes)] = self._clock

    def _is_strange(self, nodes: Nodes, old: Nodes, rules: Rules) -> bool:
        known = len(old.id)
        return (
            self._oversized > OVERSIZED_CYCLES
            or not known <= len(nodes.id) <= len(self._trees.allowed)
            or nodes.model.shape[1] != old.model.shape[1]
            or not np.array_equal(nodes.id[:known], old.id)
            or not _same_rules(rules, self._rules)
        )

    def _forget(self, nodes: int, columns: int) -> None:
        size = 1 << max(0, nodes - 1).bit_length()
        self._trees = _trees(size, -(-columns // LANES) * LANES)
        self._column: dict[_Key, int] = {}
        self._changed_at = np.zeros(size, np.int64)
        self._true_at = np.full(len(self._trees.shape), NEVER, np.int64)
        self._oversized = 0

    def _assign(self, wanted: Sequence[Wanted]) -> list[int]:
        seen: Counter[TaskShape] = Counter()
        keys: list[_Key] = []
        for each in wanted:
            keys.append((each.value, seen[each.value]))
            seen[each.value] += 1
        new = [key for key in keys if key not in self._column]
        self._make_room(len(new), keep=set(keys))
        free = iter(sorted(set(range(len(self._true_at))) - set(self._column.values())))
        self._column.update((key, next(free)) for key in new)
        used, wide = max(LANES, len(keys)), len(self._true_at)
        self._oversized = self._oversized + 1 if wide > 4 * used else 0
        return [self._column[key] for key in keys]

    def _make_room(self, new: int, *, keep: set[_Key]) -> None:
        wide, size = len(self._true_at), len(self._changed_at)
        most = max(MOST_BYTES // (8 * size), len(keep) + LANES)
        missing = new - (wide - len(self._column))
        if missing > 0 and wide + missing <= most:
            self._widen(-(-min(most, max(wide + missing, 2 * wide)) // LANES) * LANES)
        elif missing > 0:
            idle = [key for key in self._column if key not in keep]
            idle.sort(key=lambda key: int(self._true_at[self._column[key]]))
            for key in idle[:missing]:
                self._true_at[self._column.pop(key)] = NEVER

    def _widen(self, columns: int) -> None:
        grown = _trees(len(self._changed_at), columns)
        true_at = np.full(columns, NEVER, np.int64)
        copy_leading(self._trees[:3], grown[:3])
        copy_leading((self._true_at,), (true_at,))
        self._trees, self._true_at = grown, true_at

    def _filter(
        self, columns: Sequence[int], wanted: Sequence[Wanted]
    ) -> list[tuple[int, NDArray[np.int64]]]:
        turned = []
        for column, each in zip(columns, wanted, strict=True):
            self._trees.shape[column] = each.shape
            allowed = self._trees.allowed[: len(each.allowed), column]
            rows = np.flatnonzero(allowed != each.allowed)
            if len(rows):
                allowed[:] = each.allowed
                if self._true_at[column] != NEVER:
                    turned.append((column, rows))
        return turned

    def _score(
        self, nodes: Nodes, scoring: Scoring, columns: Sequence[int], *, rows: NDArray[np.int64]
    ) -> None:
        if len(rows) * 4 > len(nodes.id):
            build(nodes, scoring, self._only(columns))
        elif len(rows):
            refresh(nodes, scoring, self._only(columns), rows)

    def _only(self, columns: Sequence[int]) -> Trees:
        return self._trees._replace(active=np.array(sorted(columns), np.int64))


def _same_rules(new: Rules, old: Rules | None) -> bool:
    if old is None or new.loss is not old.loss:
        return False
    return np.array_equal(new.weights, old.weights) and np.array_equal(new.seed, old.seed)


def _trees(size: int, columns: int) -> Trees:
    return Trees(
        least=np.full((2 * size, columns), NO, np.int32),
        allowed=np.zeros((size, columns), np.bool_),
        shape=np.zeros(columns, np.int64),
        active=np.zeros(0, np.int64),
    )
