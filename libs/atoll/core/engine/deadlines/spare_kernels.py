"""Lends spare devices: to the job that gains the most time by each."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.deadlines.fill_kernels import NONE, Draft, Rows, seconds_for
from atoll.core.engine.deadlines.plan_kernels import book, keep
from atoll.core.engine.deadlines.profile_kernels import Profile, stays, step_at


@njit(cache=True, nogil=True)
def grow(
    profile: Profile,
    rows: Rows,
    order: NDArray[np.int64],
    now: int,
    spare: int,
    knee: float,
    out: Draft,
) -> int:
    """Let jobs of `order` be larger from `now` on, by at most `spare` devices: how many times.

    `order`: ties go to the first. `knee`: a size counts only while each device
    more does this part of what those before do on average. A plan is only ever replaced by one that
    ends earlier and stays at its size.
    """
    grown, before = 0, -1
    while grown > before and spare > 0:
        before = grown
        gain = np.zeros(order.size)
        for i in range(order.size):
            gain[i], _ = _best_size(profile, rows, order[i], now, spare, knee)
        for i in np.argsort(-gain, kind="mergesort"):
            if gain[i] <= 0 or spare <= 0:
                break
            _, wanted = _best_size(profile, rows, order[i], now, spare, knee)
            if wanted != NONE:
                spare -= _enlarge(profile, rows, order[i], now, wanted, out)
                grown += 1
    return grown


@njit(cache=True, nogil=True)
def _best_size(
    profile: Profile, rows: Rows, row: int, now: int, spare: int, knee: float
) -> tuple[float, int]:
    best, wanted = 0.0, NONE
    if rows.steps[row] == 0 or rows.step_from[row, 0] > now:
        return best, wanted
    at = rows.step_at[row, 0]
    if at == NONE or (rows.at[row] != NONE and rows.lock[row] > now):
        return best, wanted
    if rows.hold[row] > rows.end[row] - now and rows.at[row] != NONE:
        return best, wanted
    book(profile, rows, row, now, -1)
    step = step_at(profile, now)
    for new in range(at + 1, rows.sizes[row]):
        more = rows.size[row, new] - rows.size[row, at]
        if more > spare or _worth(rows, row, new) < knee:
            break
        end = _end_at(rows, row, now, new)
        earlier = (rows.end[row] - end) / more
        if earlier > best and stays(profile, step, end, rows.size[row, new]):
            best, wanted = earlier, new
    book(profile, rows, row, now, 1)
    return best, wanted


@njit(cache=True, nogil=True)
def _worth(rows: Rows, row: int, size: int) -> float:
    """What each device more does, beside the mean of those before: 1 where it scales evenly."""
    before = rows.rate[row, size - 1] / rows.size[row, size - 1]
    rate = rows.rate[row, size] - rows.rate[row, size - 1]
    return float(rate / (rows.size[row, size] - rows.size[row, size - 1]) / before)


@njit(cache=True, nogil=True)
def _end_at(rows: Rows, row: int, now: int, size: int) -> int:
    return int(now + rows.cost[row]) + seconds_for(rows.left[row], rows.rate[row, size])


@njit(cache=True, nogil=True)
def _enlarge(profile: Profile, rows: Rows, row: int, now: int, new: int, out: Draft) -> int:
    more = rows.size[row, new] - rows.size[row, rows.step_at[row, 0]]
    book(profile, rows, row, now, -1)
    out.start[0], out.at[0] = now, new
    keep(rows, row, 1, _end_at(rows, row, now, new), out)
    book(profile, rows, row, now, 1)
    return int(more)
