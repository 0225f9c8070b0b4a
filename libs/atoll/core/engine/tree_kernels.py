"""The best node of every shape: tournament trees, all shapes of a vertex side by side.

A vertex holds, by column, the least score below it. Eight nodes that follow each
other make a block, the lowest vertex; eight vertices side by side are the children
of one above, so that a match reads one stretch of memory. Nodes have no vertex:
their scores are those of their states. Of equal scores the first wins, which is
the lower node id.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.score_kernels import NO
from atoll.core.engine.state_kernels import States
from atoll.core.state.columns import Nodes
from atoll.core.state.compiled import bare, inlined

ARMS: Final = 8
"""Children of a vertex, and nodes of a block."""
SPARE: Final = (1 << 30) - 1
"""Added to all scores of a node whose domain is whole: it goes last."""
MOST: Final = (1 << 30) - 1
"""Scores are cut off here and at the negative of it, so that SPARE decides."""


_NO: Final = np.int32(NO)


class Trees(NamedTuple):
    """Trees over blocks of nodes for W columns; a column is a shape and its filter."""

    least: NDArray[np.int32]
    """(vertices, W) level after level, the blocks first and the root last."""
    first: NDArray[np.int64]
    """(levels + 1) where a level begins."""
    played: NDArray[np.bool_]
    """(blocks) whether the block was played since somebody last asked."""
    spare: NDArray[np.int32]
    """(nodes) SPARE or 0."""
    profile: NDArray[np.int32]
    """(nodes) row of `shut`: nodes for which the filters say the same."""
    shut: NDArray[np.int32]
    """(P, W) NO where the filters keep a column off, the least number where they do not."""
    shape: NDArray[np.int64]
    """(W) row of the shape table; of no meaning for columns that are not active."""
    active: NDArray[np.int64]
    """Columns that are kept up to date."""


@bare
def best(trees: Trees, states: States, column: int) -> int:
    """The node with the least score, the lowest of equals; -1 when the shape fits nowhere."""
    least, first = trees.least, trees.first
    score = least[first[-2], column]
    if score == NO:
        return -1
    at = 0
    for level in range(first.shape[0] - 3, -1, -1):
        at *= ARMS
        while least[first[level] + at, column] != score:
            at += 1
    row = at * ARMS
    while score_at(trees, states, row, column) != score:
        row += 1
    return row


@inlined
def score_at(trees: Trees, states: States, row: int, column: int) -> int:
    """The score of one column on a node."""
    score = max(states.score[states.of[row], column], trees.shut[trees.profile[row], column])
    return int(score if score == NO else score + trees.spare[row])


@bare
def climb(trees: Trees, states: States, block: int) -> None:
    """Play a block, and the matches above it up to where nothing changes."""
    if not play_block(trees, states, block):
        return
    at, first = block, trees.first
    for level in range(1, first.shape[0] - 1):
        at //= ARMS
        if not _play(trees.least, first[level - 1] + at * ARMS, first[level] + at):
            return


@bare
def climb_all(trees: Trees, states: States, blocks: NDArray[np.int64]) -> None:
    """Play ascending blocks and the matches above, every one once; uses `blocks` up."""
    left, first = 0, trees.first
    for block in blocks:
        if play_block(trees, states, block):
            blocks[left] = block
            left += 1
    for level in range(1, first.shape[0] - 1):
        kept, last = 0, -1
        for i in range(left):
            at = blocks[i] // ARMS
            if at != last:
                last = at
                if _play(trees.least, first[level - 1] + at * ARMS, first[level] + at):
                    blocks[kept] = at
                    kept += 1
        left = kept


@bare
def play_block(trees: Trees, states: States, block: int) -> bool:
    """Bring a block up to date with its nodes; whether any column is another one than before."""
    row = block * ARMS
    trees.played[block] = True
    if _is_even(trees, row):
        return _play_even(trees, states, row, block)
    return _play_odd(trees, states, row, block)


@inlined
def _is_even(trees: Trees, row: int) -> bool:
    """Whether filters and sparing are the same for all nodes of a block."""
    differs = 0
    for arm in range(1, ARMS):
        differs |= trees.profile[row + arm] ^ trees.profile[row]
        differs |= trees.spare[row + arm] ^ trees.spare[row]
    return bool(differs == 0)


@inlined
def _play_even(trees: Trees, states: States, row: int, block: int) -> bool:
    score, least = states.score, trees.least
    a, b, c, d = states.of[row], states.of[row + 1], states.of[row + 2], states.of[row + 3]
    e, f, g, h = states.of[row + 4], states.of[row + 5], states.of[row + 6], states.of[row + 7]
    spare, profile = trees.spare[row], trees.profile[row]
    changed = np.int32(0)
    for column in range(least.shape[1]):
        one = min(score[a, column], score[b, column])
        two = min(score[c, column], score[d, column])
        three = min(score[e, column], score[f, column])
        four = min(score[g, column], score[h, column])
        lower = max(min(one, two, three, four), trees.shut[profile, column])
        # In 32 bits throughout, or a match takes twice as long.
        lower = _NO if lower == _NO else np.int32(lower + spare)
        changed |= lower ^ least[block, column]
        least[block, column] = lower
    return bool(changed != 0)


@bare
def _play_odd(trees: Trees, states: States, row: int, block: int) -> bool:
    changed = np.int32(0)
    for column in range(trees.least.shape[1]):
        lower = score_at(trees, states, row, column)
        for arm in range(1, ARMS):
            lower = min(lower, score_at(trees, states, row + arm, column))
        changed |= np.int32(lower) ^ trees.least[block, column]
        trees.least[block, column] = lower
    return bool(changed != 0)


@bare
def _play(least: NDArray[np.int32], below: int, above: int) -> bool:
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
def play_columns(trees: Trees, states: States, columns: NDArray[np.int64]) -> None:
    """Play all matches of some columns."""
    least, first = trees.least, trees.first
    for block in range(trees.played.shape[0]):
        for column in columns:
            lower = score_at(trees, states, block * ARMS, column)
            for arm in range(1, ARMS):
                lower = min(lower, score_at(trees, states, block * ARMS + arm, column))
            least[block, column] = lower
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


def empty_trees(blocks: int) -> Trees:
    """Trees in which nothing fits anywhere, without columns."""
    levels = [blocks if blocks == 1 else -(-blocks // ARMS) * ARMS]
    while levels[-1] > 1:
        above = levels[-1] // ARMS
        levels.append(-(-above // ARMS) * ARMS if above > 1 else 1)
    return Trees(
        least=np.full((sum(levels), 0), NO, np.int32),
        first=np.cumsum([0, *levels]),
        played=np.zeros(blocks, np.bool_),
        spare=np.zeros(blocks * ARMS, np.int32),
        profile=np.zeros(blocks * ARMS, np.int32),
        shut=np.zeros((1, 0), np.int32),
        shape=np.zeros(0, np.int64),
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
