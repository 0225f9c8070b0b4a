"""Spot whenever there is some, nothing otherwise, on demand when the safety net says so."""

from atoll.core.engine.burst.spot import NOTHING, ON_DEMAND, Choice, Mode, Run, Terms, is_safe
from atoll.core.engine.burst.watch import Market
from atoll.core.engine.burst.zones import best_spot


class Greedy:
    """Uses up all the time there is before it pays for capacity on demand."""

    def choose(self, run: Run, market: Market, terms: Terms) -> Choice:
        """A choice for the next tick; once on demand, it stays there."""
        if run.where.mode is not Mode.NONE:
            return run.where
        spot = best_spot(market)
        if spot is None:
            return NOTHING
        return spot if is_safe(run, spot, terms) else ON_DEMAND
