"""One agent per cluster at a time; a session that was taken over does nothing any more."""

import asyncio

import pytest

from atoll.core.model.errors import (
    Aborted,
    ErrorCode,
    FailedPrecondition,
    InvalidInput,
    StaleSession,
    Unavailable,
)
from atoll.core.model.ids import job_of
from atoll.core.model.inventory import ClusterState
from atoll.core.model.lifecycle import AttemptEvent, JobState, StopCause
from tests.services.dispatch.fake_agent import FakeAgent
from tests.services.dispatch.values import story
from tests.services.dispatch.worlds import Running, World, node
from tests.support.waiting import eventually


async def with_jobs(world: World, running: Running, count: int) -> FakeAgent:
    """An agent that got some STARTs."""
    agent = await world.agent(running)
    await agent.open()
    await agent.inventory(1, [node()])

    async def listed() -> bool:
        return bool(await world.nodes())

    await eventually(listed)
    await world.run(count)
    await eventually(lambda: len(agent.numbers) == count)
    return agent


async def test_a_new_cluster_registers_itself(world: World) -> None:
    running = await world.replica()
    agent = await world.agent(running)
    welcome = await agent.open()
    assert (welcome.head_seq, welcome.report_seq, list(welcome.live_attempts)) == (0, 0, [])
    assert welcome.lost_after_s > 90
    cluster = await world.cluster()
    assert (cluster.backend, cluster.can_guard) == ("simulated", True)
    assert cluster.holder == running.address


async def test_a_heartbeat_is_answered_after_it_is_committed(world: World) -> None:
    agent = await world.agent(await world.replica())
    await agent.open()
    before = (await world.cluster()).last_seen
    await asyncio.sleep(0.05)
    await agent.beat(7)
    await eventually(lambda: agent.beats == {7: 0})
    assert (await world.cluster()).last_seen > before


async def test_another_instance_waits_for_the_lease(world: World) -> None:
    running = await world.replica()
    first = await world.agent(running)
    await first.open()
    second = await world.agent(running, instance="second")
    with pytest.raises(FailedPrecondition) as refused:
        await second.open(fresh=True)
    assert refused.value.code is ErrorCode.ALREADY_HELD
    await first.beat(1)
    await eventually(lambda: 1 in first.beats)


async def test_after_a_goodbye_another_takes_over_from_a_snapshot(world: World) -> None:
    running = await world.replica()
    first = await with_jobs(world, running, 3)
    attempts = [d.attempt for d in first.decisions]
    await first.report(story(attempts[0], AttemptEvent.STARTED, AttemptEvent.FINISHED))
    await eventually(lambda: first.report_seq == 2)
    await first.goodbye()
    second = await world.agent(running, instance="second")
    welcome = await second.open(fresh=True)
    assert (welcome.from_snapshot, welcome.head_seq) == (True, 3)
    assert list(welcome.live_attempts) == attempts[1:]
    await world.run(1)
    await eventually(lambda: second.numbers == [4])
    assert (await world.cluster()).sent_seq == 4


async def test_what_a_snapshot_hands_over_counts_as_sent(world: World) -> None:
    running = await world.replica()
    first = await with_jobs(world, running, 1)
    await first.goodbye()
    unsent, voided = await world.run(2)
    done = await world.revoke([voided.attempt], StopCause.BIND_DEADLINE)
    assert len(done.voided) == 1
    second = await world.agent(running, instance="second")
    welcome = await second.open(fresh=True)
    assert list(welcome.live_attempts) == [first.decisions[0].attempt, unsent.attempt]
    assert not welcome.stopping_attempts
    done = await world.revoke([unsent.attempt], StopCause.BIND_DEADLINE)
    assert (len(done.voided), len(done.stopping)) == (0, 1)
    await second.goodbye()
    third = await world.agent(running, instance="third")
    welcome = await third.open(fresh=True)
    assert list(welcome.live_attempts) == [first.decisions[0].attempt, unsent.attempt]
    assert list(welcome.stopping_attempts) == [unsent.attempt]


async def test_a_lease_that_is_over_lets_another_in(world: World) -> None:
    running = await world.replica(lease_s=3.0)
    first = await world.agent(running)
    await first.open()
    second = await world.agent(running, instance="second")

    async def let_in() -> bool:
        try:
            await second.open(fresh=True)
        except FailedPrecondition:
            return False
        return True

    await eventually(let_in)
    await first.ended()
    assert isinstance(first.errors[-1], StaleSession)


