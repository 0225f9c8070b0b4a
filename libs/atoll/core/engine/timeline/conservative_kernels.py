"""Conservative backfilling: every job holds the earliest hole and moves only forward."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.timeline.backfill_kernels import Asks
from atoll.core.engine.timeline.profile_kernels import Steps, add, find_hole


@njit(cache=True, nogil=True)
def hold(steps: Steps, asks: Asks, starts: NDArray[np.float64], job: int, now: float) -> None:
    """Give a new job the earliest hole; `starts` (J) gets when that begins."""
    need, length = asks.need[job], asks.length[job]
    starts[job] = find_hole(steps, need, length, now)
    add(steps, starts[job], starts[job] + length, -need)


@njit(cache=True, nogil=True)
def move_forward(
    steps: Steps, asks: Asks, starts: NDArray[np.float64], order: NDArray[np.int64], now: float
) -> None:
    """Capacity came free early: each job in turn takes an earlier hole, if there is one now."""
    for job in order:
        need, length, start = asks.need[job], asks.length[job], starts[job]
        if start <= now or not _has_room_before(steps, need, now, start):
            continue
        add(steps, start, start + length, need)
        starts[job] = min(start, find_hole(steps, need, length, now))
        add(steps, starts[job], starts[job] + length, -need)


@njit(cache=True, nogil=True)
def _has_room_before(steps: Steps, need: int, now: float, start: float) -> bool:
    for i in range(steps.size[0]):
        if steps.at[i] >= start:
            return False
        after = i + 1 == steps.size[0] or steps.at[i + 1] > now
        if after and steps.free[i] >= need:
            return True
    return False
