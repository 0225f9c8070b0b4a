"""What has been idle for long enough and is wanted by nobody."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from atoll.core.engine.burst.broker.forecast_rents import Held, planned_in
from atoll.core.engine.burst.broker.ground import NO_USE, Drain, Ground, Outlook
from atoll.core.engine.burst.broker.idle import keep_s
from atoll.core.engine.burst.broker.memory import Pool, Turn
from atoll.core.engine.burst.broker.need import belongs, held_in, need_of
from atoll.core.engine.burst.broker.over import drain_of
from atoll.core.engine.choice.worth import dollars, in_words
from atoll.core.model.burst import EndCause, Instance, InstanceId, InstanceState

STILL_S = 900.0
"""What a forecast wanted so lately is not drained, even if it no longer does: it may waver."""


@dataclass(slots=True)
class Idle:
    """What is to be drained, and which pools wanted to keep what is idle."""

    drains: list[Drain] = field(default_factory=list)
    wanted: set[Pool] = field(default_factory=set)


def idle_drains(
    ground: Ground, planned: Held, *, taken: Collection[InstanceId], gone: Collection[InstanceId]
) -> Idle:
    """The dearest per device first. `taken`: jobs are to use them; `gone`: drained anyway."""
    left = tuple(each for each in ground.instances if each.id not in gone)
    found, wishes = Idle(), _Wishes(replace(ground, instances=left), planned)
    for each in sorted(left, key=lambda each: (-_per_device(each), each.idle_since, each.id)):
        if each.id in taken or not _is_idle(ground, each):
            continue
        pools = wishes.pools_that_want(each)
        found.wanted |= pools
        if pools or wishes.is_fresh(each) or not _is_over(ground, each):
            continue
        wishes.drop(each)
        found.drains.append(drain_of(ground, each, EndCause.IDLE, why=_why(ground, each)))
    return found


class _Wishes:
    """What forecasts want, asked once for instances that are alike."""

    def __init__(self, ground: Ground, planned: Held) -> None:
        self._ground = ground
        pools = [Pool(each.kind, each.queue) for each in ground.outlooks]
        self._held = {
            pool: held_in(ground.instances, pool) + planned_in(planned, pool) for pool in pools
        }
        self._known: dict[tuple[Pool, float, float, int], int] = {}

    def pools_that_want(self, instance: Instance) -> set[Pool]:
        """Those by whose forecast, from now on, it is not one too many."""
        units = instance.offer.units
        return {
            pool
            for outlook in self._ground.outlooks
            if belongs(instance, pool := Pool(outlook.kind, outlook.queue))
            and self._held[pool] - units < self._hold(outlook, instance)
        }

    def is_fresh(self, instance: Instance) -> bool:
        """Whether a pool of it has grown, or wanted to keep what it has, just now."""
        lead_s = instance.offer.lead_s
        kept_s = keep_s(self._ground, instance.offer, instance.queue)
        for pool in filter(lambda pool: belongs(instance, pool), self._held):
            turn = self._ground.memory.turns.get(pool, Turn())
            grown_s, wanted_s = (self._ground.now - at for at in (turn.rented_at, turn.wanted_at))
            if 0 <= grown_s < kept_s + lead_s or 0 <= wanted_s < min(kept_s, STILL_S):
                return True
        return False

    def drop(self, instance: Instance) -> None:
        """It is drained."""
        for pool in self._held:
            if belongs(instance, pool):
                self._held[pool] -= instance.offer.units

    def _hold(self, outlook: Outlook, instance: Instance) -> int:
        offer = instance.offer
        pool, each = Pool(outlook.kind, outlook.queue), offer.price / offer.units
        key = (pool, each, offer.lead_s, self._held[pool])
        if key not in self._known:
            until_s = offer.lead_s + self._ground.options.commitment_s
            need = need_of(
                self._ground,
                outlook,
                price=round(each),
                held=self._held[pool],
                since_s=0.0,
                until_s=until_s,
            )
            self._known[key] = need.amount.hold
        return self._known[key]


def _is_idle(ground: Ground, instance: Instance) -> bool:
    use = ground.uses.get(instance.id, NO_USE)
    ready = instance.state is InstanceState.READY and instance.idle_since > 0
    return ready and not use.live and not use.held


def _is_over(ground: Ground, instance: Instance) -> bool:
    """Whether it has been idle for as long as it is kept."""
    kept_s = keep_s(ground, instance.offer, instance.queue)
    return ground.now >= instance.keep_until and ground.now - instance.idle_since >= kept_s


def _per_device(instance: Instance) -> float:
    return instance.offer.price / instance.offer.units


def _why(ground: Ground, instance: Instance) -> str:
    idle = in_words(ground.now - instance.idle_since)
    kept = in_words(keep_s(ground, instance.offer, instance.queue))
    price = dollars(instance.offer.price)
    return (
        f"drained instance {instance.id} ({instance.offer.key}, {price}/h): idle for {idle}, "
        f"kept for {kept}, and no forecast wants it"
    )
