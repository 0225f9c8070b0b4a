"""Machines for rent: what they cost, when spot is to be had, how they boot.

Availability is that of windows of spot capacity, one after another in an order that the seed
gives; all zones have the same window at a time. What befalls an instance depends on the seed
and its number alone, so that rules which rent as many meet the same luck.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from atoll.core.engine.burst.demand.series import Bools
from atoll.core.model.burst import MICROS, Market, Offer
from atoll.sim.readers.spot import SpotWindow

KIND: Final = "V100"
ON_DEMAND: Final = round(3.06 * MICROS)
"""Micro-dollars per device-hour."""
SPOT: Final = round(0.9731 * MICROS)
TYPES: Final = (("v100_1", 1), ("v100_4", 4), ("v100_8", 8))
"""(instance type, devices)."""
SEEN_AS: Final = {"v100_4": "v100_8"}
"""There are no traces of machines of four: they come and go as those of eight."""
LEAD_S: Final = (150.0, 330.0)
"""From the request until work starts there, evenly distributed."""
NEVER: Final = 0.02
"""Part of the instances that never come up."""
NOTICE_S: Final = 120.0
CPU_MILLI: Final = 8_000
MEMORY: Final = 61 << 30


@dataclass(frozen=True, slots=True, eq=False)
class Supply:
    """When spot is to be had."""

    tick_s: float
    up: Mapping[str, Bools]
    """By key of an offer: ticks."""

    def is_up(self, offer: Offer, at_s: float) -> bool:
        """On demand is always to be had; spot is not beyond what is known."""
        if offer.market is Market.ON_DEMAND:
            return True
        ticks = self.up[offer.key]
        return bool(ticks[min(int(at_s // self.tick_s), len(ticks) - 1)])


@dataclass(frozen=True, slots=True)
class Boot:
    """What becomes of an instance that is asked for."""

    lead_s: float
    fails: bool


def offers_of(zones: Sequence[str]) -> tuple[Offer, ...]:
    """Spot in each zone and on demand in the first, for every type."""
    spot = [_offer(name, n, zone=zone, market=Market.SPOT) for name, n in TYPES for zone in zones]
    demand = [_offer(name, n, zone=zones[0], market=Market.ON_DEMAND) for name, n in TYPES]
    return (*spot, *demand)


def supply_of(
    windows: Sequence[SpotWindow], offers: Sequence[Offer], *, seconds: float, seed: int
) -> Supply:
    """Availability for so long. A window is that of a zone and a type: `us-west-2a_v100_1`."""
    by_name = {(each.zone, each.window): each for each in windows}
    numbers = sorted({each.window for each in windows})
    first = windows[0]
    count = int(seconds // (first.tick_s * len(first.up))) + 1
    order = np.random.default_rng([seed, 2]).choice(numbers, count)
    up = {
        offer.key: np.concatenate([np.array(by_name[_trace(offer), n].up) for n in order])
        for offer in offers
        if offer.market is Market.SPOT
    }
    return Supply(first.tick_s, up)


def boot_of(seed: int, number: int) -> Boot:
    """The luck of the n-th instance."""
    draw = np.random.default_rng([seed, 3, number])
    return Boot(float(draw.uniform(*LEAD_S)), bool(draw.random() < NEVER))


def _offer(name: str, devices: int, *, zone: str, market: Market) -> Offer:
    each = SPOT if market is Market.SPOT else ON_DEMAND
    return Offer(
        provider="simulated",
        zone=zone,
        region=zone[:-1],
        instance_type=name,
        market=market,
        cpu_milli=CPU_MILLI * devices,
        memory_bytes=MEMORY * devices,
        kind=KIND,
        devices=devices,
        price=each * devices,
        lead_s=sum(LEAD_S) / 2,
        notice_s=NOTICE_S if market is Market.SPOT else 0.0,
    )


def _trace(offer: Offer) -> str:
    return f"{offer.zone}_{SEEN_AS.get(offer.instance_type, offer.instance_type)}"
