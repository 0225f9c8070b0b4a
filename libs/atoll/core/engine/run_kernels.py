"""Places jobs one after another in the order of the queue: single tasks and gangs of equal ones."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.board_kernels import Board, settle
from atoll.core.engine.form_kernels import device_for
from atoll.core.engine.gang_kernels import place_gang
from atoll.core.engine.order_kernels import NOBODY, Forest, Line, advance, head, leave
from atoll.core.engine.score_kernels import Scoring, look_at
from atoll.core.engine.tree_kernels import best
from atoll.core.state.columns import SHAPE_PROFILE, Nodes
from atoll.core.state.compiled import bare, inlined
from atoll.core.state.fit_kernels import UNITS
from atoll.core.state.ledger_kernels import give_tasks
from atoll.core.state.shares import CPU, DEVICES, MEMORY
from atoll.core.state.statement_kernels import Journal, has_room, place

OUTSIDE: Final = 0
"""Instead of a number of tasks: the class is placed by the caller."""

WAITING: Final = 0
"""Worth a try."""
NO_PLACE: Final = 1
AT_LIMIT: Final = 2

DONE: Final = -1
"""Every class is through or does not fit."""
FULL: Final = -2
"""The journal needs room, or enough was placed."""
CUT: Final = -3
"""A class has more jobs than the snapshot shows: others must not overtake them."""


GO_ON: Final = -4
PLACED: Final = -5
"""A job of the first class was placed."""
LEFT: Final = -6
"""A class has left the line: it is through, or does not fit."""


class Gangs(NamedTuple):
    """Gangs in the kernel, by class and by place in `Line.column`."""

    size: NDArray[np.int64]
    """(C) tasks of a job, or OUTSIDE."""
    first_level: NDArray[np.int64]
    """(C) levels of the terrain on which a gang may be placed whole, the narrowest first."""
    end_level: NDArray[np.int64]
    lane: NDArray[np.int64]
    """Lane of each alternative; negative for a single task that may go anywhere."""
    shares: NDArray[np.int64]
    """(1) of devices that one task takes, at most."""


class Quota(NamedTuple):
    """Use and limit of the queues that have one, in 1/56 block."""

    kind: NDArray[np.int64]
    """Device kind that a limit is of; negative for all together."""
    used: NDArray[np.int64]
    limit: NDArray[np.int64]


@bare
def run(
    nodes: Nodes,
    scoring: Scoring,
    board: Board,
    line: Line,
    forest: Forest,
    gangs: Gangs,
    quota: Quota,
    journal: Journal,
    budget: int,
) -> tuple[int, int]:
    """Place up to `budget` jobs: (what stopped it, jobs placed).

    What stopped it is DONE, FULL, CUT, or a class: one that is placed outside and whose turn
    it is, or one of gangs that has just been found not to fit.
    """
    placed = 0
    while True:
        told = step(nodes, scoring, board, line, forest, gangs, quota, journal, placed == budget)
        if told == PLACED:
            placed += 1
        elif told != LEFT:
            return told, placed


@bare
def step(
    nodes: Nodes,
    scoring: Scoring,
    board: Board,
    line: Line,
    forest: Forest,
    gangs: Gangs,
    quota: Quota,
    journal: Journal,
    enough: bool,
) -> int:
    """Give the first class its turn: PLACED, LEFT, or what stops a run.

    `enough`: no more jobs are to be placed.
    """
    group = head(forest)
    if group == NOBODY:
        return DONE
    stopped = _stopped(line, gangs, journal, group, enough)
    if stopped != GO_ON:
        return stopped
    if line.next[group] == line.end[group] or line.state[group] != WAITING:
        leave(line, forest, group)
        return LEFT
    if _place_next(nodes, scoring, board, line, forest, gangs, quota, journal, group):
        line.next[group] += 1
        advance(line, forest, group)
        return PLACED
    leave(line, forest, group)
    return group if line.state[group] == NO_PLACE and gangs.size[group] > 1 else LEFT


@inlined
def _stopped(line: Line, gangs: Gangs, journal: Journal, group: int, enough: bool) -> int:
    if line.next[group] == line.end[group]:
        return CUT if line.more[group] else GO_ON
    if line.state[group] != WAITING:
        return GO_ON
    if gangs.size[group] == OUTSIDE:
        return group
    return FULL if enough or not has_room(journal, gangs.size[group], gangs.shares[0]) else GO_ON


@inlined
def _place_next(
    nodes: Nodes,
    scoring: Scoring,
    board: Board,
    line: Line,
    forest: Forest,
    gangs: Gangs,
    quota: Quota,
    journal: Journal,
    group: int,
) -> bool:
    line.state[group] = NO_PLACE
    mark = journal.size[0]
    for i in range(line.first_column[group], line.first_column[group + 1]):
        if gangs.lane[i] < 0:
            placed = _place_task(nodes, scoring, board, journal, line.column[i])
        else:
            first, end = gangs.first_level[group], gangs.end_level[group]
            count, lane = gangs.size[group], gangs.lane[i]
            placed = place_gang(nodes, scoring, board, journal, lane, count, first, end)
        if not placed:
            continue
        sum_up(nodes, scoring, journal, mark, forest.amount)
        if take_quota(line, quota, group, forest.amount):
            for task in range(mark, journal.size[0]):
                journal.job[task] = line.next[group]
                journal.group[task] = 0
            _settle(nodes, scoring, board, journal, mark)
            line.state[group] = WAITING
            return True
        give_tasks(nodes, journal.uses, mark, journal.size[0])
        journal.size[0] = mark
        line.state[group] = AT_LIMIT
    return False


@bare
def _place_task(
    nodes: Nodes, scoring: Scoring, board: Board, journal: Journal, column: int
) -> bool:
    row = best(board.trees, board.states, column)
    if row < 0:
        return False
    models, cuts, shapes, rules, seen, _, _ = scoring
    shape = board.trees.shape[column]
    node = look_at(nodes, models, rules, row, seen)
    device = device_for(node, shapes, rules, seen, shape)
    place(nodes, models, cuts, shapes, journal, shape, row, device)
    return True


@inlined
def _settle(nodes: Nodes, scoring: Scoring, board: Board, journal: Journal, mark: int) -> None:
    last = -1
    for task in range(mark, journal.size[0]):
        # A gang fills one node after another.
        row = journal.uses.row[task]
        if row != last and last >= 0:
            settle(nodes, scoring, board, last)
        last = row
    settle(nodes, scoring, board, last)


@bare
def take_quota(line: Line, quota: Quota, group: int, amount: NDArray[np.int64]) -> bool:
    """Charge a class's limits, or none of them when one would be exceeded. `amount`: (R)."""
    for i in range(line.first_limit[group], line.first_limit[group + 1]):
        limit = line.limit[i]
        units = _of_kind(amount, quota.kind[limit])
        if units > 0 and quota.used[limit] + units > quota.limit[limit]:
            return False
    for i in range(line.first_limit[group], line.first_limit[group + 1]):
        quota.used[line.limit[i]] += _of_kind(amount, quota.kind[line.limit[i]])
    return True


@bare
def sum_up(
    nodes: Nodes, scoring: Scoring, journal: Journal, mark: int, amount: NDArray[np.int64]
) -> None:
    """Write to `amount` what the tasks since the mark take of every resource."""
    for resource in range(amount.shape[0]):
        amount[resource] = 0
    uses = journal.uses
    models, cuts, shapes = scoring.models, scoring.cuts, scoring.shapes
    for task in range(mark, journal.size[0]):
        amount[CPU] += uses.cpu[task]
        amount[MEMORY] += uses.memory[task]
        for grant in range(uses.first_grant[task], uses.first_grant[task + 1]):
            model = nodes.model[uses.row[task], uses.device[grant]]
            units = UNITS * uses.blocks[grant]
            if uses.bits[grant] != 0:
                profile = shapes[journal.shape[task], SHAPE_PROFILE]
                units += cuts.charge[models.cut[model], profile]
            amount[DEVICES + models.kind[model]] += units


@inlined
def _of_kind(amount: NDArray[np.int64], kind: int) -> int:
    if kind >= 0:
        return int(amount[DEVICES + kind])
    units = 0
    for column in range(DEVICES, amount.shape[0]):
        units += amount[column]
    return units
