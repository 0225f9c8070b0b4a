"""Jobs of a log and the pool in which they run: who waits, who runs, who ends next."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.timeline.backfill_kernels import Asks
from atoll.core.engine.timeline.rank_kernels import Line

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Log(NamedTuple):
    """J jobs in the order of their submits. Only an end that has come tells of `run`."""

    run: Floats
    owner: Ints
    line: Line
    asks: Asks


class Pool(NamedTuple):
    """What is the case at a moment. Jobs are numbers in the log."""

    processors: int
    now: Floats
    """(1)."""
    free: Ints
    """(1) processors."""
    came: Ints
    """(1) jobs that were submitted."""
    waits: Ints
    """(1)."""
    runs: Ints
    """(1)."""
    waiting: Ints
    """(J) the first `waits`, in order."""
    running: Ints
    """(J) the first `runs`, by when their requests end."""
    heap: Ints
    """(J) the same, the next to end on top."""
    start: Floats
    """(J) NaN until it starts."""
    end: Floats


@njit(cache=True, nogil=True)
def next_event(log: Log, pool: Pool) -> float:
    """When the next job comes or ends; infinity when all have ended."""
    came, submit, end = pool.came[0], np.inf, np.inf
    if came < log.run.shape[0]:
        submit = log.line.submitted[came]
    if pool.runs[0] > 0:
        end = pool.end[pool.heap[0]]
    return min(submit, end)


@njit(cache=True, nogil=True)
def due(log: Log, pool: Pool, job: int) -> float:
    """When the request of a job that runs ends."""
    return float(pool.start[job] + log.asks.length[job])


@njit(cache=True, nogil=True)
def begin(log: Log, pool: Pool, job: int) -> None:
    """A job starts; it stays in `waiting` until `forget_started`."""
    pool.start[job] = pool.now[0]
    pool.end[job] = pool.now[0] + log.run[job]
    pool.free[0] -= log.asks.need[job]
    at, until = pool.runs[0], due(log, pool, job)
    _push(pool, job)
    while at > 0 and due(log, pool, pool.running[at - 1]) > until:
        pool.running[at] = pool.running[at - 1]
        at -= 1
    pool.running[at] = job
    pool.runs[0] += 1


@njit(cache=True, nogil=True)
def end_next(log: Log, pool: Pool) -> int:
    """The job that is the next to end, ends."""
    job = pool.heap[0]
    _pop(pool)
    until = due(log, pool, job)
    low, high = 0, pool.runs[0]
    while low < high:
        middle = (low + high) // 2
        if due(log, pool, pool.running[middle]) < until:
            low = middle + 1
        else:
            high = middle
    while pool.running[low] != job:
        low += 1
    for i in range(low, pool.runs[0] - 1):
        pool.running[i] = pool.running[i + 1]
    pool.runs[0] -= 1
    pool.free[0] += log.asks.need[job]
    return int(job)


@njit(cache=True, nogil=True)
def forget_started(pool: Pool) -> None:
    """Take those that have started out of `waiting`."""
    kept = 0
    for i in range(pool.waits[0]):
        if np.isnan(pool.start[pool.waiting[i]]):
            pool.waiting[kept] = pool.waiting[i]
            kept += 1
    pool.waits[0] = kept


@njit(cache=True, nogil=True)
def _push(pool: Pool, job: int) -> None:
    heap, at = pool.heap, pool.runs[0]
    heap[at] = job
    while at > 0 and _earlier(pool, heap[at], heap[(at - 1) // 2]):
        above = (at - 1) // 2
        heap[at], heap[above] = heap[above], heap[at]
        at = above


@njit(cache=True, nogil=True)
def _pop(pool: Pool) -> None:
    heap, size = pool.heap, pool.runs[0] - 1
    heap[0] = heap[size]
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _earlier(pool, heap[child + 1], heap[child]):
            child += 1
        if not _earlier(pool, heap[child], heap[at]):
            return
        heap[at], heap[child] = heap[child], heap[at]
        at = child


@njit(cache=True, nogil=True)
def _earlier(pool: Pool, one: int, other: int) -> bool:
    if pool.end[one] != pool.end[other]:
        return bool(pool.end[one] < pool.end[other])
    return bool(one < other)
