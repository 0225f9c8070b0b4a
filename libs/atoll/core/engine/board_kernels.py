"""What is known of all nodes while a cycle places tasks: scores in trees, room of gangs in sums.

After a node was touched everything is brought up to date at once: its scores,
the matches above them, how many tasks of each gang it holds, and whether its
domain is still whole. A whole domain goes last, so that small jobs break no
further one while there is room in those that are broken.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.room_kernels import room_for
from atoll.core.engine.score_kernels import NO, Scoring, look_at, score
from atoll.core.engine.state_kernels import (
    NO_ROOM_YET,
    UNKNOWN,
    States,
    claim,
    find_state,
    is_known,
)
from atoll.core.engine.terrain import Terrain
from atoll.core.engine.tree_kernels import MOST, SPARE, Trees, climb, climb_all, write_leaf
from atoll.core.state.columns import Nodes
from atoll.core.state.compiled import bare, inlined
from atoll.core.state.fit_kernels import View


class Lanes(NamedTuple):
    """Gangs, one lane each: how many of their tasks nodes and domains hold."""

    column: NDArray[np.int64]
    """(G) column of the trees with the scores of its tasks and its filter."""
    most: NDArray[np.int64]
    """(G) tasks; more room on one node does not count."""
    active: NDArray[np.int64]
    """Lanes that are kept up to date."""
    room: NDArray[np.int32]
    """(size, G) by node."""
    sums: NDArray[np.int32]
    """(V, G) by vertex of the terrain."""
    busy: NDArray[np.int32]
    """(V) nodes in use; kept for the narrowest domains only."""
    used: NDArray[np.bool_]
    """(size) whether something of a node is in use."""


class Work(NamedTuple):
    """Room to work in."""

    rows: NDArray[np.int64]
    """(size)."""
    scores: NDArray[np.int32]
    """(size)."""
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
def settle_one(nodes: Nodes, scoring: Scoring, board: Board, row: int) -> None:
    """Take note of a node that was touched."""
    trees = board.trees
    flipped = _touch(nodes, scoring, board, row)
    climb(trees.least, trees.first, row)
    if flipped >= 0:
        _climb_from(trees, board.terrain, flipped)


@bare
def settle(nodes: Nodes, scoring: Scoring, board: Board, rows: NDArray[np.int64]) -> None:
    """Take note of nodes that were touched; `rows` ascend, and are of no use afterwards."""
    trees = board.trees
    for row in rows:
        flipped = _touch(nodes, scoring, board, row)
        if flipped >= 0:
            _climb_from(trees, board.terrain, flipped)
    climb_all(trees.least, trees.first, rows)


@bare
def build(
    nodes: Nodes,
    scoring: Scoring,
    board: Board,
    columns: NDArray[np.int64],
    chosen: NDArray[np.int64],
) -> None:
    """Write the scores of every node for some columns, and count room in some empty lanes.

    Without the matches above.
    """
    trees, states, lanes, terrain, _ = board
    for row in range(nodes.id.shape[0]):
        place = find_state(nodes, states, row)
        if not is_known(states, place):
            learn(nodes, scoring, trees, states, lanes, row, place)
        profile = trees.profile[row]
        for column in columns:
            known = max(states.score[place, column], trees.shut[profile, column])
            trees.least[row, column] = NO if known == NO else known + trees.spare[row]
        for lane in chosen:
            shut = trees.shut[profile, lanes.column[lane]] == NO
            _count(lanes, terrain, row, lane, 0 if shut else states.room[place, lane])


@bare
def score_again(nodes: Nodes, scoring: Scoring, board: Board, row: int, column: int) -> int:
    """The score of one column on a node as it is now, which nothing is told of."""
    states = board.states
    place = find_state(nodes, states, row)
    if is_known(states, place):
        return int(states.score[place, column])
    models, cuts, shapes, rules, seen, trial, _ = scoring
    node = look_at(nodes, models, rules, row, seen)
    _reorder(seen, trial, states.order)
    return _bounded(score(node, cuts, shapes, rules, seen, trial, board.trees.shape[column]))


@bare
def learn(
    nodes: Nodes,
    scoring: Scoring,
    trees: Trees,
    states: States,
    lanes: Lanes,
    row: int,
    place: int,
) -> None:
    """Work out what is not known yet of the state that was looked for."""
    claim(states, place)
    models, cuts, shapes, rules, seen, trial, _ = scoring
    node = look_at(nodes, models, rules, row, seen)
    _reorder(seen, trial, states.order)
    for column in trees.active:
        if states.score[place, column] == UNKNOWN:
            found = score(node, cuts, shapes, rules, seen, trial, trees.shape[column])
            states.score[place, column] = _bounded(found)
    for lane in lanes.active:
        if states.room[place, lane] == NO_ROOM_YET:
            shape = trees.shape[lanes.column[lane]]
            most = lanes.most[lane]
            states.room[place, lane] = room_for(nodes, cuts, shapes, shape, row, most, seen)


@bare
def _climb_from(trees: Trees, terrain: Terrain, vertex: int) -> None:
    for at in range(terrain.first_row[vertex], terrain.first_row[vertex + 1]):
        climb(trees.least, trees.first, terrain.rows[at])


@inlined
def _bounded(score: int) -> int:
    return score if score == NO else int(max(-MOST, min(score, MOST)))


@inlined
def _touch(nodes: Nodes, scoring: Scoring, board: Board, row: int) -> int:
    """Bring scores and room of a node up to date: the domain that began or ceased to be whole."""
    trees, states, lanes, terrain, _ = board
    place = find_state(nodes, states, row)
    if not is_known(states, place):
        learn(nodes, scoring, trees, states, lanes, row, place)
    profile = trees.profile[row]
    write_leaf(trees.least, row, states.score, place, trees.shut, profile, trees.spare[row])
    for lane in lanes.active:
        shut = trees.shut[profile, lanes.column[lane]] == NO
        _count(lanes, terrain, row, lane, 0 if shut else states.room[place, lane])
    return _note_use(nodes, trees, lanes, terrain, row)


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
    _spare(trees, terrain, vertex, 0 if used else SPARE)
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


@bare
def _spare(trees: Trees, terrain: Terrain, vertex: int, spare: int) -> None:
    for at in range(terrain.first_row[vertex], terrain.first_row[vertex + 1]):
        row = terrain.rows[at]
        more = spare - trees.spare[row]
        trees.spare[row] = spare
        for column in range(trees.least.shape[1]):
            known = trees.least[row, column]
            trees.least[row, column] = known if known == NO else known + more


@inlined
def _reorder(seen: View, room: View, order: NDArray[np.int64]) -> None:
    # A score must not depend on the order of the devices, for it is that of all such nodes.
    for line in range(seen.shape[0]):
        for at in range(order.shape[0]):
            room[line, at] = seen[line, order[at]]
    for line in range(seen.shape[0]):
        for at in range(order.shape[0]):
            seen[line, at] = room[line, at]
