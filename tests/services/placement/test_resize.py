"""Runs that change their size: what they hold before, meanwhile and after."""

from dataclasses import replace

import pytest

from atoll.core.model.ids import AttemptId, NodeId
from atoll.core.model.job import Job
from atoll.core.model.lifecycle import AttemptEvent, JobState
from atoll.core.model.messages import DecisionKind
from atoll.core.model.plan import Resize, TaskPlacement
from atoll.core.model.resources import DeviceGrant
from atoll.placement.usecases.leader import Leader
from atoll.placement.usecases.resize import commit_resizes
from tests.adapters.store_builders import NORTH
from tests.services.placement.shard import Shard, cycle, one_gpu


@pytest.fixture
def shard() -> Shard:
    return Shard()


async def running(shard: Shard, leader: Leader) -> Job:
    """A job that runs on one device of the one node."""
    (job,) = await shard.submit(one_gpu())
    await cycle(leader)
    await shard.sent()
    await shard.report((await shard.attempt(job.id)).id, AttemptEvent.STARTED)
    await leader.catch_up()
    return job


def second(task: TaskPlacement, device: int) -> TaskPlacement:
    return task._replace(rank=1, devices=(DeviceGrant(device, 100),))


async def resize(leader: Leader, change: Resize) -> int:
    """Commit a change; how many attempts changed."""
    done = await commit_resizes(leader.store, leader.fence, [change])
    leader.fence = done.fence
    leader.memory.resized(done.attempts, [change], now=leader.clock.monotonic())
    return len(done.attempts)


def devices_held(leader: Leader, attempt: AttemptId) -> list[int]:
    held = leader.memory.world.ledger.holdings[attempt]
    return [grant.index for task in held.tasks for grant in task.devices]


async def test_growth_is_held_at_once_and_what_could_not_begin_is_given_back(
    shard: Shard,
) -> None:
    await shard.cluster(nodes=1, gpus=2)
    leader = await shard.lead()
    job = await running(shard, leader)
    attempt = await shard.attempt(job.id)
    free = 1 - attempt.tasks[0].devices[0].index
    change = Resize(attempt.id, NORTH, 1, add=(second(attempt.tasks[0], free),))
    assert await resize(leader, change) == 1
    decision = (await shard.decisions())[-1]
    assert (decision.kind, decision.generation) == (DecisionKind.RESIZE, 1)
    assert [task.rank for task in decision.tasks] == [0, 1]
    (other,) = await shard.submit(one_gpu())
    await cycle(leader)
    assert await shard.states([other]) == [JobState.QUEUED]
    await shard.report(attempt.id, AttemptEvent.RESIZED, generation=1, ranks=(0,))
    await cycle(leader)
    assert await shard.states([job, other]) == [JobState.RUNNING, JobState.ASSIGNED]
    assert len(devices_held(leader, attempt.id)) == 1


async def test_what_is_to_end_is_held_until_it_has_ended(shard: Shard) -> None:
    await shard.cluster(nodes=1, gpus=2)
    leader = await shard.lead()
    (job,) = await shard.submit(one_gpu(tasks=2))
    await cycle(leader)
    await shard.sent()
    attempt = await shard.attempt(job.id)
    await shard.report(attempt.id, AttemptEvent.STARTED)
    await leader.catch_up()
    assert await resize(leader, Resize(attempt.id, NORTH, 1, drop=(1,))) == 1
    assert [task.rank for task in (await shard.decisions())[-1].tasks] == [0]
    (other,) = await shard.submit(one_gpu())
    await cycle(leader)
    assert await shard.states([other]) == [JobState.QUEUED]
    await shard.report(attempt.id, AttemptEvent.RESIZED, generation=1, ranks=(0,))
    await cycle(leader)
    assert await shard.states([job, other]) == [JobState.RUNNING, JobState.ASSIGNED]
    # A new leader reads the same from the rows.
    again = await shard.lead()
    assert devices_held(again, attempt.id) == devices_held(leader, attempt.id)


async def test_one_change_at_a_time_and_only_of_what_runs(shard: Shard) -> None:
    await shard.cluster(nodes=1, gpus=4)
    leader = await shard.lead()
    (waiting,) = await shard.submit(one_gpu())
    await cycle(leader)
    begun = await shard.attempt(waiting.id)
    assert await resize(leader, Resize(begun.id, NORTH, 1, drop=(0,))) == 0
    job = await running(shard, leader)
    attempt = await shard.attempt(job.id)
    grown = Resize(attempt.id, NORTH, 1, add=(second(attempt.tasks[0], 3),))
    assert await resize(leader, replace(grown, generation=2)) == 0
    assert await resize(leader, grown) == 1
    assert await resize(leader, Resize(attempt.id, NORTH, 2, drop=(1,))) == 0
    await shard.report(attempt.id, AttemptEvent.RESIZED, generation=1, ranks=(0, 1))
    assert await resize(leader, Resize(attempt.id, NORTH, 2, drop=(1,))) == 1
    assert await shard.nodes_held() == {NodeId(1)}
