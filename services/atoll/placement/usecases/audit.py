"""Compares the ledger with the allocation rows: a difference is an alarm, never repaired."""

from atoll.core.state.ledger import Difference
from atoll.placement.usecases.leader import Leader


async def audit(leader: Leader) -> tuple[Difference, ...]:
    """Where ledger and rows differ, with the leader's lock held and its rows caught up.

    A report that ends an attempt between the two reads shows as a difference once; what is
    still there at a second look is real.
    """
    first = await _differences(leader)
    if not first:
        return ()
    await leader.catch_up()
    return tuple(d for d in await _differences(leader) if d in first)


async def _differences(leader: Leader) -> tuple[Difference, ...]:
    rows = await leader.store.allocations(leader.shard)
    return leader.memory.world.ledger.differences(rows)
