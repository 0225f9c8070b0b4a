"""The best node of every shape: tournament trees, all shapes of a vertex side by side.

Vertex 1 is the root, vertex v has the children 2v and 2v + 1, the leaf of node
`row` is size + row. A vertex holds, by column, the least score below it. Of
equal scores the left one wins, which is the lower node id.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.score_kernels import NO, Scoring, score
from atoll.core.state.columns import Nodes


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
    size = trees.least.shape[0] // 2
    trees.least[:] = NO
    for row in range(nodes.id.shape[0]):
        _score_leaf(nodes, scoring, trees, row)
    for vertex in range(size - 1, 0, -1):
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
    vertex = (trees.least.shape[0] // 2 + row) // 2
    while vertex > 0 and _play(trees.least, vertex):
        vertex //= 2


@njit(cache=True, nogil=True)
def best(trees: Trees, column: int) -> int:
    """The node with the least score, the lowest of equals; -1 when the shape fits nowhere."""
    least = trees.least
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
    leaf = trees.least.shape[0] // 2 + row
    for column in range(trees.shape.shape[0]):
        if trees.allowed[row, column]:
            trees.least[leaf, column] = score(nodes, scoring, trees.shape[column], row)
        else:
            trees.least[leaf, column] = NO


@njit(cache=True, nogil=True)
def _play(least: NDArray[np.int32], vertex: int) -> bool:
    changed = False
    left, right, winner = least[2 * vertex], least[2 * vertex + 1], least[vertex]
    for column in range(least.shape[1]):
        lower = min(left[column], right[column])
        changed |= lower != winner[column]
        winner[column] = lower
    return changed
