from dataclasses import replace

import pytest

from atoll.core.model.booking import OnEnd
from atoll.core.model.errors import StaleEpoch
from atoll.core.model.ids import DEFAULT_SHARD
from atoll.core.model.reservation import OccurrenceState, Part
from tests.adapters.booking_builders import AT, HOUR, book, move, share
from tests.adapters.store_builders import NORTH, SOUTH, cluster_with, lead, node
from tests.adapters.store_worlds import StoreWorld


async def test_the_leader_is_told_of_windows(world: StoreWorld) -> None:
    await cluster_with(world.store, node("n1", gpus=1))
    before = await world.store.placement.load(DEFAULT_SHARD)
    made, (occurrence, later) = await book(world.store, starts=(AT, AT + 7200))
    changed = await world.store.placement.catch_up(DEFAULT_SHARD, before.cursor)
    loaded = await world.store.placement.load(DEFAULT_SHARD)
    assert changed.windows == loaded.windows
    assert [window.id for window in changed.windows] == [occurrence.id, later.id]
    window = changed.windows[0]
    assert (window.booking, window.cluster, window.shares) == ("exam", NORTH, (share(),))
    assert (window.start, window.end, window.open) == (AT, AT + HOUR, False)
    assert (window.owners, window.on_end, window.charge) == (made.spec.owners, OnEnd.STOP, ())


async def test_the_leader_is_told_when_windows_open_and_go(world: StoreWorld) -> None:
    await cluster_with(world.store, node("n1", gpus=1))
    _, (one, other) = await book(world.store, starts=(AT, AT + 7200))
    before = await world.store.placement.load(DEFAULT_SHARD)
    await move(world.store, one, OccurrenceState.RUNNING, started_at=AT)
    await move(world.store, other, OccurrenceState.CANCELLED)
    changed = await world.store.placement.catch_up(DEFAULT_SHARD, before.cursor)
    assert [(window.id, window.open) for window in changed.windows] == [(one.id, True)]
    assert changed.windows_gone == (other.id,)


async def test_windows_are_told_to_the_shard_of_their_cluster(world: StoreWorld) -> None:
    await cluster_with(world.store, node("n1", gpus=1))
    before = await world.store.placement.load(DEFAULT_SHARD)
    _, (one,) = await book(world.store)
    elsewhere = replace(one, parts=(Part(SOUTH, (share(2),)),))
    await move(world.store, elsewhere, OccurrenceState.PLANNED)
    changed = await world.store.placement.catch_up(DEFAULT_SHARD, before.cursor)
    assert (changed.windows, changed.windows_gone) == ((), (one.id,))


async def test_a_booking_lets_older_plans_fail(world: StoreWorld) -> None:
    fence = await lead(world.store)
    await book(world.store)
    with pytest.raises(StaleEpoch):
        async with world.store.placement.begin() as tx:
            await tx.require(fence)
    assert (await world.store.placement.read_fence(DEFAULT_SHARD)).booking_rev == 1


async def test_what_changed_is_seen_inside_the_transaction_that_books(world: StoreWorld) -> None:
    before = await world.store.placement.load(DEFAULT_SHARD)
    await cluster_with(world.store, node("n1", gpus=1))
    async with world.store.reservation.begin() as tx:
        await tx.lock_shards([DEFAULT_SHARD])
        delta = await tx.catch_up(DEFAULT_SHARD, before.cursor)
        assert [each.inventory.name for each in delta.nodes] == ["n1"]
        again = await tx.catch_up(DEFAULT_SHARD, delta.cursor)
        assert again.nodes == ()
