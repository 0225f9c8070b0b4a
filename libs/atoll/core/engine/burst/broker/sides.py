"""Lets jobs with deadlines have spot or on demand alone, as the rule says, or neither yet."""

from dataclasses import replace
from typing import Final

import numpy as np

from atoll.core.engine.burst.broker.gains import Gains
from atoll.core.engine.burst.broker.ground import Ground
from atoll.core.engine.burst.broker.leave import Bar
from atoll.core.engine.burst.broker.spot_side import Prices, SpotSide
from atoll.core.engine.burst.broker.table import Bools
from atoll.core.engine.burst.broker.zones import Zones, zones_of
from atoll.core.engine.burst.spot import Mode
from atoll.core.model.burst import Market, Offer

NONE: Final = -1


def sided(ground: Ground, gains: Gains, zones: Zones) -> Gains:
    """Only those for whom something is worth its price are asked about."""
    spot = np.array([offer.market is Market.SPOT for offer in gains.offers])
    worth = gains.saved > gains.costs * gains.table.shares
    urgent = np.isfinite(gains.hopes.latest_s) & (gains.hopes.latest_s > 0)
    rule, shut = SpotSide(), np.zeros_like(gains.saved, dtype=bool)
    bars = list(gains.leave.bars)
    for row in np.flatnonzero(urgent & worth.any(axis=1)):
        opened = gains.leave.open[row]
        pair = [_cheapest(gains, opened & side) for side in (spot, ~spot)]
        mode = _mode(ground, gains, zones, rule=rule, row=int(row), pair=pair)
        shut[row] = {Mode.SPOT: ~spot, Mode.ON_DEMAND: spot, Mode.NONE: True}[mode]
        if mode is Mode.NONE:
            bars[row] = Bar.WAITS_FOR_SPOT
    return replace(gains.without(shut), leave=replace(gains.leave, bars=tuple(bars)))


def _mode(
    ground: Ground, gains: Gains, zones: Zones, *, rule: SpotSide, row: int, pair: list[int]
) -> Mode:
    want = gains.wants[row]
    spot, on_demand = (gains.offers[each] if each != NONE else None for each in pair)
    model = spot or _absent(ground, gains, row)
    seen = zones_of(model, ground.offers, zones) if model is not None else ()
    return rule.mode(want, Prices(spot or model, on_demand), seen, now=ground.now)


def _absent(ground: Ground, gains: Gains, row: int) -> Offer | None:
    """Spot of a type that the job could have on demand, where there is none just now."""
    if not gains.wants[row].preemptible:
        return None
    open_types = {
        (offer.provider, offer.instance_type)
        for offer, opened in zip(gains.offers, gains.leave.open[row], strict=True)
        if opened
    }
    fit = (
        offer
        for offer in ground.offers
        if offer.market is Market.SPOT and (offer.provider, offer.instance_type) in open_types
    )
    return min(fit, key=lambda offer: (offer.price, offer.key), default=None)


def _cheapest(gains: Gains, columns: Bools) -> int:
    prices = np.where(columns, gains.prices, np.inf)
    return int(np.argmin(prices)) if columns.any() else NONE
