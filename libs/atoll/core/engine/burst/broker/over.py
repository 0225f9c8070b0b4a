"""What has to end because a policy or a budget no longer bears it."""

from collections.abc import Iterable
from dataclasses import replace

from atoll.core.engine.burst.broker.cover import is_open
from atoll.core.engine.burst.broker.ground import NO_USE, Drain, Ground, Room
from atoll.core.engine.choice.worth import HOUR_S, dollars
from atoll.core.model.burst import EndCause, Instance, InstanceId, InstanceState, chain_of
from atoll.core.model.burst_rules import refusal


def against_policy(ground: Ground) -> list[Drain]:
    """What may not be rented any more by who pays for it; all, when renting is switched off."""
    told = (
        (each, refusal(ground.policies, each.queue, each.offer))
        for each in ground.instances
        if is_open(each)
    )
    return [
        drain_of(ground, each, EndCause.POLICY, why=f"drained instance {each.id}: {why}")
        for each, why in told
        if why
    ]


def above_budget(ground: Ground, ended: Iterable[InstanceId]) -> list[Drain]:
    """Idle ones first, then the dearest per device, until the rest is within every budget.

    `ended`: what is drained anyway in this decision.
    """
    gone, found = set(ended), list[Drain]()
    for queue, room in sorted(ground.budgets.items(), key=lambda pair: pair[0] or ""):
        mine = [each for each in ground.instances if queue in chain_of(each.queue)]
        running = [each for each in mine if is_open(each) and each.id not in gone]
        for each, why in _surplus(ground, room, mine=mine, running=running):
            gone.add(each.id)
            whose = f"queue {queue}" if queue else "all queues"
            text = f"drained instance {each.id} at {dollars(each.offer.price)}/h: {whose} {why}"
            drain = drain_of(ground, each, EndCause.BUDGET, why=text)
            found.append(_at_once(drain, ground) if _is_spent(room) else drain)
    return found


def drain_of(ground: Ground, instance: Instance, cause: EndCause, *, why: str) -> Drain:
    """With the usual time for what runs there; none where nothing does."""
    options = ground.options
    live = ground.uses.get(instance.id, NO_USE).live
    stop_at = ground.now + (options.drain_s if live else 0.0)
    return Drain(instance.id, cause, stop_at, stop_at + (options.grace_s if live else 0.0), why)


def _is_spent(room: Room) -> bool:
    """Whether there is not even the money that it takes to end what there is."""
    return room.month_left is not None and room.month_left < 0


def _at_once(drain: Drain, ground: Ground) -> Drain:
    grace_s = drain.drain_by - drain.stop_at
    return replace(drain, stop_at=ground.now, drain_by=ground.now + grace_s)


def _surplus(
    ground: Ground, room: Room, *, mine: list[Instance], running: list[Instance]
) -> list[tuple[Instance, str]]:
    """What is to go of those that run, and what it breaks."""
    found = []
    rate = sum(each.offer.price for each in running)
    leaving = sum(each.offer.price for each in mine) - rate
    for each in sorted(running, key=lambda each: _first_to_go(ground, each)):
        why = _broken(ground, room, rate=rate, leaving=leaving)
        if not why:
            break
        found.append((each, why))
        rate, leaving = rate - each.offer.price, leaving + each.offer.price
    return found


def _broken(ground: Ground, room: Room, *, rate: int, leaving: int) -> str:
    """Which bound does not bear what goes on (`rate`), when the rest is `leaving` already."""
    options = ground.options
    if room.rate_left is not None and room.rate_left + leaving < 0:
        over = dollars(-room.rate_left - leaving)
        return f"spends {over}/h more than its budget"
    if room.month_left is None:
        return ""
    # What drains is paid until it is stopped; what goes on, until the next decision as well.
    drains_s = options.drain_s + options.grace_s
    needed = ((rate + leaving) * drains_s + rate * options.loop_s) / HOUR_S
    if rate and room.month_left < needed:
        return f"has {dollars(max(0, room.month_left))} of its month left beside what is to end"
    return ""


def _first_to_go(ground: Ground, instance: Instance) -> tuple[bool, bool, float, int]:
    use = ground.uses.get(instance.id, NO_USE)
    ready = instance.state is InstanceState.READY
    per_device = instance.offer.price / instance.offer.units
    return (bool(use.live or use.held), ready and bool(use.live), -per_device, -instance.id)
