"""Renting after a fixed wait, as SkyPilot (10 minutes) and Kueue (5) spill over.

One instance for each job that has waited so long: the cheapest that is to be had and holds it,
for as long as nothing has run there for the same time.
"""

from dataclasses import dataclass

from atoll.core.model.burst import EndCause, InstanceState, Offer
from atoll.sim.renting.world import World, nominees


@dataclass(frozen=True, slots=True)
class Reactive:
    """The rule."""

    after_s: float
    idle_s: float

    def look(self, world: World) -> None:
        """End what has been idle, rent for what has waited."""
        self._end_idle(world)
        held = {job for job, _ in nominees(world)}
        for job in list(world.waiting):
            waited_s = world.queued_s[job] + world.now - world.since[job]
            if waited_s >= self.after_s and job not in held:
                self._rent(world, job)

    def hour(self, world: World) -> None:
        """It looks no further than now."""

    def _end_idle(self, world: World) -> None:
        for each in list(world.machines.values()):
            idle = each.state is InstanceState.READY and each.idle_since > 0
            if idle and world.now - each.idle_since >= self.idle_s:
                world.drain(each, EndCause.IDLE, world.now)

    def _rent(self, world: World, job: int) -> None:
        for offer in sorted(world.offers, key=_price):
            if offer.devices >= world.devices[job] and world.rent(offer, [job]) is not None:
                return


def _price(offer: Offer) -> tuple[int, str]:
    return offer.price, offer.key
