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
    """Trees over N nodes for W columns, of which each stands for a shape and its filter."""

    least: NDArray[np.int32]
    """(2 x size, W)."""
    allowed: NDArray[np.bool_]
    """(N, W) what the filters leave."""
    shape: NDArray[np.int64]
    """(W) row of the shape table."""


@njit(cache=True, nogil=True)
def build(nodes: Nodes, scoring: Scoring, trees: Trees) -> None:
    """Score every node for every column."""
    trees.least[:] = NO
    for row in range(nodes.id.shape[0]):
        _score_leaf(nodes, scoring, trees, row)
    for vertex in range(trees.least.shape[0] // 2 - 1, 0, -1):
        _play(trees.least, vertex)


@njit(cache=True, nogil=True)
def refresh(nodes: Nodes, scoring: Scoring, trees: Trees, rows: NDArray[np.int64]) -> None:
    """Score some nodes anew."""
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
    for column in range(shape.shape[0]):
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
