"""What is known of all nodes while a cycle places tasks: scores in trees, room of gangs in sums.

After a node was touched everything is brought up to date at once: its state,
the matches above it, how many tasks of each gang it holds, and whether its
domain is still whole. A whole domain goes last, so that small jobs break no
further one while there is room in those that are broken.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.form_kernels import score
from atoll.core.engine.room_kernels import room_for
from atoll.core.engine.score_kernels import NO, Scoring, look_at
from atoll.core.engine.state_kernels import NO_ROOM_YET, UNKNOWN, States, find, is_known, move, show
from atoll.core.engine.terrain import Terrain
from atoll.core.engine.tree_kernels import ARMS, MOST, SPARE, Trees, climb
from atoll.core.state.columns import Nodes
from atoll.core.state.compiled import bare, inlined


class Lanes(NamedTuple):
    """Gangs, one lane each: how many of their tasks nodes and domains hold."""

    column: NDArray[np.int64]
    """(G) column of the trees with the scores of its tasks and its filter."""
    most: NDArray[np.int64]
    """(G) tasks; more room on one node does not count."""
    active: NDArray[np.int64]
    """Lanes that are kept up to date."""
    room: NDArray[np.int32]
    """(nodes, G) where the filter lets them."""
    sums: NDArray[np.int32]
    """(V, G) by vertex of the terrain."""
    busy: NDArray[np.int32]
    """(V) nodes in use; kept for the narrowest domains only."""
    used: NDArray[np.bool_]
    """(nodes) whether something of a node is in use."""


class Work(NamedTuple):
    """Room to work in."""

    rows: NDArray[np.int64]
    """(nodes)."""
    scores: NDArray[np.int32]
    """(nodes)."""
    above: NDArray[np.int64]
    """(V)."""
    below: NDArray[np.int64]
    """(V)."""


class Board(NamedTuple):
    """Everything that depends on what is free."""

    trees: Trees
    states: States
    lanes: Lanes
    terrain: Terrain
    work: Work


@bare
def settle(nodes: Nodes, scoring: Scoring, board: Board, row: int) -> None:
    """Take note of a node that was touched."""
    trees, terrain = board.trees, board.terrain
    flipped = touch(nodes, scoring, board, row)
    climb(trees, board.states, row // ARMS)
    if flipped >= 0:
        last = -1
        for at in range(terrain.first_row[flipped], terrain.first_row[flipped + 1]):
            block = terrain.rows[at] // ARMS
            if block != last:
                climb(trees, board.states, block)
            last = block


@bare
def settle_all(nodes: Nodes, scoring: Scoring, board: Board, rows: NDArray[np.int64]) -> None:
    """Take note of some nodes that were touched."""
    for row in rows:
        settle(nodes, scoring, board, row)


@bare
def touch_all(
    nodes: Nodes,
    scoring: Scoring,
    board: Board,
    rows: NDArray[np.int64],
    stale: NDArray[np.bool_],
) -> None:
    """Take note of many nodes that were touched, and mark the blocks that are to be played."""
    terrain = board.terrain
    for row in rows:
        flipped = touch(nodes, scoring, board, row)
        stale[row // ARMS] = True
        if flipped >= 0:
            for at in range(terrain.first_row[flipped], terrain.first_row[flipped + 1]):
                stale[terrain.rows[at] // ARMS] = True


@bare
def touch(nodes: Nodes, scoring: Scoring, board: Board, row: int) -> int:
    """Find the state of a node: the domain that began or ceased to be whole, or -1."""
    trees, states, lanes, terrain, _ = board
    place = find(nodes, states, row)
    if not is_known(states, place):
        learn(scoring, trees, states, lanes, place)
    move(states, row, place)
    profile = trees.profile[row]
    for lane in lanes.active:
        shut = trees.shut[profile, lanes.column[lane]] == NO
        _count(lanes, terrain, row, lane, 0 if shut else states.room[place, lane])
    return _note_use(nodes, trees, lanes, terrain, row)


@bare
def count_lanes(board: Board, chosen: NDArray[np.int64], size: int) -> None:
    """Count the room of `size` nodes for some gangs."""
    trees, states, lanes, terrain, _ = board
    for row in range(size):
        for lane in chosen:
            shut = trees.shut[trees.profile[row], lanes.column[lane]] == NO
            room = 0 if shut else states.room[states.of[row], lane]
            _count(lanes, terrain, row, lane, room)


@bare
def learn_all(scoring: Scoring, board: Board, places: NDArray[np.int64]) -> None:
    """Work out what is not known yet of some states."""
    for place in places:
        if not is_known(board.states, place):
            learn(scoring, board.trees, board.states, board.lanes, place)


@bare
def learn(scoring: Scoring, trees: Trees, states: States, lanes: Lanes, place: int) -> None:
    """Work out what is not known yet of a state."""
    models, cuts, shapes, rules, seen, trial, _ = scoring
    show(states, place)
    sample = states.sample
    node = look_at(sample, models, rules, 0, seen)
    for column in trees.active:
        if states.score[place, column] == UNKNOWN:
            found = score(node, cuts, shapes, rules, seen, trial, trees.shape[column])
            states.score[place, column] = found if found == NO else max(-MOST, min(found, MOST))
    for lane in lanes.active:
        if states.room[place, lane] == NO_ROOM_YET:
            shape = trees.shape[lanes.column[lane]]
            most = lanes.most[lane]
            states.room[place, lane] = room_for(sample, cuts, shapes, shape, 0, most, seen)


@bare
def score_now(nodes: Nodes, scoring: Scoring, board: Board, row: int, column: int) -> int:
    """The score of one column on a node as it is now, wherever its domain may stand."""
    states = board.states
    place = find(nodes, states, row)
    if not is_known(states, place):
        learn(scoring, board.trees, states, board.lanes, place)
    return int(states.score[place, column])


@inlined
def _count(lanes: Lanes, terrain: Terrain, row: int, lane: int, room: int) -> None:
    more = room - lanes.room[row, lane]
    if more != 0:
        lanes.room[row, lane] = room
        for level in range(terrain.vertex.shape[1]):
            lanes.sums[terrain.vertex[row, level], lane] += more


@inlined
def _note_use(nodes: Nodes, trees: Trees, lanes: Lanes, terrain: Terrain, row: int) -> int:
    if terrain.vertex.shape[1] < 2:
        return -1
    used, vertex = _in_use(nodes, row), terrain.vertex[row, 0]
    if used == lanes.used[row] or not terrain.real[vertex]:
        return -1
    lanes.used[row] = used
    before = lanes.busy[vertex]
    lanes.busy[vertex] += 1 if used else -1
    if before > 0 and lanes.busy[vertex] > 0:
        return -1
    for at in range(terrain.first_row[vertex], terrain.first_row[vertex + 1]):
        trees.spare[terrain.rows[at]] = 0 if used else SPARE
    return int(vertex)


@njit(cache=True, nogil=True)
def used_rows(nodes: Nodes) -> NDArray[np.bool_]:
    """(N) whether anything of a node is in use."""
    used = np.zeros(nodes.id.shape[0], np.bool_)
    for row in range(used.shape[0]):
        used[row] = _in_use(nodes, row)
    return used


@inlined
def _in_use(nodes: Nodes, row: int) -> bool:
    used = nodes.cpu_free[row] != nodes.cpu_cap[row]
    used |= nodes.memory_free[row] != nodes.memory_cap[row]
    for device in range(nodes.model.shape[1]):
        used |= nodes.blocks_free[row, device] != nodes.blocks_cap[row, device]
        used |= nodes.slices[row, device] != 0
    return bool(used)
