"""Refusals and silence: where the leader sends nothing for a while, and what it gives up."""

import pytest

from atoll.core.model.inventory import ClusterState
from atoll.core.model.lifecycle import AttemptEvent, JobState
from atoll.core.model.reason import ReasonCode
from tests.adapters.store_builders import NORTH, SOUTH
from tests.services.placement.shard import Shard, cycle, one_gpu, requeued_when_lost


async def test_a_node_that_refused_gets_nothing_until_a_later_inventory() -> None:
    shard = Shard()
    await shard.cluster(nodes=2)
    jobs = await shard.submit(one_gpu())
    leader = await shard.lead()
    await cycle(leader)
    attempt = await shard.attempt(jobs[0].id)
    refused = attempt.tasks[0].node
    await shard.report(
        attempt.id,
        AttemptEvent.REJECTED,
        reason=ReasonCode.DEVICE_ABSENT,
        suspects=(refused,),
        inventory_number=1,
    )
    await cycle(leader)
    again = await shard.attempt(jobs[0].id)
    assert again.id != attempt.id
    assert again.tasks[0].node != refused
    assert (await shard.job(jobs[0].id)).rollbacks == 1


async def test_a_cluster_that_refused_a_shape_is_avoided_for_a_growing_while() -> None:
    shard = Shard()
    await shard.cluster()
    jobs = await shard.submit(one_gpu())
    leader = await shard.lead()
    pauses = []
    for _ in range(3):
        await cycle(leader)
        attempt = await shard.attempt(jobs[0].id)
        await shard.report(attempt.id, AttemptEvent.REJECTED, reason=ReasonCode.BACKEND_ERROR)
        await cycle(leader)
        assert await shard.states(jobs) == [JobState.QUEUED]
        due = leader.memory.world.next_wakeup(shard.clock.now())
        assert due is not None
        pauses.append(due - shard.clock.now())
        await shard.clock.advance(due - shard.clock.now() + 0.001)
    assert pauses == [4.0, 8.0, 16.0]


async def test_avoidance_survives_a_change_of_leaders() -> None:
    shard = Shard()
    await shard.cluster()
    jobs = await shard.submit(one_gpu())
    leader = await shard.lead()
    await cycle(leader)
    attempt = await shard.attempt(jobs[0].id)
    await shard.report(attempt.id, AttemptEvent.REJECTED, reason=ReasonCode.BACKEND_ERROR)
    await leader.catch_up()
    successor = await shard.lead()
    await cycle(successor)
    assert await shard.states(jobs) == [JobState.QUEUED]
    await shard.clock.advance(5)
    await cycle(successor)
    assert await shard.states(jobs) == [JobState.ASSIGNED]


async def test_ten_refusals_of_one_cycle_count_once() -> None:
    shard = Shard()
    await shard.cluster(nodes=4)
    jobs = await shard.submit(*(one_gpu(f"j{i}") for i in range(10)))
    leader = await shard.lead()
    await cycle(leader)
    for each in jobs:
        attempt = await shard.attempt(each.id)
        await shard.report(attempt.id, AttemptEvent.REJECTED, reason=ReasonCode.BACKEND_ERROR)
    await leader.catch_up()
    due = leader.memory.world.next_wakeup(shard.clock.now())
    assert due == pytest.approx(shard.clock.now() + 4.0)


async def test_silence_closes_a_cluster_and_later_gives_its_requeue_jobs_up() -> None:
    shard = Shard()
    await shard.cluster(NORTH)
    jobs = await shard.submit(requeued_when_lost("moves"), one_gpu("stays"))
    leader = await shard.lead()
    await cycle(leader)
    await shard.sent()
    for each in jobs:
        await shard.report((await shard.attempt(each.id)).id, AttemptEvent.STARTED)
    await shard.cluster(SOUTH)
    seen = []
    for _ in range(30):
        await shard.clock.advance(1)
        await shard.beat(SOUTH)
        await leader.listen(dispatch_alive=True)
        await cycle(leader)
        seen.append((await shard.cluster_row(NORTH)).state)
    assert sorted(set(seen)) == [ClusterState.ACTIVE, ClusterState.LOST, ClusterState.SILENT]
    moved, stayed = [await shard.job(each.id) for each in jobs]
    assert (moved.state, moved.cluster) == (JobState.ASSIGNED, SOUTH)
    assert (stayed.state, stayed.cluster) == (JobState.RUNNING, NORTH)
    await shard.beat(NORTH)
    await leader.listen(dispatch_alive=True)
    assert (await shard.cluster_row(NORTH)).state is ClusterState.ACTIVE


async def test_no_silence_is_counted_without_a_dispatch_to_hear_through() -> None:
    shard = Shard()
    await shard.cluster()
    leader = await shard.lead()
    for _ in range(60):
        await shard.clock.advance(1)
        await leader.listen(dispatch_alive=False)
    assert (await shard.cluster_row()).state is ClusterState.ACTIVE


async def test_a_successor_goes_on_counting_after_its_grace() -> None:
    shard = Shard()
    await shard.cluster()
    leader = await shard.lead()
    for _ in range(7):
        await shard.clock.advance(1)
        await leader.listen(dispatch_alive=True)
    counted = (await shard.cluster_row()).silent_s
    assert counted >= 4
    successor = await shard.lead()
    for _ in range(2):
        await shard.clock.advance(1)
        await successor.listen(dispatch_alive=True)
    assert (await shard.cluster_row()).silent_s == counted
    for _ in range(4):
        await shard.clock.advance(1)
        await successor.listen(dispatch_alive=True)
    assert (await shard.cluster_row()).silent_s > counted
