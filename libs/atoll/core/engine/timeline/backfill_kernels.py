"""One pass of backfilling over one pool: who starts now, and who holds a reservation.

Jobs are looked at in their order. One that has a hole now starts; the first
ones that do not hold the earliest hole as a reservation, bounded by what was
asked for, and nobody who comes later can delay it.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.timeline.profile_kernels import Steps, add, find_hole, fits_at


class Asks(NamedTuple):
    """What J jobs need."""

    need: NDArray[np.int64]
    """(J) devices, processors or nodes."""
    length: NDArray[np.float64]
    """(J) seconds that were asked for: the longest that it can run."""
    group: NDArray[np.int64]
    """(J) only one job of a group holds a reservation."""
    may_hold: NDArray[np.bool_]
    """(J) whether it holds one at all."""


class Found(NamedTuple):
    """What a pass found, in the order of the jobs; the counts are returned."""

    started: NDArray[np.int64]
    """(J) jobs that start now."""
    held: NDArray[np.int64]
    """(J) jobs that hold a reservation."""
    held_at: NDArray[np.float64]
    """(J) when they start."""


@njit(cache=True, nogil=True)
def backfill(
    steps: Steps, order: NDArray[np.int64], asks: Asks, found: Found, most: int, strict: bool
) -> tuple[int, int]:
    """Go through `order` with at most `most` reservations: (started, held).

    `steps` begins now, and has room for two more steps per job that starts or holds.
    `strict`: stop at the first job that does not start.
    """
    now = steps.at[0]
    started, held = 0, 0
    for job in order:
        need, length = asks.need[job], asks.length[job]
        if need <= steps.free[0] and fits_at(steps, need, length, now):
            add(steps, now, now + length, -need)
            found.started[started] = job
            started += 1
        elif strict:
            break
        elif held < most and asks.may_hold[job] and not _is_held(asks, found, held, job):
            start = find_hole(steps, need, length, now)
            if start < np.inf:
                add(steps, start, start + length, -need)
                found.held[held] = job
                found.held_at[held] = start
                held += 1
        # Nothing more can start, and reservations bind nobody before the next pass.
        if steps.free[0] <= 0:
            break
    return started, held


@njit(cache=True, nogil=True)
def _is_held(asks: Asks, found: Found, held: int, job: int) -> bool:
    known = False
    for i in range(held):
        known |= asks.group[found.held[i]] == asks.group[job]
    return known
