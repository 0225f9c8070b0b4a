"""Takes jobs with deadlines off on demand again, when spot has come back and there is time."""

from collections.abc import Collection
from typing import Final

from atoll.core.engine.burst.broker.courses import runs_on
from atoll.core.engine.burst.broker.cover import is_open
from atoll.core.engine.burst.broker.ground import Drain, Ground
from atoll.core.engine.burst.broker.memory import Course
from atoll.core.engine.burst.broker.spot_side import Prices, SpotSide
from atoll.core.engine.burst.broker.stock import Stock
from atoll.core.engine.burst.broker.zones import Zones, zones_of
from atoll.core.engine.burst.spot import ON_DEMAND, Mode
from atoll.core.engine.choice.worth import dollars, in_words
from atoll.core.model.burst import EndCause, Instance, InstanceId, Market, Offer
from atoll.core.model.burst_rules import refusal
from atoll.core.model.burst_wants import Want
from atoll.core.model.ids import QueueName

LEAST_S: Final = 1800.0
"""Nothing is moved that has not run for so long, or has no longer to go."""


def back_to_spot(ground: Ground, zones: Zones, *, besides: Collection[InstanceId]) -> list[Drain]:
    """Instances with one such job each that are drained at once; it is rented for anew as spot."""
    if not ground.memory.courses:
        return []
    rule, stock = SpotSide(), Stock(ground)
    found = []
    for each in ground.instances:
        course = _course(ground, each)
        if course is None or each.id in besides:
            continue
        spot = _spot_of(ground, each, stock)
        if spot is not None and _is_better(ground, each, course, spot=spot, rule=rule, zones=zones):
            stock.take(spot)
            found.append(_drain(ground, each, course, spot=spot))
    return found


def _course(ground: Ground, instance: Instance) -> Course | None:
    """Of the only job of an instance on demand that could be moved."""
    alone = len(instance.jobs) == 1 and instance.offer.market is Market.ON_DEMAND
    if not alone or not is_open(instance) or not runs_on(ground, instance):
        return None
    course = ground.memory.courses.get(instance.jobs[0])
    settled = ground.now - instance.ready_at >= LEAST_S
    if course is None or not course.deadline_at:
        return None
    return course if settled and course.left_s >= LEAST_S else None


def _spot_of(ground: Ground, instance: Instance, stock: Stock) -> Offer | None:
    """The cheapest spot instance of the same type that its queue may rent now."""
    kind = (instance.offer.provider, instance.offer.instance_type)
    fit = [
        each
        for each in stock.offers()
        if each.market is Market.SPOT
        and (each.provider, each.instance_type) == kind
        and not refusal(ground.policies, instance.queue, each)
    ]
    return min(fit, key=lambda offer: (offer.price, offer.key), default=None)


def _is_better(
    ground: Ground, instance: Instance, course: Course, *, spot: Offer, rule: SpotSide, zones: Zones
) -> bool:
    """Whether the rule takes spot, with the time to stop here counted as part of the start."""
    overhead_s = course.overhead_s + ground.options.grace_s
    want = Want(
        instance.jobs[0],
        instance.queue or QueueName(""),
        (),
        instance.requested_at,
        course.left_s,
        deadline_at=course.deadline_at,
        overhead_s=overhead_s,
    )
    seen = zones_of(spot, ground.offers, zones)
    prices = Prices(spot, instance.offer)
    return rule.mode(want, prices, seen, now=ground.now, where=ON_DEMAND) is Mode.SPOT


def _drain(ground: Ground, instance: Instance, course: Course, *, spot: Offer) -> Drain:
    slack_s = course.deadline_at - ground.now - course.left_s
    why = (
        f"drained instance {instance.id} at {dollars(instance.offer.price)}/h: job "
        f"{instance.jobs[0]} goes back to spot at {dollars(spot.price)}/h, it has "
        f"{in_words(course.left_s)} to go and {in_words(slack_s)} to spare until its deadline"
    )
    drain_by = ground.now + ground.options.grace_s
    return Drain(instance.id, EndCause.IDLE, ground.now, drain_by, why)
