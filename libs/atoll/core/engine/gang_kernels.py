"""Places gangs of equal tasks: the narrowest domain that holds one, and there as few as will do.

The same choice as engine/gangs.py makes with whole columns, read off sums that
are kept while tasks are placed.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.board_kernels import Board, Lanes, Work, score_now
from atoll.core.engine.form_kernels import device_for
from atoll.core.engine.score_kernels import NO, Scoring, look_at
from atoll.core.engine.terrain import Terrain
from atoll.core.state.columns import Nodes
from atoll.core.state.compiled import bare
from atoll.core.state.statement_kernels import Journal, place

NOWHERE: Final = -1
_FAR: Final = 1 << 60


@bare
def place_gang(
    nodes: Nodes,
    scoring: Scoring,
    board: Board,
    journal: Journal,
    lane: int,
    count: int,
    first_level: int,
    end_level: int,
) -> bool:
    """Place `count` tasks of a lane's gang, or none: whether there is a domain that holds them.

    Levels are tried from `first_level` on to before `end_level`. There must be room in the
    journal. The board is not told: that is for the caller, once the gang is to stay.
    """
    lanes, terrain = board.lanes, board.terrain
    vertex = find_domain(lanes, terrain, lane, count, first_level, end_level)
    if vertex == NOWHERE:
        return False
    size = _rows_of(board, lane, count, vertex)
    _pack(nodes, scoring, board, journal, size, lanes.column[lane], count)
    return True


@bare
def find_domain(
    lanes: Lanes, terrain: Terrain, lane: int, count: int, first_level: int, end_level: int
) -> int:
    """The tightest domain of the narrowest level on which one holds the gang, or NOWHERE."""
    for level in range(first_level, end_level):
        best, least = NOWHERE, _FAR
        for vertex in range(terrain.first_vertex[level], terrain.first_vertex[level + 1]):
            room = lanes.sums[vertex, lane]
            if room < count or room > least or not terrain.real[vertex]:
                continue
            if room < least or _is_before(lanes, terrain, lane, vertex, best):
                best, least = vertex, room
        if best != NOWHERE:
            return best
    return NOWHERE


@bare
def _rows_of(board: Board, lane: int, count: int, vertex: int) -> int:
    """Write to `work.rows` where in the domain the gang is to be packed; how many rows."""
    _, _, lanes, terrain, work = board
    work.above[0] = vertex
    chosen, level = 1, 0
    while vertex >= terrain.first_vertex[level + 1]:
        level += 1
    for _ in range(level):
        chosen = _cover(lanes, terrain, work, lane, count, chosen)
    size = 0
    for i in range(chosen):
        first, end = terrain.first_row[work.above[i]], terrain.first_row[work.above[i] + 1]
        for at in range(first, end):
            if lanes.room[terrain.rows[at], lane] > 0:
                work.rows[size] = terrain.rows[at]
                size += 1
    return size


@bare
def _cover(lanes: Lanes, terrain: Terrain, work: Work, lane: int, count: int, chosen: int) -> int:
    """Of the domains below `work.above` the roomiest until one holds the rest: then the tightest.

    They are written to `work.above`; how many.
    """
    left, found = _children(lanes, terrain, work, lane, chosen), 0
    below = work.below
    while True:
        roomiest, most, tightest, least = 0, -1, NOWHERE, _FAR
        for i in range(left):
            room = lanes.sums[below[i], lane]
            if room >= most and (
                room > most or _is_before(lanes, terrain, lane, below[i], below[roomiest])
            ):
                roomiest, most = i, room
            if (
                room >= count
                and room <= least
                and (room < least or _is_before(lanes, terrain, lane, below[i], tightest))
            ):
                tightest, least = below[i], room
        work.above[found] = tightest if tightest != NOWHERE else below[roomiest]
        found += 1
        if tightest != NOWHERE:
            return found
        left -= 1
        below[roomiest] = below[left]
        count -= most


@bare
def _children(lanes: Lanes, terrain: Terrain, work: Work, lane: int, chosen: int) -> int:
    """Write to `work.below` the domains with room below those in `work.above`; how many."""
    found = 0
    for i in range(chosen):
        first, end = terrain.first_child[work.above[i]], terrain.first_child[work.above[i] + 1]
        for at in range(first, end):
            if lanes.sums[terrain.child[at], lane] > 0:
                work.below[found] = terrain.child[at]
                found += 1
    return found


@bare
def _is_before(lanes: Lanes, terrain: Terrain, lane: int, one: int, other: int) -> bool:
    """Whether the first node with room of one domain comes before that of the other."""
    return _first(lanes, terrain, lane, one) < _first(lanes, terrain, lane, other)


@bare
def _first(lanes: Lanes, terrain: Terrain, lane: int, vertex: int) -> int:
    for at in range(terrain.first_row[vertex], terrain.first_row[vertex + 1]):
        if lanes.room[terrain.rows[at], lane] > 0:
            return int(terrain.rows[at])
    return _FAR


@bare
def _pack(
    nodes: Nodes,
    scoring: Scoring,
    board: Board,
    journal: Journal,
    size: int,
    column: int,
    count: int,
) -> None:
    """Place tasks on the best of `work.rows` one after another; they are known to hold so many."""
    models, cuts, shapes, rules, seen, _, _ = scoring
    states, rows, scores = board.states, board.work.rows, board.work.scores
    shape = board.trees.shape[column]
    for i in range(size):
        scores[i] = states.score[states.of[rows[i]], column]
    for _ in range(count):
        i = _least(scores, rows, size)
        node = look_at(nodes, models, rules, rows[i], seen)
        device = device_for(node, shapes, rules, seen, shape)
        place(nodes, models, cuts, shapes, journal, shape, rows[i], device)
        scores[i] = score_now(nodes, scoring, board, rows[i], column)


@bare
def _least(scores: NDArray[np.int32], rows: NDArray[np.int64], size: int) -> int:
    at, least = -1, NO
    for i in range(size):
        if scores[i] < least or (scores[i] == least and at >= 0 and rows[i] < rows[at]):
            at, least = i, scores[i]
    return at
