"""How many devices are free, from now into the future, as a step function.

Times are whole seconds. `free[i]` holds from `times[i]` until `times[i + 1]`,
the last one for ever.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray


class Profile(NamedTuple):
    """Free devices over time."""

    times: NDArray[np.int64]
    """Sorted; the first is before everything that is asked."""
    free: NDArray[np.int64]
    steps: NDArray[np.int64]
    """(1) in use."""


def profile_of(capacity: int, room: int, *, origin: int = 0) -> Profile:
    """`capacity` devices free from `origin` on; at most `room` steps."""
    times = np.zeros(room, np.int64)
    free = np.zeros(room, np.int64)
    times[0], free[0] = origin, capacity
    return Profile(times, free, np.ones(1, np.int64))


def enlarged(profile: Profile, room: int) -> Profile:
    """The same with room for more steps."""
    larger = profile_of(0, room)
    for before, after in zip(profile, larger, strict=True):
        after[: before.size] = before
    return larger


@njit(cache=True, nogil=True)
def take(profile: Profile, start: int, end: int, devices: int) -> None:
    """Take devices from `start` until `end`, or give them back when negative."""
    if start >= end or devices == 0:
        return
    first = _cut(profile, start)
    last = _cut(profile, end)
    for i in range(first, last):
        profile.free[i] -= devices


@njit(cache=True, nogil=True)
def step_at(profile: Profile, time: int) -> int:
    """Index of the step that `time` is in."""
    low, high = 0, profile.steps[0]
    while high - low > 1:
        middle = (low + high) // 2
        if profile.times[middle] <= time:
            low = middle
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def stays(profile: Profile, step: int, end: int, devices: int) -> bool:
    """Whether so many are free from the step on until `end`."""
    while step < profile.steps[0]:
        if profile.free[step] < devices:
            return False
        step += 1
        if step < profile.steps[0] and profile.times[step] >= end:
            return True
    return True


@njit(cache=True, nogil=True)
def lasts_until(profile: Profile, step: int, end: int, devices: int) -> int:
    """Until when so many are free from the step on, but not beyond `end`."""
    while step < profile.steps[0] and profile.times[step] < end:
        if profile.free[step] < devices:
            return int(profile.times[step])
        step += 1
    return end


@njit(cache=True, nogil=True)
def forget(profile: Profile, now: int) -> None:
    """Drop what is over, and join neighbours that are equal."""
    kept = 0
    for i in range(step_at(profile, now), profile.steps[0]):
        if kept > 0 and profile.free[kept - 1] == profile.free[i]:
            continue
        profile.times[kept], profile.free[kept] = profile.times[i], profile.free[i]
        kept += 1
    profile.steps[0] = kept


@njit(cache=True, nogil=True)
def _cut(profile: Profile, time: int) -> int:
    at = step_at(profile, time)
    if profile.times[at] == time:
        return at
    count = profile.steps[0]
    for i in range(count, at + 1, -1):
        profile.times[i], profile.free[i] = profile.times[i - 1], profile.free[i - 1]
    profile.times[at + 1], profile.free[at + 1] = time, profile.free[at]
    profile.steps[0] = count + 1
    return at + 1
