"""When a waiting job will start: a point, and quantiles that past forecasts have calibrated.

The point drains what is before the job in the order into the capacity that is
expected to come free, as if it were a liquid, and then looks for a hole. What
arrives later and overtakes is not in it; the quantiles know of that from how
past points turned out: histograms of log(actual wait / point), by the length of
the point, whose level is moved until the coverage is right (Gibbs and Candes,
"Adaptive Conformal Inference Under Distribution Shift", NeurIPS'21).
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.timeline.profile_kernels import Steps, find_hole

LEVELS: Final = (0.5, 0.9)
_SOFT_S: Final = 60.0
"""Added to both waits: below a minute nobody cares."""
_BINS: Final = 512
_PER_E: Final = 24.0
"""Bins per factor e."""
_CLASSES: Final = 6
"""By the point: each four times as long as the one before, the first up to 4 minutes."""
_MEMORY: Final = 400.0
"""Forecasts that a histogram remembers."""
_STEP: Final = 0.01
_EDGE: Final = 0.002
"""The outermost quantiles of a histogram that are given."""
_DEBT: Final = 20.0
"""How far beyond these misses are remembered, so that hits make up for them."""
_USUAL: Final = 0.9
"""Standard deviation of log(actual wait / point) before anything is known."""
_WORD: Final = 8.0
"""Starts for which that counts."""
_TARGET = np.array(LEVELS)


class Calibration(NamedTuple):
    """What past forecasts turned out to be worth, by the class of their points."""

    seen: NDArray[np.float64]
    """(CLASSES, BINS) with forgetting."""
    level: NDArray[np.float64]
    """(CLASSES, LEVELS) quantile of the histogram that is given for a level."""


@njit(cache=True, nogil=True)
def drain(steps: Steps, ahead: float, need: int) -> float:
    """When `ahead` (amount x seconds) has run off and `need` is free, on expected capacity."""
    at, free, size = steps.at, steps.free, steps.size[0]
    left = ahead
    for i in range(size):
        room = max(0, free[i])
        until = at[i + 1] if i + 1 < size else np.inf
        if left <= 0.0 or (room > 0 and room * (until - at[i]) >= left):
            after = at[i] + (left / room if left > 0.0 else 0.0)
            return find_hole(steps, need, 0.0, after)
        if until < np.inf:
            left -= room * (until - at[i])
    return np.inf


@njit(cache=True, nogil=True)
def quantile(calibration: Calibration, wait: float, level: int) -> float:
    """The wait for a point of `wait` seconds that is not exceeded with LEVELS[level]."""
    group = wait_class(wait)
    count = calibration.seen[group]
    total = count.sum()
    if total <= 0.0:
        return wait
    wanted = total * min(1.0 - _EDGE, max(_EDGE, calibration.level[group, level]))
    for at in range(_BINS):
        if wanted <= count[at]:
            part = wanted / count[at] if count[at] > 0.0 else 0.0
            return _wait(at + part, wait)
        wanted -= count[at]
    return _wait(float(_BINS), wait)


@njit(cache=True, nogil=True)
def note_start(
    calibration: Calibration, point: float, given: NDArray[np.float64], actual: float
) -> None:
    """A job started. `point` and `given` (LEVELS): the waits that were told, seconds; `actual`.

    A level of which it was noted before that it is missed is not a number in `given`.
    """
    group = wait_class(point)
    count, level = calibration.seen[group], calibration.level[group]
    count *= 1.0 - 1.0 / _MEMORY
    count[_bin(point, actual)] += 1.0
    for i in range(_TARGET.shape[0]):
        if not np.isnan(given[i]):
            missed = _TARGET[i] - (1.0 if actual <= given[i] else 0.0)
            level[i] = min(1.0 + _DEBT, max(-_DEBT, level[i] + _STEP * missed))


@njit(cache=True, nogil=True)
def note_miss(calibration: Calibration, point: float, level: int) -> None:
    """A job waits for longer than it was told for a level, and still does."""
    group = wait_class(point)
    before = calibration.level[group, level]
    calibration.level[group, level] = min(1.0 + _DEBT, before + _STEP * _TARGET[level])


@njit(cache=True, nogil=True)
def wait_class(wait: float) -> int:
    """Which points are calibrated together."""
    group, bound = 0, 240.0
    while wait > bound and group < _CLASSES - 1:
        group += 1
        bound *= 4.0
    return group


@njit(cache=True, nogil=True)
def _bin(point: float, actual: float) -> int:
    ratio = np.log((actual + _SOFT_S) / (point + _SOFT_S))
    return int(min(_BINS - 1, max(0, _BINS // 2 + np.floor(ratio * _PER_E))))


@njit(cache=True, nogil=True)
def _wait(place: float, point: float) -> float:
    ratio = np.exp((place - _BINS // 2) / _PER_E)
    return float(max(0.0, ratio * (point + _SOFT_S) - _SOFT_S))


def new_calibration() -> Calibration:
    """Nothing known: the quantiles are the point."""
    return Calibration(np.zeros((_CLASSES, _BINS)), np.tile(_TARGET, (_CLASSES, 1)))


def usual_calibration() -> Calibration:
    """As if a few points had been off by the usual factors, either way; soon outweighed."""
    calibration = new_calibration()
    ratio = (np.arange(_BINS) + 0.5 - _BINS // 2) / _PER_E
    spread = np.exp(-0.5 * (ratio / _USUAL) ** 2)
    calibration.seen[:] = _WORD * spread / spread.sum()
    return calibration
