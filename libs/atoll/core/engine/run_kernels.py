"""Places single-task jobs one after another in the order of the queue."""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.order_kernels import NOBODY, Forest, Line, advance, head, leave
from atoll.core.engine.score_kernels import Scoring, device_for, look_at
from atoll.core.engine.tree_kernels import Trees, best, climb, score_columns
from atoll.core.state.columns import SHAPE_CPU, SHAPE_MEMORY, SHAPE_PROFILE, Nodes
from atoll.core.state.fit_kernels import UNITS, VIEW_KIND, charge, pick
from atoll.core.state.shares import CPU, DEVICES, MEMORY
from atoll.core.state.statement_kernels import Journal, has_room, place

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


class Quota(NamedTuple):
    """Use and limit of the queues that have one, in 1/56 block."""

    kind: NDArray[np.int64]
    """Device kind that a limit is of; negative for all together."""
    used: NDArray[np.int64]
    limit: NDArray[np.int64]


@njit(cache=True, nogil=True)
def run(
    nodes: Nodes,
    scoring: Scoring,
    trees: Trees,
    line: Line,
    forest: Forest,
    quota: Quota,
    journal: Journal,
    budget: int,
) -> tuple[int, int]:
    """Place up to `budget` jobs: (what stopped it, jobs placed).

    What stopped it is DONE, FULL, CUT, or the class of a gang whose turn it is.
    """
    placed = 0
    group = head(forest)
    while group != NOBODY:
        if line.next[group] == line.end[group]:
            if line.more[group]:
                return CUT, placed
            leave(line, forest, group)
        elif line.state[group] != WAITING:
            leave(line, forest, group)
        elif line.first_column[group] == line.first_column[group + 1]:
            return group, placed
        elif placed == budget or not has_room(journal, scoring.out.device.shape[0]):
            return FULL, placed
        elif _place_next(nodes, scoring, trees, line, forest, quota, journal, group):
            placed += 1
            line.next[group] += 1
            advance(line, forest, group)
        group = head(forest)
    return DONE, placed


@njit(cache=True, nogil=True, forceinline=True)
def _place_next(
    nodes: Nodes,
    scoring: Scoring,
    trees: Trees,
    line: Line,
    forest: Forest,
    quota: Quota,
    journal: Journal,
    group: int,
) -> bool:
    models, cuts, shapes, rules, seen, _, out = scoring
    line.state[group] = NO_PLACE
    for i in range(line.first_column[group], line.first_column[group + 1]):
        row = best(trees.least, line.column[i])
        if row < 0:
            continue
        shape = trees.shape[line.column[i]]
        node = look_at(nodes, models, rules, row, seen)
        device = device_for(node, shapes, rules, seen, shape)
        shares = pick(nodes, models, cuts, shapes, shape, row, device, seen, out, 0)
        _count(scoring, shape, shares, forest.amount)
        if not take_quota(line, quota, group, forest.amount):
            line.state[group] = AT_LIMIT
            continue
        journal.job[journal.size[0]] = line.next[group]
        journal.group[journal.size[0]] = 0
        place(nodes, models, cuts, shapes, journal, shape, row, device)
        score_columns(look_at(nodes, models, rules, row, seen), scoring, trees, row)
        climb(trees.least, row)
        line.state[group] = WAITING
        return True
    return False


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def sum_up(
    nodes: Nodes, scoring: Scoring, journal: Journal, mark: int, amount: NDArray[np.int64]
) -> None:
    """Write to `amount` what the tasks since the mark take of every resource."""
    amount[:] = 0
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


@njit(cache=True, nogil=True, forceinline=True)
def _count(scoring: Scoring, shape: int, shares: int, amount: NDArray[np.int64]) -> None:
    _, cuts, shapes, _, seen, _, out = scoring
    amount[:] = 0
    amount[CPU] = shapes[shape, SHAPE_CPU]
    amount[MEMORY] = shapes[shape, SHAPE_MEMORY]
    for share in range(shares):
        kind = seen[VIEW_KIND, out.device[share]]
        amount[DEVICES + kind] += charge(cuts, shapes, shape, seen, out, share, share + 1)


@njit(cache=True, nogil=True, forceinline=True)
def _of_kind(amount: NDArray[np.int64], kind: int) -> int:
    if kind >= 0:
        return int(amount[DEVICES + kind])
    units = 0
    for column in range(DEVICES, amount.shape[0]):
        units += amount[column]
    return units
