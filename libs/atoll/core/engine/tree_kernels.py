"""The best node of every shape: tournament trees, all shapes of a vertex side by side.

Vertex 1 is the root, vertex v has the children 2v and 2v + 1, the leaf of node
`row` is size + row. A vertex holds, by column, the least score below it. Of
equal scores the left one wins, which is the lower node id.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.score_kernels import NO, Scoring, look_at, plain_score, score
from atoll.core.state.columns import FORM_SLICES, SHAPE_FORM, Nodes


class Trees(NamedTuple):
    """Trees over up to `size` nodes for W columns; a column is a shape and its filter."""

    least: NDArray[np.int32]
    """(2 x size, W)."""
    allowed: NDArray[np.bool_]
    """(size, W) what the filters leave."""
    shape: NDArray[np.int64]
    """(W) row of the shape table; of no meaning for columns that are not active."""
    active: NDArray[np.int64]
    """Columns that are kept up to date."""


@njit(cache=True, nogil=True)
def build(nodes: Nodes, scoring: Scoring, trees: Trees) -> None:
    """Score every node for the active columns."""
    least = trees.least
    size = least.shape[0] // 2
    for row in range(size):
        if row < nodes.id.shape[0]:
            _score_leaf(nodes, scoring, trees, row)
        else:
            for column in trees.active:
                least[size + row, column] = NO
    for vertex in range(size - 1, 0, -1):
        _play(least, vertex)


@njit(cache=True, nogil=True)
def refresh(nodes: Nodes, scoring: Scoring, trees: Trees, rows: NDArray[np.int64]) -> None:
    """Score some nodes anew for the active columns."""
    for i in range(rows.shape[0]):
        refresh_row(nodes, scoring, trees, rows[i])


@njit(cache=True, nogil=True)
def refresh_row(nodes: Nodes, scoring: Scoring, trees: Trees, row: int) -> None:
    """Score one node anew and play its matches up to where nothing changes."""
    _score_leaf(nodes, scoring, trees, row)
    _climb(trees.least, (trees.least.shape[0] // 2 + row) // 2)


@njit(cache=True, nogil=True)
def best(least: NDArray[np.int32], column: int) -> int:
    """The node with the least score, the lowest of equals; -1 when the shape fits nowhere."""
    score = least[1, column]
    if score == NO:
        return -1
    size = least.shape[0] // 2
    vertex = 1
    while vertex < size:
        vertex *= 2
        if least[vertex, column] != score:
            vertex += 1
    return int(vertex - size)


@njit(cache=True, nogil=True)
def _score_leaf(nodes: Nodes, scoring: Scoring, trees: Trees, row: int) -> None:
    least, allowed, shape = trees.least, trees.allowed, trees.shape
    seen, shapes, weights = scoring.seen, scoring.shapes, scoring.weights
    leaf = least.shape[0] // 2 + row
    node = look_at(nodes, scoring, row)
    for column in trees.active:
        number = shape[column]
        if not allowed[row, column]:
            least[leaf, column] = NO
        elif shapes[number, SHAPE_FORM] == FORM_SLICES:
            least[leaf, column] = score(node, scoring, number)
        else:
            least[leaf, column] = plain_score(node, seen, shapes, weights, number)


@njit(cache=True, nogil=True)
def _climb(least: NDArray[np.int32], vertex: int) -> None:
    while vertex > 0 and _play(least, vertex):
        vertex //= 2


@njit(cache=True, nogil=True)
def _play(least: NDArray[np.int32], vertex: int) -> bool:
    changed = False
    left, right = 2 * vertex, 2 * vertex + 1
    for column in range(least.shape[1]):
        lower = min(least[left, column], least[right, column])
        changed |= lower != least[vertex, column]
        least[vertex, column] = lower
    return changed


@njit(cache=True, nogil=True)
def changed_rows(old: Nodes, new: Nodes) -> NDArray[np.int64]:
    """Rows of `new` that differ from `old` in what scores depend on, or are not in `old`."""
    count = new.id.shape[0]
    rows = np.empty(count, np.int64)
    found = 0
    for row in range(count):
        if row >= old.id.shape[0] or _differs(old, new, row):
            rows[found] = row
            found += 1
    return rows[:found].copy()


@njit(cache=True, nogil=True)
def _differs(old: Nodes, new: Nodes, row: int) -> bool:
    if old.cpu_free[row] != new.cpu_free[row] or old.memory_free[row] != new.memory_free[row]:
        return True
    if old.cpu_cap[row] != new.cpu_cap[row] or old.memory_cap[row] != new.memory_cap[row]:
        return True
    differs = False
    for device in range(new.model.shape[1]):
        differs |= old.blocks_free[row, device] != new.blocks_free[row, device]
        differs |= old.blocks_cap[row, device] != new.blocks_cap[row, device]
        differs |= old.slices[row, device] != new.slices[row, device]
        differs |= old.model[row, device] != new.model[row, device]
    return differs
