"""The least cost of a job over a window whose future is known: a bound for reference only."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@njit(cache=True, nogil=True)
def least_cost(
    up: NDArray[np.bool_],
    work: int,
    tick: int,
    overhead: int,
    spot: float,
    on_demand: float,
) -> float:
    """Least cost of `work` within the ticks of `up`; infinite if there is no way.

    Times in whole units of any kind, prices per tick; each start costs `overhead`.
    """
    levels = max(1, -(-overhead // tick))
    later = np.full((work + 1, 1 + 2 * levels), np.inf)
    later[0] = 0.0
    now = np.zeros_like(later)
    for i in range(up.size - 1, -1, -1):
        for left in range(1, work + 1):
            _choose(now[left], later, left, up[i], tick, overhead, spot, on_demand)
        later, now = now, later
        later[0] = 0.0
    return float(later[work, 0])


@njit(cache=True, nogil=True)
def _choose(
    best: Floats,
    later: Floats,
    left: int,
    up: bool,
    tick: int,
    overhead: int,
    spot: float,
    on_demand: float,
) -> None:
    """Columns: nothing; spot with so many ticks of its start to go; on demand alike."""
    levels = (best.size - 1) // 2
    idle = later[left, 0]
    rent = spot + _after(later, left, tick, overhead, levels) if up else np.inf
    demand = on_demand + _after(later, left, tick, overhead, 2 * levels)
    best[0] = min(idle, rent, demand)
    for level in range(levels):
        rest = 0 if level == 0 else overhead - (levels - level) * tick
        stays = spot + _after(later, left, tick, rest, max(level, 1)) if up else np.inf
        best[1 + level] = min(idle, demand, stays)
        stays = on_demand + _after(later, left, tick, rest, levels + max(level, 1))
        best[1 + levels + level] = min(idle, rent, stays)


@njit(cache=True, nogil=True)
def _after(later: Floats, left: int, tick: int, rest: int, column: int) -> float:
    worked = max(0, tick - rest)
    return float(later[max(0, left - worked), column])
