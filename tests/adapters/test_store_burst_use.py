from dataclasses import replace

from atoll.core.model.burst import InstanceState
from atoll.core.model.ids import JobId
from atoll.core.model.inventory import ClusterState
from atoll.core.model.lifecycle import AttemptEvent, JobState
from atoll.ports.store.burst import Capacity
from atoll.ports.store.demand import PAGE, DemandRow
from tests.adapters.burst_builders import DOLLAR, NLP, move, offer, rent, set_policy
from tests.adapters.store_builders import (
    NORTH,
    cluster_with,
    lead,
    node,
    node_ids,
    place,
    placement,
    report,
    submit,
)
from tests.adapters.store_worlds import StoreWorld

RETIRED = ClusterState.RETIRED


async def demand(world: StoreWorld, *, since: float = 0.0, page: int = PAGE) -> list[DemandRow]:
    return [row async for rows in world.store.burst.demand(since=since, page=page) for row in rows]


async def test_uses_tell_who_has_joined_and_what_is_there(world: StoreWorld) -> None:
    made = await rent(world.store)
    (use,) = await world.store.burst.uses()
    assert (use.cluster, use.joined, use.live_attempts, use.held) == (made.cluster, False, 0, 0)
    await move(world.store, made, InstanceState.FAILED, ended_at=3.0)
    assert await world.store.burst.uses() == []


async def test_capacities_count_devices_of_nodes_that_take_work(world: StoreWorld) -> None:
    made = await rent(world.store)
    broken = replace(node("n2", gpus=2).devices[0], healthy=False)
    await cluster_with(
        world.store,
        node("n1", gpus=2),
        replace(node("n2", gpus=2), devices=(broken, node("n2", gpus=2).devices[1])),
        node("n3"),
        node("n4", gpus=8, up=False),
    )
    found = await world.store.burst.capacities()
    assert found == [Capacity(NORTH, "", 1, rented=False), Capacity(NORTH, "H100", 3, rented=False)]
    fence = await lead(world.store)
    async with world.store.placement.begin() as tx:
        await tx.require(fence)
        await tx.lock_clusters([made.cluster])
        await tx.set_cluster_state(made.cluster, ClusterState.ACTIVE)
    # Its agent has said nothing yet, but the offer's node stands for it.
    assert (await world.store.burst.capacities())[0] == Capacity(
        made.cluster, "H100", 2, rented=True
    )


async def test_demand_tells_what_runs_waits_and_has_ended(world: StoreWorld) -> None:
    await cluster_with(world.store, node("n1", gpus=4))
    running, ended, waiting, held = await submit(world.store, 4)
    at = (await node_ids(world.store))["n1"]
    fence = await lead(world.store)
    placed = placement(running, at, gpus=(0, 1)), placement(ended, at)
    await place(world.store, fence, *placed)
    for each in placed:
        await report(world.store, each.attempt, AttemptEvent.ACCEPTED)
        await report(world.store, each.attempt, AttemptEvent.STARTED)
    await report(world.store, placed[1].attempt, AttemptEvent.FINISHED, exit_code=0)
    async with world.store.submission.begin() as tx:
        stands = (await tx.lock_jobs([held.id]))[held.id]
        await tx.update_jobs([replace(stands, state=JobState.HELD)])
    rows = await demand(world)
    assert [row.job for row in rows] == [running.id, waiting.id, held.id, ended.id]
    assert [(row.kind, row.devices) for row in rows] == [("H100", 2.0), *[("", 0.0)] * 3]
    assert [row.cluster for row in rows] == [NORTH, "", "", NORTH]
    assert [row.waits for row in rows] == [False, False, True, False]
    assert [bool(row.started_at) for row in rows] == [True, False, False, True]
    assert [bool(row.ended_at) for row in rows] == [False, False, False, True]
    later = await demand(world, since=rows[3].ended_at)
    assert [row.job for row in later] == [running.id, waiting.id, held.id]
    named = await world.store.burst.demand_of([held.id, ended.id, JobId(999)])
    assert named == [rows[3], rows[2]]


async def test_demand_tells_for_whom_and_until_when_a_job_waits(world: StoreWorld) -> None:
    (first,) = await submit(world.store)
    later = replace(first.spec, depends_on=(first.id,), begin_at=4e9)
    await submit(world.store, spec=later)
    _, second = await demand(world)
    assert (second.waits, second.after, second.begin_at) == (True, (first.id,), 4e9)


async def test_submission_is_told_what_some_queue_may_rent(world: StoreWorld) -> None:
    cheap, dear = offer(instance_type="cheap"), offer(instance_type="dear", price=90 * DOLLAR)
    async with world.store.burst.begin() as tx:
        await tx.put_offers("cloud", [cheap, dear])
    assert await world.store.submission.rentable() == []
    await set_policy(world.store, NLP, most_price=2 * DOLLAR)
    assert await world.store.submission.rentable() == [cheap]


async def test_clusters_of_forgotten_machines_are_no_load_for_leaders(world: StoreWorld) -> None:
    await cluster_with(world.store, node("n1"))
    made, fence = await rent(world.store), await lead(world.store)
    both = {c.name for c in (await world.store.placement.load(fence.shard)).clusters}
    assert both == {NORTH, made.cluster}
    async with world.store.placement.begin() as tx:
        await tx.require(fence)
        await tx.lock_sessions([NORTH, made.cluster])
        await tx.forget_cluster(made.cluster)
    left = await world.store.placement.load(fence.shard)
    assert {c.name for c in left.clusters} == {NORTH}
    assert {c.name for c in await world.store.placement.heartbeats(fence.shard)} == {NORTH}
    assert [c.state for c in await world.store.submission.clusters()].count(RETIRED) == 1
