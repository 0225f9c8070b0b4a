"""Places single-task jobs one after another in the order of the queue."""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.score_kernels import Scoring, device_for, look_at
from atoll.core.engine.tree_kernels import Trees, best, climb, score_columns
from atoll.core.state.columns import Nodes
from atoll.core.state.fit_kernels import charge, pick
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


class Line(NamedTuple):
    """The queue in the kernel: J jobs of C classes; a class waits, or is found not to fit."""

    key: NDArray[np.float64]
    """(C) from the policy."""
    job: NDArray[np.int64]
    """(J) ids."""
    submitted_at: NDArray[np.float64]
    next: NDArray[np.int64]
    """(C) index of the class's next job."""
    end: NDArray[np.int64]
    """(C) index after its last one."""
    more: NDArray[np.bool_]
    """(C) jobs behind `end`."""
    state: NDArray[np.int8]
    """(C) WAITING, NO_PLACE or AT_LIMIT."""
    first_column: NDArray[np.int64]
    """(C + 1) into `column`: a class without columns is a gang, placed outside."""
    column: NDArray[np.int64]
    """Tree columns of a class's alternatives, the preferred first."""
    first_limit: NDArray[np.int64]
    limit: NDArray[np.int64]
    """Limits that bind the class."""
    heap: NDArray[np.int64]
    """Classes, the first in order on top."""
    heap_size: NDArray[np.int64]
    """(1)."""


class Quota(NamedTuple):
    """Use and limit of the queues that have one, in 1/56 block."""

    used: NDArray[np.int64]
    limit: NDArray[np.int64]


@njit(cache=True, nogil=True)
def run(
    nodes: Nodes,
    scoring: Scoring,
    trees: Trees,
    line: Line,
    quota: Quota,
    journal: Journal,
    budget: int,
) -> tuple[int, int]:
    """Place up to `budget` jobs: (what stopped it, jobs placed).

    What stopped it is DONE, FULL, CUT, or the class of a gang whose turn it is.
    """
    placed = 0
    while line.heap_size[0] > 0:
        group = line.heap[0]
        if line.next[group] == line.end[group]:
            if line.more[group]:
                return CUT, placed
            leave(line)
        elif line.state[group] != WAITING:
            leave(line)
        elif line.first_column[group] == line.first_column[group + 1]:
            return group, placed
        elif placed == budget or not has_room(journal, scoring.out.device.shape[0]):
            return FULL, placed
        elif _place_next(nodes, scoring, trees, line, quota, journal, group):
            placed += 1
            line.next[group] += 1
            sink(line)
    return DONE, placed


@njit(cache=True, nogil=True, forceinline=True)
def _place_next(
    nodes: Nodes,
    scoring: Scoring,
    trees: Trees,
    line: Line,
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
        units = charge(cuts, shapes, shape, seen, out, 0, shares)
        if not take_quota(line, quota, group, units):
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
def take_quota(line: Line, quota: Quota, group: int, units: int) -> bool:
    """Charge a class's limits, or none of them when one would be exceeded."""
    for i in range(line.first_limit[group], line.first_limit[group + 1]):
        limit = line.limit[i]
        if units > 0 and quota.used[limit] + units > quota.limit[limit]:
            return False
    for i in range(line.first_limit[group], line.first_limit[group + 1]):
        quota.used[line.limit[i]] += units
    return True


@njit(cache=True, nogil=True)
def heapify(line: Line) -> None:
    """Order the heap after it was filled with classes that have jobs."""
    for at in range(line.heap_size[0] // 2 - 1, -1, -1):
        _sink_from(line, at)


@njit(cache=True, nogil=True)
def leave(line: Line) -> None:
    """Take the first class off the heap."""
    line.heap_size[0] -= 1
    line.heap[0] = line.heap[line.heap_size[0]]
    _sink_from(line, 0)


@njit(cache=True, nogil=True)
def sink(line: Line) -> None:
    """Put the first class where its next job belongs."""
    group = line.heap[0]
    if line.next[group] < line.end[group]:
        _sink_from(line, 0)


@njit(cache=True, nogil=True)
def _sink_from(line: Line, at: int) -> None:
    size = line.heap_size[0]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _before(line, line.heap[child + 1], line.heap[child]):
            child += 1
        if not _before(line, line.heap[child], line.heap[at]):
            return
        line.heap[child], line.heap[at] = line.heap[at], line.heap[child]
        at = child


@njit(cache=True, nogil=True)
def _before(line: Line, one: int, other: int) -> bool:
    if line.key[one] != line.key[other]:
        return bool(line.key[one] < line.key[other])
    a, b = line.next[one], line.next[other]
    if line.submitted_at[a] != line.submitted_at[b]:
        return bool(line.submitted_at[a] < line.submitted_at[b])
    return bool(line.job[a] < line.job[b])
