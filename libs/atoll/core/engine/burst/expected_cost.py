"""The choice of least expected cost: a stochastic dynamic programme over a model of the market.

The model is a chain whose chances come from a prior and whose state is what has been seen of the
zones so far, so that it learns as it goes. With several zones it is that of "any zone is up".
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.burst.availability import chain_of, state_of
from atoll.core.engine.burst.expected_cost_kernels import (
    FINE,
    Costs,
    Ints,
    levels_of,
    solve,
    value,
)
from atoll.core.engine.burst.spot import (
    NOTHING,
    ON_DEMAND,
    Choice,
    Mode,
    Run,
    Terms,
    is_safe,
    overhead_of,
    price_per_h,
)
from atoll.core.engine.burst.watch import Market
from atoll.core.engine.burst.zones import best_spot

MOST_STEPS: Final = 288
"""A job is cut into so many steps at most."""
MOST_SLACK: Final = 150
"""More steps of slack than this count as this."""
EVERY: Final = 4
"""Every so many steps of work are kept; up to the first all of them."""
EXACT: Final = 6
"""Up to so many steps of slack all parts are kept, beyond whole steps only."""

FAVOUR: Final = 0.02
"""Spot may be dearer than what else there is by this part of a step on demand."""


class ExpectedCost:
    """Compares nothing, on demand and spot by what they cost now and are expected to cost later."""

    def choose(self, run: Run, market: Market, terms: Terms) -> Choice:
        """A choice for the next tick; spot where it is about as good as waiting for it."""
        table, state = _table(terms), state_of(market.any)
        options = [NOTHING, ON_DEMAND]
        held = run.where if run.where.mode is Mode.SPOT else None
        spot = held or best_spot(market)
        if spot is not None:
            options.append(spot)
        safe = [choice for choice in options if is_safe(run, choice, terms)]
        return min(safe, key=lambda choice: table.cost(run, choice, state) - _favour(choice, table))


def _favour(choice: Choice, table: "_Table") -> float:
    """Dollars; with time to spare, the model sees no difference between now and later."""
    held = choice.mode is Mode.SPOT
    return FAVOUR * table.terms.on_demand_per_h * table.step_s / 3600 if held else 0.0


@dataclass(frozen=True, slots=True)
class _Table:
    """Expected costs for a job's terms."""

    terms: Terms
    step_s: float
    levels: int
    works: Ints
    slacks: Ints
    kept: NDArray[np.float32]

    def cost(self, run: Run, choice: Choice, state: int) -> float:
        """Dollars from now to the end if this is held for a step."""
        terms, step_s = self.terms, self.step_s
        work = run.left_s / step_s
        slack = (terms.deadline_s - run.now_s) / step_s - work
        if choice.mode is Mode.NONE:
            return self._value(work, slack - 1, (state, 0))
        rest = overhead_of(run, choice, terms) / step_s
        used = min(1.0, rest)
        paid = min(1.0, self._begun(work + rest))
        level = min(max(0, math.ceil(rest - 1)), self.levels - 1)
        column = 1 + level + (self.levels if choice.mode is Mode.ON_DEMAND else 0)
        later = self._value(work - (1 - used), slack - used, (state, column))
        return price_per_h(choice, terms) * paid * step_s / 3600 + later

    def _value(self, work: float, slack: float, where: tuple[int, int]) -> float:
        work = work if work > 1 else self._begun(work)
        return value(self.kept, self.works, self.slacks, work, slack * FINE, *where)

    def _begun(self, steps: float) -> float:
        """Steps up to the end of a tick: a tick that is begun is paid."""
        ticks = self.step_s / self.terms.tick_s
        return math.ceil(steps * ticks - 1e-9) / ticks


@lru_cache(maxsize=8)
def _table(terms: Terms) -> _Table:
    """Takes about two seconds for 288 steps of work and 130 of slack, and 20 MB."""
    step_s = max(terms.tick_s, terms.work_s / MOST_STEPS, terms.overhead_s / 4)
    per_h = step_s / 3600
    overhead = math.ceil(terms.overhead_s / step_s * FINE - 1e-9)
    costs = Costs(terms.spot_per_h * per_h, terms.on_demand_per_h * per_h, overhead)
    slack = math.ceil((terms.deadline_s - terms.work_s) / step_s)
    slacks = _kept_slacks(min(max(slack, 1), MOST_SLACK))
    works = _kept_works(math.ceil(terms.work_s / step_s))
    kept = solve(chain_of(terms.prior, step_s), costs, works, slacks)
    return _Table(terms, step_s, levels_of(overhead), works, slacks, kept)


def _kept_works(steps: int) -> Ints:
    return np.array([*range(EVERY), *range(EVERY, steps + EVERY, EVERY)], np.int64)


def _kept_slacks(steps: int) -> Ints:
    exact = range(min(steps, EXACT) * FINE + 1)
    whole = range((EXACT + 1) * FINE, steps * FINE + 1, FINE)
    return np.array([*exact, *whole], np.int64)
