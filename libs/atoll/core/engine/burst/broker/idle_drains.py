"""What has been idle for long enough and is wanted by nobody."""

from collections.abc import Collection

from atoll.core.engine.burst.broker.forecast_rents import Held, planned_in
from atoll.core.engine.burst.broker.ground import NO_USE, Drain, Ground, Outlook
from atoll.core.engine.burst.broker.idle import keep_s
from atoll.core.engine.burst.broker.memory import Pool, Turn
from atoll.core.engine.burst.broker.need import belongs, held_in, need_of, units_of
from atoll.core.engine.burst.broker.over import drain_of
from atoll.core.engine.choice.worth import dollars, in_words
from atoll.core.model.burst import EndCause, Instance, InstanceId, InstanceState


def idle_drains(
    ground: Ground, planned: Held, *, taken: Collection[InstanceId], gone: Collection[InstanceId]
) -> list[Drain]:
    """The dearest per device first. `taken`: jobs are to use them; `gone`: drained anyway."""
    idle = [
        each
        for each in ground.instances
        if each.id not in taken and each.id not in gone and _is_over(ground, each)
    ]
    left = [each for each in ground.instances if each.id not in gone]
    found = []
    for each in sorted(idle, key=lambda each: (-_per_device(each), each.idle_since, each.id)):
        if _is_wanted(ground, each, left=left, planned=planned):
            continue
        left.remove(each)
        found.append(drain_of(ground, each, EndCause.IDLE, why=_why(ground, each)))
    return found


def _is_over(ground: Ground, instance: Instance) -> bool:
    """Whether it has been idle for as long as it is kept."""
    use = ground.uses.get(instance.id, NO_USE)
    if instance.state is not InstanceState.READY or use.live or use.held or not instance.idle_since:
        return False
    if ground.now < instance.keep_until:
        return False
    kept_s = keep_s(ground, instance.offer, instance.queue)
    return ground.now - instance.idle_since >= kept_s


def _is_wanted(ground: Ground, instance: Instance, *, left: list[Instance], planned: Held) -> bool:
    return any(
        _pool_wants(ground, outlook, instance, left=left, planned=planned)
        for outlook in ground.outlooks
        if belongs(instance, Pool(outlook.kind, outlook.queue))
    )


def _pool_wants(
    ground: Ground, outlook: Outlook, instance: Instance, *, left: list[Instance], planned: Held
) -> bool:
    """Whether what is foreseen from now on asks for it, or its pool has grown just now."""
    pool, offer = Pool(outlook.kind, outlook.queue), instance.offer
    turn = ground.memory.turns.get(pool, Turn())
    kept_s = keep_s(ground, offer, instance.queue)
    if turn.rented_at and 0 <= ground.now - turn.rented_at < kept_s + offer.lead_s:
        return True
    held = held_in(left, pool) + planned_in(planned, pool)
    until_s = offer.lead_s + ground.options.commitment_s
    price = round(offer.price / units_of(offer))
    need = need_of(ground, outlook, price=price, held=held, since_s=0.0, until_s=until_s)
    return held - units_of(offer) < need.amount.hold


def _per_device(instance: Instance) -> float:
    return instance.offer.price / units_of(instance.offer)


def _why(ground: Ground, instance: Instance) -> str:
    idle = in_words(ground.now - instance.idle_since)
    kept = in_words(keep_s(ground, instance.offer, instance.queue))
    price = dollars(instance.offer.price)
    return (
        f"drained instance {instance.id} ({instance.offer.key}, {price}/h): idle for {idle}, "
        f"kept for {kept}, and no forecast wants it"
    )
