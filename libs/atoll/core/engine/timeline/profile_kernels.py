"""Free capacity over time as a step function, and the earliest hole in it."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray


class Steps(NamedTuple):
    """A step function: `free[i]` holds from `at[i]` until `at[i + 1]`, the last one for ever.

    Times rise strictly; `at[0]` is the beginning. Amounts may be negative.
    """

    at: NDArray[np.float64]
    """(S) seconds; the first `size[0]` count, the rest is room for more."""
    free: NDArray[np.int64]
    size: NDArray[np.int64]
    """(1)."""


@njit(cache=True, nogil=True)
def find_hole(steps: Steps, need: int, length: float, earliest: float) -> float:
    """The earliest start, not before `earliest`, of `length` seconds with `need` free.

    Infinity when there is none. One scan that carries the start of the current hole. A
    hole of no length is a moment with `need` free.
    """
    at, free, size = steps.at, steps.free, steps.size[0]
    start = np.inf
    for i in range(size):
        until = at[i + 1] if i + 1 < size else np.inf
        if until <= earliest:
            continue
        if free[i] < need:
            start = np.inf
            continue
        if start == np.inf:
            start = max(at[i], earliest)
        if until >= start + length:
            return start
    return np.inf


@njit(cache=True, nogil=True)
def fits_at(steps: Steps, need: int, length: float, start: float) -> bool:
    """Whether `need` is free from `start` for `length` seconds."""
    at, free, size = steps.at, steps.free, steps.size[0]
    for i in range(_place(steps, start), size):
        if i >= 0 and at[i] >= start + length and at[i] > start:
            return True
        if i < 0 or free[i] < need:
            return False
    return True


@njit(cache=True, nogil=True)
def add(steps: Steps, start: float, end: float, amount: int) -> None:
    """Add `amount`, negative for a reservation, from `start` to `end`.

    What lies before the beginning is cut off. The caller has left room for two more steps.
    """
    start = max(start, steps.at[0])
    if end <= start:
        return
    first = _split(steps, start)
    last = _split(steps, end) if end < np.inf else steps.size[0]
    for i in range(first, last):
        steps.free[i] += amount


@njit(cache=True, nogil=True)
def trim(steps: Steps, now: float) -> None:
    """Begin at `now`, and join steps of the same height."""
    at, free = steps.at, steps.free
    first = max(0, _place(steps, now))
    size = 0
    for i in range(first, steps.size[0]):
        if size == 0 or free[i] != free[size - 1]:
            at[size], free[size] = max(at[i], now), free[i]
            size += 1
    steps.size[0] = size


@njit(cache=True, nogil=True)
def of_ends(
    steps: Steps, free: int, ends: NDArray[np.float64], amounts: NDArray[np.int64], now: float
) -> None:
    """Fill from what is free now and what ends when; `ends` (E) rise.

    What should have ended already ends a moment after `now`: it still runs. There must be
    room for E + 1 steps.
    """
    at, level = steps.at, steps.free
    at[0], level[0] = now, free
    size = 1
    soon = np.nextafter(now, np.inf)
    for i in range(ends.shape[0]):
        end = max(ends[i], soon)
        if end > at[size - 1]:
            at[size] = end
            level[size] = level[size - 1]
            size += 1
        level[size - 1] += amounts[i]
    steps.size[0] = size


@njit(cache=True, nogil=True)
def _place(steps: Steps, time: float) -> int:
    """The step that holds at `time`; -1 before the beginning."""
    low, high = 0, steps.size[0]
    while low < high:
        middle = (low + high) // 2
        if steps.at[middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low - 1


@njit(cache=True, nogil=True)
def _split(steps: Steps, time: float) -> int:
    """The step that begins at `time`, made if need be."""
    at, free = steps.at, steps.free
    i = _place(steps, time)
    if at[i] == time:
        return i
    for j in range(steps.size[0], i + 1, -1):
        at[j], free[j] = at[j - 1], free[j - 1]
    at[i + 1], free[i + 1] = time, free[i]
    steps.size[0] += 1
    return i + 1
