"""For how long instances of an offer are kept when nothing runs on them."""

from atoll.core.engine.burst.broker.ground import Ground, type_key
from atoll.core.engine.burst.keep_alive import keep_alive
from atoll.core.engine.choice.worth import HOUR_S, USUAL_HOUR
from atoll.core.model.burst import MICROS, Offer
from atoll.core.model.burst_rules import policy_of
from atoll.core.model.ids import QueueName

LEAST_PRICE = 1e-3
"""Dollars an hour, of what costs nothing: it could be used otherwise."""


def keep_s(ground: Ground, offer: Offer, queue: QueueName | None) -> float:
    """Seconds, by past idle times of its type and by what a boot costs, the wait included."""
    options = ground.options
    price = max(offer.price / MICROS, LEAST_PRICE)
    value = (policy_of(ground.policies, queue).hour_of_delay or USUAL_HOUR) / MICROS
    wait = value * offer.units * offer.lead_s / HOUR_S
    boot = price * (offer.lead_s + options.end_s) / HOUR_S + wait
    past = ground.idle_s.get(type_key(offer), ())
    kept = keep_alive(past, boot_cost=boot, idle_per_h=price, worst_ratio=options.worst_ratio)
    return min(max(kept.seconds, options.least_keep_s), options.most_keep_s)
