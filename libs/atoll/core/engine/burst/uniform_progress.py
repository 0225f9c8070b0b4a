"""Uniform Progress, as published (Can't Be Late, NSDI'24, section 5).

- Spot is kept while it lasts, and taken when there is nothing.
- With nothing and behind the line done = now x work / deadline: on demand, to catch up.
- From on demand to spot only when ahead of where the line will be after two overheads.
- With less than two overheads to spare, on demand until the end, unless spot still lasts.
"""

from atoll.core.engine.burst.spot import NOTHING, ON_DEMAND, Choice, Mode, Run, Terms
from atoll.core.engine.burst.watch import Market
from atoll.core.engine.burst.zones import best_spot


class UniformProgress:
    """Spreads what has to be done evenly over the time until the deadline."""

    def choose(self, run: Run, market: Market, terms: Terms) -> Choice:
        """A choice for the next tick."""
        match run.where.mode:
            case Mode.SPOT:
                return run.where
            case Mode.NONE:
                return self._from_nothing(run, market, terms)
            case Mode.ON_DEMAND:
                return self._from_on_demand(run, market, terms)

    def _from_nothing(self, run: Run, market: Market, terms: Terms) -> Choice:
        if _is_late(run, terms):
            return ON_DEMAND
        spot = best_spot(market)
        if spot is not None:
            return spot
        return ON_DEMAND if _ahead_s(run, terms, in_s=0.0) < 0 else NOTHING

    def _from_on_demand(self, run: Run, market: Market, terms: Terms) -> Choice:
        spot = best_spot(market)
        if spot is None or _is_late(run, terms):
            return ON_DEMAND
        return spot if _ahead_s(run, terms, in_s=2 * terms.overhead_s) >= 0 else ON_DEMAND


def _is_late(run: Run, terms: Terms) -> bool:
    return terms.deadline_s - run.now_s < run.left_s + 2 * terms.overhead_s


def _ahead_s(run: Run, terms: Terms, *, in_s: float) -> float:
    """Work done by now beyond the line as it will be in so many seconds."""
    line_s = (run.now_s + in_s) * terms.work_s / terms.deadline_s
    return terms.work_s - run.left_s - line_s
