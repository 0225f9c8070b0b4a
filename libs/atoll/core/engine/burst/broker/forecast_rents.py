"""What to rent before it is missed: by pool, what the forecast asks for beyond what is held."""

from dataclasses import dataclass

import numpy as np

from atoll.core.engine.burst.broker.ground import Ground, Outlook
from atoll.core.engine.burst.broker.idle import keep_s
from atoll.core.engine.burst.broker.memory import Pool, Turn
from atoll.core.engine.burst.broker.need import Need, held_in, need_of, pays_for
from atoll.core.engine.burst.broker.rooms import Purse
from atoll.core.engine.burst.broker.stock import Stock
from atoll.core.engine.choice.worth import HOUR_S
from atoll.core.model.burst import Market, Offer
from atoll.core.model.burst_rules import refusal
from atoll.core.model.ids import QueueName

SPOT_MARGIN = 1.1
"""Spot is taken when it is cheaper by this, for what interruptions cost."""


@dataclass(frozen=True, slots=True)
class PoolRent:
    """Instances of one offer for a pool."""

    need: Need
    offer: Offer
    count: int
    ahead: int
    """Micro-dollars that each is expected to cost."""


@dataclass(frozen=True, slots=True)
class PoolShort:
    """Why a pool does not get what it is to hold."""

    need: Need | None
    pool: Pool
    code: str
    why: str


Held = dict[tuple[str, QueueName | None], int]
"""Devices planned in this decision, by kind and payer."""


def forecast_rents(
    ground: Ground, planned: Held, *, purse: Purse, stock: Stock
) -> tuple[list[PoolRent], list[PoolShort]]:
    """Pools of queues first, then of their parents: what a queue rents counts for those above."""
    rents: list[PoolRent] = []
    shorts: list[PoolShort] = []
    order = sorted(ground.outlooks, key=_deepest)
    for outlook in order:
        for found in _for_pool(ground, outlook, planned, purse=purse, stock=stock):
            if isinstance(found, PoolShort):
                shorts.append(found)
                continue
            rents.append(found)
            key = (outlook.kind, outlook.queue)
            planned[key] = planned.get(key, 0) + found.count * found.offer.units
    return rents, shorts


def planned_in(planned: Held, pool: Pool) -> int:
    """Devices that are planned for a pool in this decision."""
    pairs = planned.items()
    return sum(n for (kind, q), n in pairs if kind == pool.kind and pays_for(pool.queue, q))


def _deepest(outlook: Outlook) -> tuple[int, str, str]:
    queue = outlook.queue or ""
    return (-len(queue.split(".")) if queue else 0, queue, outlook.kind)


def _for_pool(
    ground: Ground, outlook: Outlook, planned: Held, *, purse: Purse, stock: Stock
) -> list[PoolRent | PoolShort]:
    pool = Pool(outlook.kind, outlook.queue)
    if stock.left <= 0:
        return []
    offer, refused = _best_offer(ground, pool, stock)
    if offer is None:
        missing = outlook.excess.size > 0 and float(np.median(outlook.excess)) > 0
        return [PoolShort(None, pool, "no_offer", refused)] if missing else []
    held = held_in(ground.instances, pool) + planned_in(planned, pool)
    lead_s, commitment_s = offer.lead_s, ground.options.commitment_s
    price = round(offer.price / offer.units)
    need = need_of(
        ground, outlook, price=price, held=held, since_s=lead_s, until_s=lead_s + commitment_s
    )
    wanted = _instances(need, offer.units)
    if wanted <= 0 or _has_shrunk(ground, pool, offer):
        return []
    ahead = round(offer.price * (lead_s + commitment_s + ground.options.end_s) / HOUR_S)
    return _taken(PoolRent(need, offer, wanted, ahead), purse, stock)


def _taken(wish: PoolRent, purse: Purse, stock: Stock) -> list[PoolRent | PoolShort]:
    """As many of them as there is money and stock for."""
    pool, offer, count, short = wish.need.pool, wish.offer, 0, ""
    while count < wish.count and stock.left > 0 and stock.has(offer):
        short = purse.short(pool.queue, rate=offer.price, ahead=wish.ahead)
        if short:
            break
        purse.take(pool.queue, rate=offer.price, ahead=wish.ahead)
        stock.take(offer)
        count += 1
    found: list[PoolRent | PoolShort] = []
    if count:
        found.append(PoolRent(wish.need, offer, count, wish.ahead))
    if short:
        found.append(PoolShort(wish.need, pool, "budget", short))
    return found


def _instances(need: Need, units: int) -> int:
    """So many that the expected cost is least, when the amount asks for more than is held."""
    missing = need.amount.hold - need.held
    if missing <= 0:
        return 0
    whole = missing // units
    now, more = (need.cost_of(need.held + n * units) for n in (whole, whole + 1))
    return whole + (more < now)


def _has_shrunk(ground: Ground, pool: Pool, offer: Offer) -> bool:
    """Hysteresis: what was drained lately is not rented again at once."""
    turn = ground.memory.turns.get(pool, Turn())
    quiet_s = keep_s(ground, offer, pool.queue)
    return bool(turn.drained_at) and 0 <= ground.now - turn.drained_at < quiet_s


def _best_offer(ground: Ground, pool: Pool, stock: Stock) -> tuple[Offer | None, str]:
    """The cheapest by device; or why there is none."""
    offers = [each for each in stock.offers() if each.kind == pool.kind]
    told = [(each, refusal(ground.policies, pool.queue, each)) for each in offers]
    allowed = [each for each, why in told if not why]
    if allowed:
        return min(allowed, key=_dear), ""
    return None, next((why for _, why in told), "nobody offers it now")


def _dear(offer: Offer) -> tuple[float, float, str]:
    part = SPOT_MARGIN if offer.market is Market.SPOT else 1.0
    return (offer.price * part / offer.units, offer.lead_s, offer.key)
