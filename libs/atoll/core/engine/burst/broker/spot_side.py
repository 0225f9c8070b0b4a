"""On spot, on demand, or not yet: for jobs with deadlines, by the rule of least expected cost.

The rule's tables are kept for rounded terms, so that a few serve all jobs; what is rounded makes a
job look a little longer and its start a little dearer, never the deadline later.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from atoll.core.engine.burst.expected_cost import ExpectedCost
from atoll.core.engine.burst.spot import NOTHING, Choice, Mode, Run, Terms, decide
from atoll.core.engine.burst.uniform_progress import UniformProgress
from atoll.core.engine.burst.watch import Market as Spots
from atoll.core.engine.burst.watch import Seen
from atoll.core.model.burst import Offer
from atoll.core.model.burst_wants import Want

WORK: Final = 48
"""A job is looked at in so many ticks at most."""
SLACK: Final = 64
"""Ticks of slack; more count as so many."""
OVERHEADS: Final = (0.25, 0.5, 1.0, 2.0)
"""Of a tick."""
LEAST_TICK_S: Final = 300.0
MOST_TABLES: Final = 2
"""In one decision; who needs a further one gets Uniform Progress."""


@dataclass(frozen=True, slots=True)
class Prices:
    """The cheapest of both kinds that a job could have; None: there is none."""

    spot: Offer | None
    on_demand: Offer | None


class SpotSide:
    """Answers for all jobs of one decision."""

    def __init__(self) -> None:
        self._rules = ExpectedCost(), UniformProgress()
        self._terms: set[Terms] = set()

    def mode(
        self,
        want: Want,
        prices: Prices,
        zones: Sequence[Seen],
        *,
        now: float,
        where: Choice = NOTHING,
    ) -> Mode:
        """What to rent for a job with a deadline; NONE: it waits for a spot instance.

        `zones`: all that have such spot instances, also those that have none now; `where`: what
        it has.
        """
        if prices.on_demand is None:
            return Mode.SPOT if prices.spot is not None else Mode.NONE
        lead_s = max(each.lead_s for each in (prices.spot, prices.on_demand) if each is not None)
        terms = _terms(want, lead_s + want.overhead_s, _ratio(prices))
        if not zones or terms.spot_per_h >= 1:
            return Mode.ON_DEMAND
        left_s = want.deadline_at - now
        run = Run(want.work_s, max(0.0, terms.deadline_s - left_s), where)
        market = Spots(tuple(zones), _any(zones))
        return decide(self._rules[self._late(terms)], run, market, terms=terms)[1].mode

    def _late(self, terms: Terms) -> bool:
        if terms not in self._terms and len(self._terms) >= MOST_TABLES:
            return True
        self._terms.add(terms)
        return False


def _terms(want: Want, overhead_s: float, ratio: float) -> Terms:
    """Rounded; prices per hour in parts of the price on demand."""
    tick_s = max(LEAST_TICK_S, 2.0 ** math.ceil(math.log2(max(want.work_s, 1.0) / WORK)))
    overhead = _up(overhead_s / tick_s, OVERHEADS)
    work_s = WORK * tick_s
    return Terms(
        work_s,
        work_s + SLACK * tick_s,
        overhead * tick_s,
        tick_s,
        on_demand_per_h=1.0,
        spot_per_h=ratio,
    )


def _up(amount: float, steps: Sequence[float]) -> float:
    """The least step that is not below; beyond the last one, whole ones."""
    return next((each for each in steps if amount <= each), float(math.ceil(amount)))


def _ratio(prices: Prices) -> float:
    if prices.spot is None or prices.on_demand is None or not prices.on_demand.price:
        return 0.4
    return min(max(math.ceil(prices.spot.price / prices.on_demand.price * 10) / 10, 0.1), 1.0)


def _any(zones: Sequence[Seen]) -> Seen:
    """All zones as if they were one."""
    best = max(zones, key=lambda seen: (seen.up, seen.share, seen.run_s))
    run_s = best.run_s if best.up else min(seen.run_s for seen in zones)
    return Seen(best.up, run_s, best.up_s, best.seen_s)
