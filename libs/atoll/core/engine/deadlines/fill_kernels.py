"""Fills a job into the profile: which size it has when, such that it ends by its deadline.

A change of size costs a pause, and the next change has to wait until it has
paid: no step of a plan but the last is shorter than the job's hold.
"""

import math
from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.deadlines.profile_kernels import Profile, lasts_until, stays, step_at

NONE: Final = -1
"""No size: the job holds nothing."""
NO_PLAN: Final = -1
MOST_STEPS: Final = 16
"""A plan of more is none."""
_ROOM: Final = MOST_STEPS + 1


class Rows(NamedTuple):
    """Jobs in the kernel: N rows, up to M sizes each, plans of MOST_STEPS steps and the first.

    Times are whole seconds, sizes are devices; a size is named by its index.
    """

    deadline: NDArray[np.int64]
    size: NDArray[np.int64]
    """(N, M) rising."""
    rate: NDArray[np.float64]
    """(N, M) work per second."""
    sizes: NDArray[np.int64]
    """(N) sizes in use."""
    cost: NDArray[np.int64]
    """(N) pause after each change of size."""
    hold: NDArray[np.int64]
    """(N) from one change of size to the next, at least."""
    left: NDArray[np.float64]
    """(N) work left at `seen`."""
    seen: NDArray[np.int64]
    at: NDArray[np.int64]
    """(N) present size."""
    idle: NDArray[np.int64]
    """(N) nothing is done before."""
    lock: NDArray[np.int64]
    """(N) the size does not change before."""
    steps: NDArray[np.int64]
    """(N) steps of the plan; 0: it has none."""
    step_from: NDArray[np.int64]
    """(N, steps) start of each step."""
    step_at: NDArray[np.int64]
    """(N, steps) size of each step."""
    end: NDArray[np.int64]
    """(N) when the plan is through."""


class Draft(NamedTuple):
    """A plan that is not kept yet."""

    start: NDArray[np.int64]
    at: NDArray[np.int64]


def rows_of(jobs: int, sizes: int) -> Rows:
    """Room for so many jobs, each with so many sizes."""
    whole, work = np.int64, np.float64

    def numbers() -> NDArray[np.int64]:
        return np.zeros(jobs, whole)

    return Rows(
        deadline=numbers(),
        size=np.zeros((jobs, sizes), whole),
        rate=np.zeros((jobs, sizes), work),
        sizes=numbers(),
        cost=numbers(),
        hold=numbers(),
        left=np.zeros(jobs, work),
        seen=numbers(),
        at=np.full(jobs, NONE, whole),
        idle=numbers(),
        lock=numbers(),
        steps=numbers(),
        step_from=np.zeros((jobs, _ROOM), whole),
        step_at=np.zeros((jobs, _ROOM), whole),
        end=numbers(),
    )


def draft() -> Draft:
    """An empty one."""
    return Draft(np.zeros(_ROOM, np.int64), np.zeros(_ROOM, np.int64))


@njit(cache=True, nogil=True)
def fill(
    profile: Profile, rows: Rows, row: int, now: int, cap: int, deadline: int, out: Draft
) -> tuple[int, int, int]:
    """Plan with sizes up to index `cap`: (steps, end, device-seconds); NO_PLAN as steps: none.

    The row's work has to be settled at `now`, and the profile free of its own plan.
    """
    at, left, area = rows.at[row], rows.left[row], 0
    time, idle = now, max(0, rows.idle[row] - now)
    lock = max(now, rows.lock[row])
    out.start[0], out.at[0], steps = now, at, int(at != NONE)
    step = step_at(profile, now)
    while time < deadline and steps <= MOST_STEPS:
        if time >= lock:
            new = _choose(profile, rows, row, time, step, cap, at, left, idle)
            if new != at:
                # A change at once takes the place of the present size.
                steps -= int(steps > 0 and out.start[steps - 1] == time)
                out.start[steps], out.at[steps] = time, new
                steps += 1
                at, idle, lock = new, rows.cost[row], time + rows.hold[row]
        until = _until(profile, step, time, lock, deadline)
        if at != NONE:
            devices, rate = rows.size[row, at], rows.rate[row, at]
            if profile.free[step] < devices:
                return NO_PLAN, 0, 0
            finish = time + idle + seconds_for(left, rate)
            if finish <= until:
                return steps, finish, area + devices * (finish - time)
            area += devices * (until - time)
            left -= max(0, until - time - idle) * rate
            idle = max(0, idle - (until - time))
        time = until
        if step + 1 < profile.steps[0] and profile.times[step + 1] <= time:
            step += 1
    return NO_PLAN, 0, 0


@njit(cache=True, nogil=True)
def seconds_for(work: float, rate: float) -> int:
    """Whole seconds that the work takes."""
    return math.ceil(work / rate - 1e-9)


@njit(cache=True, nogil=True)
def _until(profile: Profile, step: int, time: int, lock: int, deadline: int) -> int:
    until = deadline
    if step + 1 < profile.steps[0]:
        until = min(until, profile.times[step + 1])
    if time < lock < until:
        until = lock
    return until


@njit(cache=True, nogil=True)
def _choose(
    profile: Profile,
    rows: Rows,
    row: int,
    time: int,
    step: int,
    cap: int,
    at: int,
    left: float,
    idle: int,
) -> int:
    must_leave = at > cap or (at != NONE and profile.free[step] < rows.size[row, at])
    top = min(cap, rows.sizes[row] - 1)
    for new in range(top, NONE, -1):
        if new == at and not must_leave:
            return at
        finish = time + rows.cost[row] + seconds_for(left, rows.rate[row, new])
        end = max(time + 1, min(finish, time + rows.hold[row]))
        if rows.size[row, new] > profile.free[step]:
            continue
        if not stays(profile, step, end, rows.size[row, new]):
            continue
        if at == NONE or must_leave:
            return new
        until = lasts_until(profile, step, finish, rows.size[row, new])
        worked = rows.rate[row, new] * (until - time - rows.cost[row])
        if worked > rows.rate[row, at] * (until - time - idle):
            return new
    return NONE if must_leave else at
