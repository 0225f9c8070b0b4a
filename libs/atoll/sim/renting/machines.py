"""Instances in a simulation, from the wish to the end, and what they cost. Money: micro-dollars."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from atoll.core.model.burst import MICROS, EndCause, InstanceState, Offer

HOUR: Final = 3600.0
LEAST_S: Final = 60.0
"""Paid at least."""
GONE_S: Final = 30.0
"""From the order to end one until the provider says that it is gone; paid."""
GIVE_UP_S: Final = 600.0
"""Nobody waits longer for one to come up."""


@dataclass(slots=True)
class Machine:
    """One instance."""

    number: int
    offer: Offer
    asked_at: float
    jobs: tuple[int, ...] = ()
    """For whom it was rented; while it boots it is held for those that still wait."""
    why: str = ""
    state: InstanceState = InstanceState.BOOTING
    ready_at: float = 0.0
    idle_since: float = 0.0
    """0: something runs there."""
    stop_at: float = 0.0
    """DRAINING: when what still runs is told to stop."""
    ended_at: float = 0.0
    cause: EndCause = EndCause.NONE
    live: dict[int, float] = field(default_factory=dict)
    """Jobs that run there, and since when."""
    free: int = 0
    used_s: float = 0.0
    """Device-seconds in which jobs ran."""

    def paid_s(self, now: float) -> float:
        """Seconds that are paid so far."""
        end = self.ended_at or now
        return max(end - self.asked_at, LEAST_S if self.ended_at else 0.0)


@dataclass(slots=True)
class Purse:
    """What may be spent, and whether it was kept to: a bound on the rate, and on each month."""

    per_hour: int
    rate: int = 0
    """Prices of all that is not ended."""
    above: int = 0
    """Times at which more was bound than may be: none."""

    def take(self, price: int) -> bool:
        """Bind a price per hour; not if that were above the bound."""
        if self.rate + price > self.per_hour:
            return False
        self.rate += price
        self.above += self.rate > self.per_hour
        return True

    def give(self, price: int) -> None:
        """An instance is gone."""
        self.rate -= price


def cost_of(machines: list[Machine]) -> float:
    """Dollars of ended ones."""
    return sum(m.paid_s(m.ended_at) / HOUR * m.offer.price for m in machines) / MICROS


def by_hour(machines: list[Machine]) -> dict[int, float]:
    """Dollars of ended ones in each hour: what the bound per hour is checked with afterwards."""
    spent: dict[int, float] = defaultdict(float)
    for each in machines:
        at, end = each.asked_at, each.asked_at + each.paid_s(each.ended_at)
        while at < end:
            hour = int(at // HOUR)
            until = min(end, (hour + 1) * HOUR)
            spent[hour] += (until - at) / HOUR * each.offer.price / MICROS
            at = until
    return spent
