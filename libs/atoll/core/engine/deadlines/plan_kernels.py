"""Gives jobs their plans: one at a time, or all of them again in the order of deadlines."""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.deadlines.fill_kernels import NO_PLAN, NONE, Draft, Rows, fill, seconds_for
from atoll.core.engine.deadlines.profile_kernels import Profile, take

CHEAPEST: Final = 0
"""The plan of the fewest device-seconds."""
KEEP: Final = 1
"""The present size when it will do, and else the cheapest."""
SMALLEST: Final = 2
"""The smallest bound of sizes that will do (ElasticFlow's minimum satisfactory share)."""


@njit(cache=True, nogil=True)
def settle(rows: Rows, row: int, now: int) -> None:
    """Count the work that was done since the row was last seen."""
    if rows.at[row] != NONE:
        worked = now - max(rows.seen[row], rows.idle[row])
        rows.left[row] -= max(0, worked) * rows.rate[row, rows.at[row]]
    rows.seen[row] = now


@njit(cache=True, nogil=True)
def settle_all(rows: Rows, active: NDArray[np.int64], now: int) -> None:
    """Settle all rows of `active`."""
    for row in active:
        settle(rows, row, now)


@njit(cache=True, nogil=True)
def book(profile: Profile, rows: Rows, row: int, now: int, sign: int) -> None:
    """Take the plan's devices out of the profile from `now` on (sign 1) or give them back (-1)."""
    for i in range(rows.steps[row]):
        at = rows.step_at[row, i]
        until = rows.step_from[row, i + 1] if i + 1 < rows.steps[row] else rows.end[row]
        if at != NONE:
            take(profile, max(now, rows.step_from[row, i]), until, sign * rows.size[row, at])


@njit(cache=True, nogil=True)
def make_plan(profile: Profile, rows: Rows, row: int, now: int, how: int, out: Draft) -> bool:
    """Plan a row whose own devices are not in the profile, and book it; False: it has no plan."""
    rows.steps[row] = 0
    if how == KEEP and rows.at[row] != NONE:
        steps, end, _ = fill(profile, rows, row, now, rows.at[row], rows.deadline[row], out)
        if steps == 1 and out.at[0] == rows.at[row]:
            keep(rows, row, steps, end, out)
    if rows.steps[row] == 0:
        _cheapest(profile, rows, row, now, how, out)
    book(profile, rows, row, now, 1)
    return bool(rows.steps[row] > 0)


@njit(cache=True, nogil=True)
def replan(
    profile: Profile, rows: Rows, order: NDArray[np.int64], now: int, how: int, out: Draft
) -> int:
    """Plan all rows of `order` one after another: rows that got a plan before one did not.

    The profile holds none of them. What cannot change its size yet keeps its devices until then.
    """
    for row in order:
        _hold_locked(profile, rows, row, now, 1)
    for i in range(order.size):
        _hold_locked(profile, rows, order[i], now, -1)
        if not make_plan(profile, rows, order[i], now, how, out):
            return i
    return order.size


@njit(cache=True, nogil=True)
def earliest_end(profile: Profile, rows: Rows, row: int, now: int, latest: int, out: Draft) -> int:
    """When the row could be through at the earliest, whatever its deadline; `latest`: never."""
    best = latest
    for cap in range(rows.sizes[row]):
        steps, end, _ = fill(profile, rows, row, now, cap, latest, out)
        if steps != NO_PLAN:
            best = min(best, end)
    return best


@njit(cache=True, nogil=True)
def keep(rows: Rows, row: int, steps: int, end: int, out: Draft) -> None:
    """Make a draft the row's plan."""
    for i in range(steps):
        rows.step_from[row, i], rows.step_at[row, i] = out.start[i], out.at[i]
    rows.steps[row], rows.end[row] = steps, end


@njit(cache=True, nogil=True)
def _cheapest(profile: Profile, rows: Rows, row: int, now: int, how: int, out: Draft) -> None:
    best = -1
    for cap in range(rows.sizes[row]):
        steps, end, area = fill(profile, rows, row, now, cap, rows.deadline[row], out)
        if steps == NO_PLAN or (best >= 0 and area >= best):
            continue
        best = area
        keep(rows, row, steps, end, out)
        if how == SMALLEST:
            return


@njit(cache=True, nogil=True)
def _hold_locked(profile: Profile, rows: Rows, row: int, now: int, sign: int) -> None:
    at = rows.at[row]
    if at == NONE:
        return
    finish = max(now, rows.idle[row]) + seconds_for(rows.left[row], rows.rate[row, at])
    take(profile, now, min(finish, rows.lock[row]), sign * rows.size[row, at])
