"""The best node of every shape: tournament trees, all shapes of a vertex side by side.

Vertex 1 is the root, vertex v has the children 2v and 2v + 1, the leaf of node
`row` is size + row. A vertex holds, by column, the least score below it. Of
equal scores the left one wins, which is the lower node id.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.score_kernels import NO, NodeView, Scoring, look_at, plain_score, slice_score
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
    models, rules, seen = scoring.models, scoring.rules, scoring.seen
    size = least.shape[0] // 2
    for leaf in range(size + nodes.id.shape[0], 2 * size):
        for column in trees.active:
            least[leaf, column] = NO
    for row in range(nodes.id.shape[0]):
        score_columns(look_at(nodes, models, rules, row, seen), scoring, trees, row)
    for vertex in range(size - 1, 0, -1):
        _play(least, vertex)


@njit(cache=True, nogil=True)
def refresh(nodes: Nodes, scoring: Scoring, trees: Trees, rows: NDArray[np.int64]) -> None:
    """Score some nodes anew for the active columns."""
    models, rules, seen = scoring.models, scoring.rules, scoring.seen
    least = trees.least
    for row in rows:
        score_columns(look_at(nodes, models, rules, row, seen), scoring, trees, row)
        climb(least, row)


@njit(cache=True, nogil=True, forceinline=True)
def score_columns(node: NodeView, scoring: Scoring, trees: Trees, row: int) -> None:
    """Score a node that was looked at for the active columns."""
    _, cuts, shapes, rules, seen, trial, _ = scoring
    least, allowed, shape, active = trees
    leaf = least.shape[0] // 2 + row
    for column in active:
        least[leaf, column] = NO
        if allowed[row, column]:
            number = shape[column]
            if shapes[number, SHAPE_FORM] == FORM_SLICES:
                least[leaf, column] = slice_score(node, cuts, shapes, rules, seen, trial, number)
            else:
                least[leaf, column] = plain_score(node, shapes, rules, seen, number)


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
def climb(least: NDArray[np.int32], row: int) -> None:
    """Play the matches above a node's leaf up to where nothing changes."""
    vertex = (least.shape[0] // 2 + row) // 2
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
