"""Packs the tasks of a group onto chosen nodes."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.form_kernels import device_for, score
from atoll.core.engine.score_kernels import NO, Scoring, look_at
from atoll.core.state.columns import Nodes
from atoll.core.state.fit_kernels import ANY_DEVICE, NO_FIT
from atoll.core.state.ledger_kernels import give_tasks
from atoll.core.state.statement_kernels import Journal, place


class Bound(NamedTuple):
    """How many tasks of a group one domain may have."""

    domain: NDArray[np.int64]
    """(R) number of each row's domain."""
    used: NDArray[np.int64]
    """(D) tasks that each domain has; counted on."""
    most: int


@njit(cache=True, nogil=True)
def pack(
    nodes: Nodes,
    scoring: Scoring,
    journal: Journal,
    rows: NDArray[np.int64],
    bound: Bound,
    shape: int,
    count: int,
    units_left: int,
) -> tuple[int, int]:
    """Place up to `count` tasks on the best of `rows` one after another: (placed, charge).

    No domain gets more tasks than its bound, those included that it has already.
    Stops before a task whose charge is more than what is left then; the charge returned
    includes it. There must be room in the journal.
    """
    models, cuts, shapes, rules, seen, trial, _ = scoring
    scores = np.empty(rows.shape[0], np.int32)
    for i in range(rows.shape[0]):
        node = look_at(nodes, models, rules, rows[i], seen)
        scores[i] = score(node, cuts, shapes, rules, seen, trial, shape)
        if bound.used[bound.domain[i]] >= bound.most:
            scores[i] = NO
    units = 0
    for placed in range(count):
        i = _least(scores)
        if i < 0:
            return placed, units
        node = look_at(nodes, models, rules, rows[i], seen)
        device = device_for(node, shapes, rules, seen, shape)
        units += place(nodes, models, cuts, shapes, journal, shape, rows[i], device)
        if units > units_left:
            journal.size[0] -= 1
            give_tasks(nodes, journal.uses, journal.size[0], journal.size[0] + 1)
            return placed, units
        node = look_at(nodes, models, rules, rows[i], seen)
        scores[i] = score(node, cuts, shapes, rules, seen, trial, shape)
        domain = bound.domain[i]
        bound.used[domain] += 1
        if bound.used[domain] >= bound.most:
            scores[bound.domain == domain] = NO
    return count, units


@njit(cache=True, nogil=True)
def search(
    nodes: Nodes,
    scoring: Scoring,
    journal: Journal,
    rows: NDArray[np.int64],
    allowed: NDArray[np.bool_],
    shape: NDArray[np.int64],
    group: NDArray[np.int64],
    tries: int,
) -> bool:
    """Place all tasks by trying rows one after another, taking back what leads nowhere.

    `group`: (T) of every task, equal ones side by side; `shape`: (G) of every group;
    `allowed`: (G, rows). False, and nothing placed, when there is no way or none was found
    in so many tries. There must be room in the journal.
    """
    models, cuts, shapes = scoring.models, scoring.cuts, scoring.shapes
    size = group.shape[0]
    # Of equal tasks the later one begins at the earlier one's row: the rest is symmetry.
    choice = np.full(size + 1, -1, np.int64)
    task = 0
    while 0 <= task < size:
        mine, at, found = group[task], choice[task], False
        while not found and at + 1 < rows.shape[0] and tries > 0:
            at += 1
            if allowed[mine, at]:
                tries -= 1
                charge = place(
                    nodes, models, cuts, shapes, journal, shape[mine], rows[at], ANY_DEVICE
                )
                found = charge != NO_FIT
        if found:
            choice[task] = at
            task += 1
            equal = task < size and group[task] == mine
            choice[task] = at - 1 if equal else -1
        else:
            task -= 1
            if task >= 0:
                journal.size[0] -= 1
                give_tasks(nodes, journal.uses, journal.size[0], journal.size[0] + 1)
    return bool(task == size)


@njit(cache=True, nogil=True)
def _least(scores: NDArray[np.int32]) -> int:
    at, least = -1, NO
    for i in range(scores.shape[0]):
        if scores[i] < least:
            at, least = i, scores[i]
    return at
