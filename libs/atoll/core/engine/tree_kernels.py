"""The best node of every shape: tournament trees, all shapes of a vertex side by side.

A vertex holds, by column, the least score below it. Level 0 are the nodes, row
by row; eight vertices side by side are the children of one above, so that a
match reads one stretch of memory. Of equal scores the first wins, which is the
lower node id.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.score_kernels import NO
from atoll.core.state.columns import Nodes
from atoll.core.state.compiled import bare, inlined

ARMS: Final = 8
"""Children of a vertex."""
SPARE: Final = (1 << 30) - 1
"""Added to all scores of a node whose domain is whole: it goes last."""
MOST: Final = (1 << 30) - 1
"""Scores are cut off here and at the negative of it, so that SPARE decides."""


class Trees(NamedTuple):
    """Trees over up to `size` nodes for W columns; a column is a shape and its filter."""

    least: NDArray[np.int32]
    """(vertices, W) level after level, the nodes first and the root last."""
    first: NDArray[np.int64]
    """(levels + 1) where a level begins."""
    spare: NDArray[np.int32]
    """(size) SPARE or 0."""
    profile: NDArray[np.int32]
    """(size) row of `shut`: nodes for which the filters say the same."""
    shut: NDArray[np.int32]
    """(P, W) NO where the filters keep a column off, the least number where they do not."""
    shape: NDArray[np.int64]
    """(W) row of the shape table; of no meaning for columns that are not active."""
    active: NDArray[np.int64]
    """Columns that are kept up to date."""


@bare
def best(least: NDArray[np.int32], first: NDArray[np.int64], column: int) -> int:
    """The node with the least score, the lowest of equals; -1 when the shape fits nowhere."""
    score = least[first[-2], column]
    if score == NO:
        return -1
    at = 0
    for level in range(first.shape[0] - 3, -1, -1):
        at *= ARMS
        while least[first[level] + at, column] != score:
            at += 1
    return at


@inlined
def write_leaf(
    least: NDArray[np.int32],
    row: int,
    scores: NDArray[np.int32],
    place: int,
    shut: NDArray[np.int32],
    profile: int,
    spare: int,
) -> None:
    """Write the scores of one node; what is shut there gets NO."""
    for column in range(least.shape[1]):
        score = max(scores[place, column], shut[profile, column])
        least[row, column] = NO if score == NO else score + spare


@bare
def climb(least: NDArray[np.int32], first: NDArray[np.int64], row: int) -> None:
    """Play the matches above a node up to where nothing changes."""
    at = row // ARMS
    for level in range(1, first.shape[0] - 1):
        if not play(least, first[level - 1] + at * ARMS, first[level] + at):
            return
        at //= ARMS


@bare
def climb_all(least: NDArray[np.int32], first: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
    """Play the matches above ascending rows, every one once; `rows` are of no use afterwards."""
    left = rows.shape[0]
    for level in range(1, first.shape[0] - 1):
        kept, last = 0, -1
        for i in range(left):
            at = rows[i] // ARMS
            if at != last:
                last = at
                if play(least, first[level - 1] + at * ARMS, first[level] + at):
                    rows[kept] = at
                    kept += 1
        left = kept


@bare
def play(least: NDArray[np.int32], below: int, above: int) -> bool:
    """Let the least score of every column go up; whether any is another one than before."""
    changed = np.int32(0)
    for column in range(least.shape[1]):
        lower = least[below, column]
        for arm in range(1, ARMS):
            lower = min(lower, least[below + arm, column])
        changed |= lower ^ least[above, column]
        least[above, column] = lower
    return bool(changed != 0)


@bare
def play_columns(
    least: NDArray[np.int32], first: NDArray[np.int64], columns: NDArray[np.int64]
) -> None:
    """Play all matches of some columns."""
    for level in range(1, first.shape[0] - 1):
        for at in range(first[level + 1] - first[level]):
            _play_some(least, first[level - 1], first[level], at, columns)


@inlined
def _play_some(
    least: NDArray[np.int32], lower: int, upper: int, at: int, columns: NDArray[np.int64]
) -> None:
    # The last vertices of a level only fill it up and have no children.
    if lower + at * ARMS + ARMS > upper:
        return
    for column in columns:
        score = least[lower + at * ARMS, column]
        for arm in range(1, ARMS):
            score = min(score, least[lower + at * ARMS + arm, column])
        least[upper + at, column] = score


def empty_trees(size: int, columns: int) -> Trees:
    """Trees in which nothing fits anywhere."""
    levels = [-(-size // ARMS) * ARMS]
    while levels[-1] > 1:
        above = levels[-1] // ARMS
        levels.append(-(-above // ARMS) * ARMS if above > 1 else 1)
    return Trees(
        least=np.full((sum(levels), columns), NO, np.int32),
        first=np.cumsum([0, *levels]),
        spare=np.zeros(size, np.int32),
        profile=np.zeros(size, np.int32),
        shut=np.zeros((1, columns), np.int32),
        shape=np.zeros(columns, np.int64),
        active=np.zeros(0, np.int64),
    )


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


@bare
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
