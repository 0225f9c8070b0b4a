"""What is held for jobs, and how often they were stopped for others, in both stores."""

from dataclasses import replace

from atoll.core.model.ids import DEFAULT_SHARD, ClusterName, JobId, NodeId, QueueName, attempt_id
from atoll.core.model.lifecycle import AttemptEvent, AttemptWish, JobState, StopCause
from atoll.core.model.plan import LEAST_IMMUNITY_S, Nomination, TaskPlacement
from atoll.core.model.resources import DeviceGrant
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
from tests.adapters.store_worlds import Store, StoreWorld

HELD = Nomination(
    JobId(7),
    NORTH,
    QueueName("a.b"),
    (
        TaskPlacement(0, 0, NodeId(3), "n3", 4000, 1 << 30, (DeviceGrant(1, blocks=100),)),
        TaskPlacement(1, 1, NodeId(4), "n4", 1, 2, (DeviceGrant(0, 0, 3, "2g.20gb"),)),
    ),
    until=1234.5,
    victims=(attempt_id(JobId(1), 1), attempt_id(JobId(2), 3)),
)


async def held(store: Store) -> list[Nomination]:
    return list((await store.placement.load(DEFAULT_SHARD)).nominations)


async def test_what_is_held_is_read_as_it_was_written(world: StoreWorld) -> None:
    store = world.store
    fence = await lead(store)
    other = replace(HELD, job=JobId(5), victims=())
    async with store.placement.begin() as tx:
        await tx.require(fence)
        await tx.put_nominations(DEFAULT_SHARD, [HELD, other])
    assert await held(store) == [other, HELD]


async def test_a_job_has_one_hold_and_the_last_one_counts(world: StoreWorld) -> None:
    store = world.store
    fence = await lead(store)
    later = replace(HELD, until=2000.0, cluster=ClusterName("south"))
    async with store.placement.begin() as tx:
        fence = await tx.require(fence)
        await tx.put_nominations(DEFAULT_SHARD, [HELD])
        await tx.put_nominations(DEFAULT_SHARD, [later])
    assert await held(store) == [later]
    async with store.placement.begin() as tx:
        await tx.require(fence)
        await tx.end_nominations([JobId(7), JobId(99)])
    assert await held(store) == []


async def test_a_job_that_was_stopped_for_others_is_counted_and_left_alone(
    world: StoreWorld,
) -> None:
    store = world.store
    await cluster_with(store, node("n1"))
    fence = await lead(store)
    (job,) = await submit(store)
    nodes = await node_ids(store)
    fence, _ = await place(store, fence, placement(job, nodes["n1"]))
    first = attempt_id(job.id, 1)
    await report(store, first, AttemptEvent.STARTED)
    async with store.placement.begin() as tx:
        fence = await tx.require(fence)
        rows = await tx.lock_attempts([first])
        told = replace(rows[first], wish=AttemptWish.STOP, cause=StopCause.PREEMPT)
        await tx.update_attempts([told])
    await report(store, first, AttemptEvent.STOPPED)
    view = (await store.placement.load(DEFAULT_SHARD)).jobs[0]
    assert (view.state, view.pending.preemptions) == (JobState.QUEUED, 1)
    again = placement(job, nodes["n1"])._replace(
        revision=view.pending.revision, attempt=attempt_id(job.id, 2)
    )
    await place(store, fence, again)
    (live,) = (await store.placement.load(DEFAULT_SHARD)).attempts
    assert live.run is not None
    assert live.run.preemptions == 1
    assert live.run.immune_until == live.attempt.created_at + LEAST_IMMUNITY_S
