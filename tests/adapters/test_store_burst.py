from dataclasses import replace

import pytest

from atoll.core.model.burst import (
    EndCause,
    InstanceId,
    InstanceState,
    Market,
    cluster_of,
    nodes_of,
    rental_of,
)
from atoll.core.model.burst_wants import Ask, BurstDecision, Want
from atoll.core.model.errors import StaleEpoch
from atoll.core.model.ids import DEFAULT_SHARD, NO_EPOCH, ClusterName, Epoch, JobId
from atoll.core.model.inventory import ClusterState
from atoll.core.model.messages import ChangeKind
from atoll.ports.store.bookings import LoopFence
from atoll.ports.store.common import Change
from atoll.ports.store.placement import BurstGround
from tests.adapters.burst_builders import (
    NLP,
    move,
    offer,
    rent,
    set_policy,
    wish,
)
from tests.adapters.store_builders import (
    NORTH,
    QUEUE,
    lead,
)
from tests.adapters.store_worlds import Store, StoreWorld


async def forget(store: Store, *clusters: ClusterName) -> None:
    """As the placement leader forgets clusters."""
    fence = await lead(store)
    async with store.placement.begin() as tx:
        await tx.require(fence)
        await tx.lock_sessions(clusters)
        for cluster in clusters:
            await tx.forget_cluster(cluster)


async def test_what_is_asked_for_has_a_cluster_and_a_node_at_once(world: StoreWorld) -> None:
    made = await rent(world.store, queue=NLP, jobs=(JobId(7), JobId(9)), why="it waits")
    assert made.cluster == cluster_of(made.id) == f"burst-{made.id}"
    assert await world.store.burst.instances([made.id, InstanceId(99)]) == {made.id: made}
    (cluster,) = await world.store.submission.clusters()
    assert (cluster.name, cluster.state) == (made.cluster, ClusterState.BOOTING)
    (row,) = await world.store.submission.nodes("", after=("", ""), limit=9)
    assert (row.cluster, row.inventory) == (made.cluster, nodes_of(offer(), made.cluster)[0])
    assert [device.kind for device in row.inventory.devices] == ["H100", "H100"]


async def test_an_instance_of_several_machines_has_a_node_for_each(world: StoreWorld) -> None:
    pair = replace(offer(), nodes=2)
    made = await rent(world.store, offer=pair)
    rows = await world.store.submission.nodes("", after=("", ""), limit=9)
    assert tuple(row.inventory for row in rows) == nodes_of(pair, made.cluster)
    assert [row.inventory.name for row in rows] == [f"{made.cluster}-0", f"{made.cluster}-1"]
    (rental,) = (await world.store.placement.load(DEFAULT_SHARD)).rentals
    assert rental.offer == pair


async def test_an_instance_is_written_but_not_who_it_is(world: StoreWorld) -> None:
    made = await rent(world.store)
    told = replace(
        made,
        state=InstanceState.DRAINING,
        jobs=(JobId(3),),
        provider_id="i-1",
        created_at=11.0,
        ready_at=12.0,
        idle_since=13.0,
        stop_at=14.0,
        drain_by=15.0,
        keep_until=16.0,
        cause=EndCause.IDLE,
        message="nothing to do",
    )
    async with world.store.burst.begin() as tx:
        await tx.lock_instances([made.id])
        await tx.update_instances([replace(told, token="two", queue=NLP, spent=99)])
    found = (await world.store.burst.instances([made.id]))[made.id]
    assert found == replace(told, revision=made.revision + 1)


async def test_instances_are_listed_the_latest_first(world: StoreWorld) -> None:
    made = [await rent(world.store, f"t{number}") for number in range(4)]
    await move(world.store, made[1], InstanceState.TERMINATED, ended_at=20.0)
    await move(world.store, made[3], InstanceState.FAILED, ended_at=21.0)
    burst = world.store.burst
    ids = [each.id for each in made]
    assert [each.id for each in await burst.live_instances()] == [ids[0], ids[2]]
    live = await burst.list_instances(ended=False, before=0, limit=9)
    assert [each.id for each in live] == [ids[2], ids[0]]
    page = await burst.list_instances(ended=True, before=ids[3], limit=2)
    assert [each.id for each in page] == [ids[2], ids[1]]
    known = await burst.with_token(["t1", "t2", "nobody"])
    assert {token: each.id for token, each in known.items()} == {"t1": ids[1], "t2": ids[2]}


