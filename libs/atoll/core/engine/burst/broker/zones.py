"""How spot capacity of each offer has come and gone, as the rule for deadline jobs sees it."""

from collections.abc import Iterable, Mapping, Sequence

from atoll.core.engine.burst.broker.ground import Ground, type_key
from atoll.core.engine.burst.broker.retry import fit_to_try
from atoll.core.engine.burst.watch import Seen, again, first
from atoll.core.model.burst import Market, Offer

Zones = Mapping[str, Seen]
"""By Offer.key."""
LEAST_S = 60.0
"""Looks that are closer are one."""


def looked(ground: Ground) -> tuple[Zones, float]:
    """After another look, and when that was; unchanged when the last one has just been."""
    memory = ground.memory
    passed_s = ground.now - memory.looked_at
    if memory.zones and 0 <= passed_s < LEAST_S:
        return memory.zones, memory.looked_at
    spots = [each for each in ground.offers if each.market is Market.SPOT]
    fit = fit_to_try(spots, ground.setbacks, now=ground.now, options=ground.options)
    up = {each.key for each in fit}
    known = memory.zones
    tick_s = max(passed_s, 0.0) if known else LEAST_S
    found = {
        each.key: again(known[each.key], each.key in up, tick_s)
        if each.key in known
        else first(each.key in up, LEAST_S)
        for each in spots
    }
    return found, ground.now


def zones_of(offer: Offer, offers: Iterable[Offer], zones: Zones) -> Sequence[Seen]:
    """All in which the type of a spot offer is sold."""
    wanted = type_key(offer)
    return [zones[each.key] for each in offers if type_key(each) == wanted and each.key in zones]