async def test_the_same_instance_takes_over_at_once_on_the_same_replica(world: World) -> None:
    running = await world.replica()
    agent = await with_jobs(world, running, 1)
    again = FakeAgent(running.address)
    world.exits.push_async_callback(again.close)
    await again.open(applied=1)
    await agent.ended()
    assert isinstance(agent.errors[-1], StaleSession)
    await world.run(1)
    await eventually(lambda: again.numbers == [2])


async def test_a_session_moves_between_replicas_and_the_old_one_is_stale(world: World) -> None:
    one, two = await world.replica(), await world.replica()
    agent = await with_jobs(world, one, 2)
    moved = FakeAgent(two.address)
    world.exits.push_async_callback(moved.close)
    await moved.open(applied=2)
    await agent.report(story(agent.decisions[0].attempt, AttemptEvent.STARTED))
    await agent.ended()
    await world.run(3)
    await eventually(lambda: moved.numbers == [3, 4, 5])
    assert isinstance(agent.errors[-1], StaleSession)
    assert agent.errors[-1].code is ErrorCode.STALE_SESSION
    assert agent.numbers == [1, 2]
    assert (await world.job(job_of(agent.decisions[0].attempt))).state is JobState.ASSIGNED
    assert (await world.cluster()).holder == two.address


@pytest.mark.parametrize("what", ["heartbeat", "inventory", "decisions"])
async def test_every_write_of_a_stale_session_is_refused(world: World, what: str) -> None:
    one, two = await world.replica(), await world.replica()
    agent = await with_jobs(world, one, 1)
    moved = FakeAgent(two.address)
    world.exits.push_async_callback(moved.close)
    await moved.open(applied=1)
    match what:
        case "heartbeat":
            await agent.beat(1)
        case "inventory":
            await agent.inventory(2, [node("other")])
        case _:
            await world.run(1)
    await agent.ended()
    assert isinstance(agent.errors[-1], Aborted)
    assert not agent.beats
    assert agent.numbers == [1]
    assert len(await world.nodes()) == 1


async def test_messages_of_another_epoch_are_ignored(world: World) -> None:
    agent = await with_jobs(world, await world.replica(), 1)
    agent.epoch += 1
    await agent._send(applied_seq=1_000_000)
    agent.epoch -= 1
    await agent.beat(1)
    await eventually(lambda: 1 in agent.beats)


async def test_an_agent_that_applied_what_nobody_decided_is_quarantined(world: World) -> None:
    running = await world.replica()
    agent = await with_jobs(world, running, 1)
    await agent.drop()
    for applied in (10, 1):
        with pytest.raises(FailedPrecondition) as refused:
            await agent.open(applied=applied)
        assert refused.value.code is ErrorCode.CLUSTER_QUARANTINED
    assert (await world.cluster()).state is ClusterState.QUARANTINED


async def test_an_acknowledgement_of_the_unsent_ends_the_session(world: World) -> None:
    agent = await with_jobs(world, await world.replica(), 1)
    await agent.apply(5)
    await agent.ended()
    assert agent.errors[-1].code is ErrorCode.WRONG_STATE


async def test_a_replica_that_stops_sends_its_agents_away(world: World) -> None:
    one, two = await world.replica(), await world.replica()
    agent = await with_jobs(world, one, 1)
    await one.stop()
    await agent.ended()
    assert isinstance(agent.errors[-1], Unavailable)
    moved = FakeAgent(two.address)
    world.exits.push_async_callback(moved.close)
    await moved.open(applied=1)


async def test_a_full_replica_takes_no_more(world: World) -> None:
    running = await world.replica(max_sessions=1)
    await (await world.agent(running)).open()
    with pytest.raises(Unavailable):
        await (await world.agent(running, cluster="beta")).open()  # type: ignore[arg-type]


@pytest.mark.parametrize("first", ["silence", "something else"])
async def test_a_session_begins_with_hello(memory_world: World, first: str) -> None:
    running = await memory_world.replica(hello_within_s=0.2)
    agent = await memory_world.agent(running)
    with pytest.raises((Unavailable, InvalidInput)):
        await agent.open_without_hello(beat=first != "silence")


async def test_an_agent_whose_guard_is_too_late_has_none(memory_world: World) -> None:
    running = await memory_world.replica(lost_after_s=80.0)
    await (await memory_world.agent(running)).open()
    assert not (await memory_world.cluster()).can_guard