async def test_a_request_stands_once(world: StoreWorld) -> None:
    async with world.store.burst.begin() as tx:
        assert await tx.add_request("key", b"body") is None
        await tx.set_request("key", [InstanceId(4), InstanceId(5)])
    async with world.store.burst.begin() as tx:
        assert await tx.add_request("key", b"other") == (b"body", [4, 5])


async def test_a_later_leader_of_the_loop_ends_the_earlier_one(world: StoreWorld) -> None:
    burst = world.store.burst
    assert await burst.read_fence() == LoopFence(NO_EPOCH, 0)
    fence = await burst.take_over(Epoch(1, 5))
    async with burst.begin() as tx:
        after = await tx.require(fence)
    assert (after.epoch, after.seq) == (Epoch(1, 5), fence.seq + 1)
    await burst.take_over(Epoch(1, 6))
    with pytest.raises(StaleEpoch):
        await burst.take_over(Epoch(1, 5))
    with pytest.raises(StaleEpoch):
        async with burst.begin() as tx:
            await tx.require(after)


async def test_a_transaction_that_fails_leaves_nothing(world: StoreWorld) -> None:
    async def fail() -> None:
        async with world.store.burst.begin() as tx:
            await tx.take_budget(NLP, rate=5, ahead=0)
            await tx.add_instances([wish()])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    assert await world.store.burst.live_instances() == []
    assert await world.store.submission.clusters() == []
    assert sum(each.rate for each in await world.store.burst.budgets()) == 0


async def test_placement_is_told_of_rentals(world: StoreWorld) -> None:
    before = await world.store.placement.load(DEFAULT_SHARD)
    assert (before.rentals, before.burst) == ((), BurstGround())
    made = await rent(world.store, jobs=(JobId(7),), queue=NLP)
    changed = await world.store.placement.catch_up(DEFAULT_SHARD, before.cursor)
    assert changed.rentals == (rental_of(made, ready_at=300.0, give_up_at=900.0),)
    assert [each.name for each in changed.clusters] == [made.cluster]
    assert [each.inventory.name for each in changed.nodes] == [made.cluster]
    assert changed.burst is None
    async with world.store.burst.begin() as tx:
        await tx.lock_instances([made.id])
        await tx.update_instances([made], ready_at={made.id: 400.0})
    later = await world.store.placement.catch_up(DEFAULT_SHARD, changed.cursor)
    assert [each.ready_at for each in later.rentals] == [400.0]
    loaded = await world.store.placement.load(DEFAULT_SHARD)
    assert loaded.rentals == later.rentals


async def test_placement_is_told_of_what_has_ended_until_it_is_forgotten(
    world: StoreWorld,
) -> None:
    made = await rent(world.store)
    before = await world.store.placement.load(DEFAULT_SHARD)
    ended = await move(world.store, made, InstanceState.TERMINATED, ended_at=20.0)
    rental = rental_of(ended, ready_at=300.0, give_up_at=900.0)
    changed = await world.store.placement.catch_up(DEFAULT_SHARD, before.cursor)
    assert changed.rentals == (rental,)
    assert (await world.store.placement.load(DEFAULT_SHARD)).rentals == (rental,)
    await forget(world.store, made.cluster)
    assert (await world.store.placement.load(DEFAULT_SHARD)).rentals == ()


