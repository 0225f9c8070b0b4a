"""Rented machines that are gone: their clusters are forgotten, and what ran there queues again."""

from dataclasses import replace

from atoll.core.model.ids import ClusterName
from atoll.core.model.inventory import ClusterState
from atoll.core.state.rentals import ENDED
from atoll.placement.usecases.forget import forget_ended
from atoll.placement.usecases.leader import Leader
from atoll.placement.usecases.memory import LeaderMemory


async def forget_rentals(leader: Leader) -> list[ClusterName]:
    """Forget the clusters of machines that have ended; which, so that their streams go, too."""
    gone = [rental.cluster for rental in leader.memory.world.rentals if rental.state in ENDED]
    for name in gone:
        forgotten = await forget_ended(leader.store, leader.fence, name)
        leader.fence = forgotten.fence
        leader.counters.lost += len(forgotten.outcomes)
        _forgot(leader.memory, name)
    if gone:
        # What ran there is back in the queue at once.
        await leader.catch_up()
    return gone


def _forgot(memory: LeaderMemory, name: ClusterName) -> None:
    known = memory.clusters.get(name)
    if known is not None:
        memory.put_clusters([replace(known, state=ClusterState.RETIRED)])
    memory.world.forget_rental(name)
