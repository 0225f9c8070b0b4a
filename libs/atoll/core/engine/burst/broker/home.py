"""What runs on rented instances goes on at home when there is idle room and a long way to go.

An interruption costs a restart; what is rented costs as long as the work lasts. So the dearest
rests go first, each only if all of it fits into what is idle and nobody waits for.
"""

from collections.abc import Iterator

from atoll.core.engine.burst.broker.ground import NO_USE, Drain, Ground, Use
from atoll.core.engine.choice.worth import dollars, in_words
from atoll.core.model.burst import EndCause, Instance, InstanceState


def home(ground: Ground) -> tuple[Drain, ...]:
    """Instances whose work goes on in capacity that is there anyway."""
    return tuple(_going(ground)) if ground.options.home_s > 0 and ground.spare else ()


def _going(ground: Ground) -> Iterator[Drain]:
    spare = dict(ground.spare)
    found = ((each, ground.uses.get(each.id, NO_USE)) for each in ground.instances)
    for instance, use in sorted(filter(_is_at_work, found), key=_dearest):
        kind = instance.offer.kind
        if use.left_s > ground.options.home_s and use.devices <= spare.get(kind, 0):
            spare[kind] -= use.devices
            yield _drain(ground, instance, use)


def _is_at_work(pair: tuple[Instance, Use]) -> bool:
    instance, use = pair
    return instance.state is InstanceState.READY and use.live > 0 and use.devices > 0


def _dearest(pair: tuple[Instance, Use]) -> tuple[float, int]:
    instance, use = pair
    return -instance.offer.price / use.devices * use.left_s, instance.id


def _drain(ground: Ground, instance: Instance, use: Use) -> Drain:
    rest = dollars(round(instance.offer.price * use.left_s / 3600))
    why = (
        f"what runs there goes on in idle devices of our own: it would take "
        f"{in_words(use.left_s)} and {rest} more"
    )
    stop_at = ground.now
    return Drain(instance.id, EndCause.IDLE, stop_at, stop_at + ground.options.grace_s, why)
