"""Puts the waiting jobs of a pool in order: by submit, or by urgency and age."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.policies.time_order import LEAST_BACKLOG_S, TimeOrder, doublings

_AGED = -1e18
"""Before whatever an order says; among these, by submit."""


class Line(NamedTuple):
    """What the order of J jobs depends on; jobs are numbered by their submits."""

    submitted: NDArray[np.float64]
    size: NDArray[np.int64]
    form: NDArray[np.int64]
    """(J) number of the jobs that are alike: owner, size and request."""
    hurry: NDArray[np.float64]
    """(J) E[1 / run], 1/s."""
    length: NDArray[np.float64]
    """(J) E[run], s."""
    place: NDArray[np.float64]
    """(J) the smallest first."""
    aged: NDArray[np.bool_]


class Forms(NamedTuple):
    """What happens to jobs that are alike."""

    waiting: NDArray[np.int64]
    running: NDArray[np.int64]
    ended: NDArray[np.float64]
    """When the last one did."""
    oldest: NDArray[np.int64]
    """The first job that waits."""


@njit(cache=True, nogil=True)
def rank(
    line: Line,
    forms: Forms,
    order: NDArray[np.int64],
    policy: TimeOrder,
    pool: int,
    backlog: float,
    now: float,
) -> None:
    """Sort `order`, the jobs that wait. `backlog`: the largest that was seen, in seconds.

    `pool`: size of the whole. Fast when it is nearly sorted, as after the last event.
    """
    if not policy.by_urgency:
        for job in order:
            line.place[job] = job
            line.aged[job] = False
        _sort(line, order)
        return
    cap = policy.ageing.cap * backlog
    worth = policy.urgency.doubling * max(backlog, LEAST_BACKLOG_S)
    find_oldest(line, forms, order)
    aged = 0
    for job in order:
        line.place[job] = _place(line, forms, policy, job, worth, now)
        patience = cap * (1.0 - policy.ageing.wide * line.size[job] / pool)
        line.aged[job] = now - line.submitted[job] > patience
        if line.aged[job]:
            line.place[job] = _AGED + job
            aged += 1
    _sort(line, order)
    promoted = 0
    for at in range(aged):
        job = order[at]
        waited = now - line.submitted[job]
        if promoted < policy.ageing.promoted or waited > cap * policy.ageing.beyond:
            promoted += 1
        else:
            line.aged[job] = False
            line.place[job] = _place(line, forms, policy, job, worth, now)
    if promoted < aged:
        _sort(line, order)


@njit(cache=True, nogil=True)
def find_oldest(line: Line, forms: Forms, order: NDArray[np.int64]) -> None:
    """Note the oldest job of every form that waits."""
    for job in order:
        forms.oldest[line.form[job]] = job
    for job in order:
        forms.oldest[line.form[job]] = min(job, forms.oldest[line.form[job]])


@njit(cache=True, nogil=True)
def _place(
    line: Line, forms: Forms, policy: TimeOrder, job: int, worth: float, now: float
) -> float:
    urgency, form = policy.urgency, line.form[job]
    powers = doublings(urgency, (line.hurry[job], line.length[job]), line.size[job])
    # How long the first of many runs tells of all the others.
    unknown = forms.running[form] < urgency.scouts and forms.ended[form] < line.submitted[job]
    if unknown and forms.oldest[form] == job:
        powers += urgency.scout * np.log2(float(forms.waiting[form]))
    return float(-(worth * powers + now - line.submitted[job]))


@njit(cache=True, nogil=True)
def _sort(line: Line, order: NDArray[np.int64]) -> None:
    for at in range(1, order.shape[0]):
        job = order[at]
        before = at - 1
        while before >= 0 and _after(line, order[before], job):
            order[before + 1] = order[before]
            before -= 1
        order[before + 1] = job


@njit(cache=True, nogil=True)
def _after(line: Line, one: int, other: int) -> bool:
    if line.place[one] != line.place[other]:
        return bool(line.place[one] > line.place[other])
    return bool(one > other)
