"""Which jobs have an instance already: held for them, on its way, or idle with room for them."""

from collections.abc import Iterable, Mapping

import numpy as np

from atoll.core.engine.burst.broker.ground import NO_USE, Ground
from atoll.core.engine.burst.broker.table import AMOUNTS, table_of
from atoll.core.model.burst import Instance, InstanceId, InstanceState, Market, chain_of
from atoll.core.model.burst_rules import refusal
from atoll.core.model.burst_wants import Want
from atoll.core.model.ids import JobId, QueueName

COMING = frozenset({InstanceState.REQUESTED, InstanceState.BOOTING})
PATIENCE_S = 300.0
"""Who has not taken an instance that is ready after so long will not."""
NOWHERE = InstanceId(0)


def covered(ground: Ground) -> dict[JobId, InstanceId]:
    """By job, the instance that it is to use before anything is rented for it."""
    alive = [each for each in ground.instances if is_open(each)]
    found = {job: each.id for each in alive if _is_promised(each, ground.now) for job in each.jobs}
    ids = {each.id for each in alive}
    found |= {want.job: want.placed_on for want in ground.wants if want.placed_on in ids}
    return found | _with_room(ground, alive, found)


def is_open(instance: Instance) -> bool:
    """Whether it takes work, or will."""
    return instance.state in COMING or instance.state is InstanceState.READY


def _is_promised(instance: Instance, now: float) -> bool:
    """Its jobs have it until it has been ready for so long that they could have started."""
    ready = instance.state is InstanceState.READY
    return not ready or 0 <= now - instance.ready_at < PATIENCE_S


def _with_room(
    ground: Ground, alive: Iterable[Instance], found: Mapping[JobId, InstanceId]
) -> dict[JobId, InstanceId]:
    """Who fits on what is idle or on its way, beside those that it is meant for."""
    empty = [each for each in alive if not ground.uses.get(each.id, NO_USE).live]
    if not empty or not ground.wants:
        return {}
    table = table_of(ground.wants, [each.offer for each in empty])
    places = {each.id: place for place, each in enumerate(empty)}
    left = np.full((len(empty), AMOUNTS), 1 + 1e-9)
    more: dict[JobId, InstanceId] = {}
    leave = _Leave(ground)
    for n, want in enumerate(ground.wants):
        parts = table.parts[n]
        place = places.get(found.get(want.job, NOWHERE))
        if want.job not in found:
            able = np.flatnonzero(table.fits[n] & (parts <= left).all(axis=1))
            place = next((each for each in able.tolist() if _may(want, empty[each], leave)), None)
            if place is not None:
                more[want.job] = empty[place].id
        if place is not None:
            left[place] -= parts[place]
    return more


class _Leave:
    """Which queues may use what, asked once each."""

    def __init__(self, ground: Ground) -> None:
        self.now = ground.now
        self._policies = ground.policies
        self._known: dict[tuple[QueueName, InstanceId], bool] = {}

    def given(self, queue: QueueName, instance: Instance) -> bool:
        key = (queue, instance.id)
        if key not in self._known:
            pays = instance.queue in chain_of(queue)
            self._known[key] = pays and not refusal(self._policies, queue, instance.offer)
        return self._known[key]


def _may(want: Want, instance: Instance, leave: _Leave) -> bool:
    if instance.state is InstanceState.READY:
        waited_s = leave.now - max(instance.idle_since, want.submitted_at)
        if waited_s > PATIENCE_S:
            return False
    risky = instance.offer.market is Market.SPOT and not want.preemptible
    return not risky and leave.given(want.queue, instance)