async def test_placement_is_told_what_may_be_rented(world: StoreWorld) -> None:
    cursor = (await world.store.placement.load(DEFAULT_SHARD)).cursor
    policy = await set_policy(world.store, NLP, regions=("eu-1",), markets=(Market.SPOT,))
    everybody = await set_policy(world.store, None, hour_of_delay=5, killed=True)
    offers = (offer(), offer(zone="eu-1b", price=7))
    async with world.store.burst.begin() as tx:
        await tx.put_offers("cloud", offers)
        await tx.put_offers("barn", (offer(provider="barn"),))
    ground = BurstGround((offer(provider="barn"), *offers), (everybody, policy))
    changed = await world.store.placement.catch_up(DEFAULT_SHARD, cursor)
    assert (changed.burst, changed.rentals) == (ground, ())
    assert (await world.store.placement.load(DEFAULT_SHARD)).burst == ground
    assert await world.store.burst.policies() == [everybody, policy]
    async with world.store.burst.begin() as tx:
        await tx.put_offers("cloud", offers)
        assert await tx.lock_policy(NLP) == policy
    same = await world.store.placement.catch_up(DEFAULT_SHARD, changed.cursor)
    assert same.burst is None
    async with world.store.burst.begin() as tx:
        await tx.put_offers("cloud", ())
        await tx.changed([Change(ChangeKind.INSTANCES)])
    told = await world.store.placement.catch_up(DEFAULT_SHARD, same.cursor)
    assert told.burst == replace(ground, offers=ground.offers[:1])


async def test_wants_are_replaced_by_the_leader(world: StoreWorld) -> None:
    first = Want(JobId(1), QUEUE, (Ask("H100", 200, cpu_milli=1),), submitted_at=1.0, work_s=60.0)
    second = replace(first, job=JobId(2), asks=(), placed_on=InstanceId(3), cluster=NORTH)
    fence = await lead(world.store)
    for wants in ((first, second), (second,), ()):
        async with world.store.placement.begin() as tx:
            fence = await tx.require(fence)
            await tx.put_wants(DEFAULT_SHARD, wants)
        assert await world.store.burst.wants() == list(wants)


async def test_decisions_are_found_by_job_and_instance(world: StoreWorld) -> None:
    rents = BurstDecision(
        1.0, "rent", "3 h against 6 min", job=JobId(7), instances=(InstanceId(2),),
        terms=(("cost", 1.5),), queue=NLP,
    )  # fmt: skip
    keeps = BurstDecision(2.0, "keep", "it will be wanted", instances=(InstanceId(2),))
    async with world.store.burst.begin() as tx:
        await tx.add_decisions([rents, keeps])
        await tx.add_decisions([replace(rents, at=3.0, job=JobId(8), instances=())])
    burst = world.store.burst
    assert [each.at for each in await burst.decisions()] == [3.0, 2.0, 1.0]
    assert [each.at for each in await burst.decisions(limit=1)] == [3.0]
    (found,) = await burst.decisions(job=JobId(7))
    assert found == replace(rents, id=found.id)
    assert [each.at for each in await burst.decisions(instance=InstanceId(2))] == [2.0, 1.0]
    assert await burst.decisions(job=JobId(8), instance=InstanceId(2)) == []


async def test_the_forecaster_finds_what_it_kept(world: StoreWorld) -> None:
    assert await world.store.burst.memory("H100") is None
    for content in (b"one", b"two\x00"):
        async with world.store.burst.begin() as tx:
            await tx.put_memory("H100", content)
        assert await world.store.burst.memory("H100") == content


async def test_what_is_long_over_goes_with_its_cluster(world: StoreWorld) -> None:
    gone, kept, live = [await rent(world.store, token) for token in ("a", "b", "c")]
    for each, at in ((gone, 10.0), (kept, 1000.0)):
        await move(world.store, each, InstanceState.TERMINATED, ended_at=at)
    async with world.store.burst.begin() as tx:
        await tx.add_request("key", b"body")
        await tx.add_decisions([BurstDecision(5.0, "rent", "so"), BurstDecision(2e9, "rent", "so")])
    burst = world.store.burst
    assert await burst.prune(before=100.0) == 1
    assert [each.at for each in await burst.decisions()] == [2e9]
    await forget(world.store, gone.cluster, kept.cluster)
    assert await burst.prune(before=100.0) == 1
    left = await burst.list_instances(ended=True, before=0, limit=9)
    assert [each.id for each in left] == [live.id, kept.id]
    assert [each.name for each in await world.store.submission.clusters()] == sorted((
        kept.cluster,
        live.cluster,
    ))
    nodes = await world.store.submission.nodes("", after=("", ""), limit=9)
    assert [each.cluster for each in nodes] == [live.cluster]
    async with world.store.burst.begin() as tx:
        assert await tx.add_request("key", b"other") == (b"body", [])
