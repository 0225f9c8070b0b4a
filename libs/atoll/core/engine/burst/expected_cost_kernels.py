"""The least expected cost of a job to its end, by work left, slack left and state of the market.

Work is counted in steps, slack (time left beyond the work) in FINE parts of a step. What a job
runs on is a column: nothing, spot with so many steps of its start still to go, on demand alike.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

FINE: Final = 5
HOPELESS: Final = 20.0
"""What it costs to have no slack for a start, in steps on demand; nobody goes there."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Chain(NamedTuple):
    """A Markov chain of N states."""

    first: Ints
    """(N + 1) where a state's moves begin."""
    to: Ints
    chance: Floats
    up: NDArray[np.bool_]
    """(N)."""


class Costs(NamedTuple):
    """Dollars per step, and the overhead of a start in FINE parts of one."""

    spot: float
    on_demand: float
    overhead: int


@njit(cache=True, nogil=True)
def levels_of(overhead: int) -> int:
    """How many steps of a start there are, the one in which it ends included."""
    return max(1, -(-overhead // FINE))


@njit(cache=True, nogil=True)
def solve(chain: Chain, costs: Costs, works: Ints, slacks: Ints) -> NDArray[np.float32]:
    """(works, slacks, N, columns) expected cost after the next move of the market.

    Kept are these steps of work and FINE parts of slack; both ascend from 0.
    Bellman's equation, exact on the grid: a step costs no work or no slack, or a part of each.
    """
    states, columns = chain.up.size, 1 + 2 * levels_of(costs.overhead)
    most = slacks[-1]
    before = np.zeros((most + 1, states, columns))
    now = np.zeros((most + 1, states, columns))
    best = np.zeros((states, columns))
    kept = np.zeros((works.size, slacks.size, states, columns), np.float32)
    row = 1
    for work in range(1, works[-1] + 1):
        for slack in range(most + 1):
            for state in range(states):
                _choose(best[state], chain.up[state], before, now, work, slack, state, costs)
            _expect(now[slack], chain, best)
        if work == works[row]:
            for i in range(slacks.size):
                kept[row, i] = now[slacks[i]]
            row += 1
        before, now = now, before
    return kept


@njit(cache=True, nogil=True)
def value(
    kept: NDArray[np.float32],
    works: Ints,
    slacks: Ints,
    work: float,
    slack: float,
    state: int,
    column: int,
) -> float:
    """Expected cost in dollars, linear between what is kept; work in steps, slack in parts."""
    if work <= 0:
        return 0.0
    row, share = _place(works, work)
    i, part = _place(slacks, slack)
    low = kept[row, i, state, column] * (1 - part) + kept[row, i + 1, state, column] * part
    high = kept[row + 1, i, state, column] * (1 - part) + kept[row + 1, i + 1, state, column] * part
    return float(low + (high - low) * share)


@njit(cache=True, nogil=True)
def _place(kept: Ints, at: float) -> tuple[int, float]:
    """Which two of the kept ones it lies between, and how far from the first."""
    at = min(max(at, 0.0), float(kept[-1]))
    i = min(int(np.searchsorted(kept, at, side="right")) - 1, kept.size - 2)
    return i, (at - kept[i]) / (kept[i + 1] - kept[i])


@njit(cache=True, nogil=True)
def _choose(
    best: Floats,
    up: bool,
    before: Floats,
    now: Floats,
    work: int,
    slack: int,
    state: int,
    costs: Costs,
) -> None:
    """The least expected cost by what the job runs on."""
    need, levels = costs.overhead, levels_of(costs.overhead)
    hopeless = costs.on_demand * (work + need / FINE + HOPELESS)
    idle = now[slack - FINE, state, 0] if slack - FINE >= need else hopeless
    spot, demand = hopeless, hopeless
    if up and slack - min(FINE, need) >= need:
        spot = costs.spot + _after(before, now, slack, state, need, levels)
    if slack >= need:
        demand = costs.on_demand + _after(before, now, slack, state, need, 2 * levels)
    best[0] = min(idle, spot, demand)
    for level in range(levels):
        rest = 0 if level == 0 else need - (levels - level) * FINE
        stays = hopeless
        if up and slack - min(FINE, rest) >= need:
            stays = costs.spot + _after(before, now, slack, state, rest, max(level, 1))
        best[1 + level] = min(idle, demand, stays)
        stays = hopeless
        if slack >= rest:
            column = levels + max(level, 1)
            stays = costs.on_demand + _after(before, now, slack, state, rest, column)
        best[1 + levels + level] = min(idle, spot, stays)


@njit(cache=True, nogil=True)
def _after(before: Floats, now: Floats, slack: int, state: int, rest: int, column: int) -> float:
    """Expected cost after a step of which `rest` parts at most are a start."""
    used = min(FINE, rest)
    worked = (FINE - used) / FINE
    cost = 0.0
    if worked > 0:
        cost += worked * before[slack - used, state, column]
    if used > 0:
        cost += (1 - worked) * now[slack - used, state, column]
    return cost


@njit(cache=True, nogil=True)
def _expect(now: Floats, chain: Chain, best: Floats) -> None:
    """What is expected before the market moves."""
    for state in range(best.shape[0]):
        for column in range(best.shape[1]):
            now[state, column] = 0.0
        for move in range(chain.first[state], chain.first[state + 1]):
            for column in range(best.shape[1]):
                now[state, column] += chain.chance[move] * best[chain.to[move], column]
