"""The largest backlog that has been seen: how long the pool took for what was there at a time.

It is counted when runs end, from what they really took, so that no request and
no estimate inflates it: at every full hour, the work done afterwards on jobs
that had been submitted by then. It tells what waits are usual here.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.state.ledger_kernels import Uses

HOUR_S: Final = 3600.0
HOURS: Final = 24 * 60
"""So far back work is counted."""
_BLOCKS: Final = 100
_SLICES: Final = 8
_SLICE_BITS: Final = 255


class Backlog(NamedTuple):
    """Work by full hour, in a ring, and the largest so far."""

    hour: NDArray[np.int64]
    """(HOURS) which hour an entry is of; -1 for none."""
    work: NDArray[np.float64]
    """(HOURS) seconds of the whole pool."""
    most: NDArray[np.float64]
    """(2) seconds of the whole pool, and when it was brought up to date."""


class Ended(NamedTuple):
    """Runs that are over now, one gang each of some uses."""

    submitted_at: NDArray[np.float64]
    """0: as it started."""
    started_at: NDArray[np.float64]
    """0: not known, and not counted."""


@njit(cache=True, nogil=True)
def note_runs(
    backlog: Backlog,
    ended: Ended,
    uses: Uses,
    capacity: tuple[float, float],
    now: float,
    half_life_s: float,
) -> None:
    """Runs are over at `now`; `capacity` of the whole pool: milli-CPU and devices."""
    for run in range(ended.started_at.shape[0]):
        started = ended.started_at[run]
        if 0.0 < started <= now:
            submitted = ended.submitted_at[run] if ended.submitted_at[run] != 0.0 else started
            share = _share(uses, run, capacity)
            note_run(backlog, submitted, started, now, share, half_life_s)


@njit(cache=True, nogil=True)
def _share(uses: Uses, gang: int, capacity: tuple[float, float]) -> float:
    """What a gang held of the pool, by what it held most of; 1 at most."""
    cpu, devices = 0, 0.0
    for task in range(uses.first_task[gang], uses.first_task[gang + 1]):
        cpu += uses.cpu[task]
        for grant in range(uses.first_grant[task], uses.first_grant[task + 1]):
            devices += uses.blocks[grant] / _BLOCKS + _ones(uses.bits[grant]) / _SLICES
    return min(1.0, max(cpu / max(capacity[0], 1.0), devices / max(capacity[1], 1.0)))


@njit(cache=True, nogil=True)
def _ones(bits: int) -> int:
    """Slices of memory that are set."""
    count, left = 0, bits & _SLICE_BITS
    while left:
        left &= left - 1
        count += 1
    return count


@njit(cache=True, nogil=True)
def note_run(
    backlog: Backlog,
    submitted: float,
    started: float,
    ended: float,
    share: float,
    half_life_s: float,
) -> None:
    """A run of a `share` of the pool is over. What was seen long ago is forgotten by halves."""
    largest = fade(backlog, ended, half_life_s)
    hours = backlog.hour.shape[0]
    last = int(ended // HOUR_S)
    first = max(int(np.ceil(submitted / HOUR_S)), last - hours + 1)
    for hour in range(first, last + 1):
        at = hour % hours
        if backlog.hour[at] != hour:
            backlog.hour[at] = hour
            backlog.work[at] = 0.0
        backlog.work[at] += share * max(0.0, ended - max(started, hour * HOUR_S))
        largest = max(largest, backlog.work[at])
    backlog.most[0] = largest


@njit(cache=True, nogil=True)
def fade(backlog: Backlog, now: float, half_life_s: float) -> float:
    """The largest backlog in seconds, as it counts now."""
    since = now - backlog.most[1]
    if since > 0.0:
        backlog.most[0] *= 0.5 ** (since / half_life_s)
        backlog.most[1] = now
    return float(backlog.most[0])


def empty_backlog(now: float = 0.0) -> Backlog:
    """Nothing seen yet."""
    return Backlog(np.full(HOURS, -1, np.int64), np.zeros(HOURS), np.array([0.0, now]))
