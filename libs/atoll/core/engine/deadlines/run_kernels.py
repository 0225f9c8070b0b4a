"""Runs plans: steps that are due, jobs that are through, and when to look again."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.deadlines.fill_kernels import NONE, Rows, seconds_for
from atoll.core.engine.deadlines.plan_kernels import settle


@njit(cache=True, nogil=True)
def due(rows: Rows, active: NDArray[np.int64], now: int, charge: int) -> NDArray[np.int64]:
    """Rows of `active` whose size changes at `now`, settled, with the new size in `at`.

    `charge`: seconds of pause after a change; negative: as the row says itself.
    """
    changed = np.zeros(active.size, np.bool_)
    for i in range(active.size):
        row = active[i]
        at = _drop_past_steps(rows, row, now)
        if at == rows.at[row]:
            continue
        settle(rows, row, now)
        rows.at[row] = at
        rows.idle[row] = now + (rows.cost[row] if charge < 0 else charge)
        rows.lock[row] = now + rows.hold[row]
        changed[i] = True
    return active[changed]


@njit(cache=True, nogil=True)
def finish_of(rows: Rows, row: int, never: int) -> int:
    """When the row is through at its present size."""
    at = rows.at[row]
    if at == NONE:
        return never
    begun = int(max(rows.seen[row], rows.idle[row]))
    return begun + seconds_for(rows.left[row], rows.rate[row, at])


@njit(cache=True, nogil=True)
def through(
    rows: Rows, active: NDArray[np.int64], now: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of `active` that are through by `now`, and when each was."""
    ends = np.full(active.size, now + 1, np.int64)
    for i in range(active.size):
        ends[i] = finish_of(rows, active[i], now + 1)
    return active[ends <= now], ends[ends <= now]


@njit(cache=True, nogil=True)
def next_time(rows: Rows, active: NDArray[np.int64], now: int, never: int) -> int:
    """The first time after `now` at which a row ends or changes its size."""
    first = never
    for row in active:
        first = min(first, finish_of(rows, row, never))
        for i in range(rows.steps[row]):
            if rows.step_from[row, i] > now:
                first = min(first, rows.step_from[row, i])
                break
    return first


@njit(cache=True, nogil=True)
def _drop_past_steps(rows: Rows, row: int, now: int) -> int:
    past = 0
    while past < rows.steps[row] and rows.step_from[row, past] <= now:
        past += 1
    if past == 0:
        return int(rows.at[row])
    at = rows.step_at[row, past - 1]
    rows.steps[row] -= past - 1
    for i in range(rows.steps[row]):
        rows.step_from[row, i] = rows.step_from[row, i + past - 1]
        rows.step_at[row, i] = rows.step_at[row, i + past - 1]
    return int(at)
