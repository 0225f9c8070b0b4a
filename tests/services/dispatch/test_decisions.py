"""Decisions reach their agent once, in order and without a gap, whatever Redis does."""

import asyncio
from dataclasses import replace

import pytest

from atoll.adapters.memory.streams import MemoryDecisionStream
from atoll.core.model.ids import ClusterName, job_of
from atoll.core.model.lifecycle import AttemptState, JobState, StopCause
from atoll.core.model.messages import DecisionKind
from atoll.ports.streams import StreamEntry
from atoll.wire.decision import start_from_proto
from tests.services.dispatch.fake_agent import FakeAgent
from tests.services.dispatch.values import spec
from tests.services.dispatch.worlds import World, node
from tests.support.waiting import eventually


async def opened(world: World, *, redis: bool = True) -> FakeAgent:
    """An agent with a node and an open session."""
    agent = await world.agent(await world.replica(redis=redis))
    await agent.open()
    await agent.inventory(1, [node()])
    await eventually(lambda: has_nodes(world, agent.cluster))
    return agent


async def has_nodes(world: World, cluster: ClusterName) -> bool:
    return bool(await world.nodes(cluster))


async def got(agent: FakeAgent, last: int) -> None:
    """Wait for a decision; all before it have come in order."""
    await eventually(lambda: bool(agent.numbers) and agent.numbers[-1] >= last)
    assert agent.numbers == list(range(agent.numbers[0], last + 1))


async def test_starts_come_in_order_with_what_they_run(world: World) -> None:
    agent = await opened(world)
    jobs = await world.submit(20, job=spec("training", secret="hunter2"))
    await world.place(jobs)
    await got(agent, 20)
    order = start_from_proto(agent.protos[-1])
    assert (order.spec.name, dict(order.spec.secrets)) == ("training", {"TOKEN": "hunter2"})
    assert agent.decisions[-1].tasks[0].node_name == "node-1"


async def test_a_gang_is_told_where_its_members_are(world: World) -> None:
    agent = await world.agent(await world.replica())
    await agent.open()
    await agent.inventory(1, [replace(node("a"), address="10.0.0.1"), node("b")])
    await eventually(lambda: has_nodes(world, agent.cluster))
    await world.place(await world.submit(job=spec(tasks=2)))
    await got(agent, 1)
    assert start_from_proto(agent.protos[0]).addresses == {"a": "10.0.0.1", "b": "b"}


async def test_sent_is_committed_before_it_is_sent(world: World) -> None:
    agent = await opened(world)
    await world.run(3)
    await got(agent, 3)
    assert (await world.cluster()).sent_seq == 3


async def test_acknowledged_numbers_are_committed_with_the_next_heartbeat(world: World) -> None:
    agent = await opened(world)
    await world.run(3)
    await got(agent, 3)
    await agent.beat(1)
    await eventually(lambda: agent.beats == {1: 3})
    assert (await world.cluster()).acked_seq == 3


async def test_what_redis_lost_is_read_from_the_store(world: World) -> None:
    agent = await opened(world)
    await world.run(2)
    await got(agent, 2)
    await world.run(3, publish=False)
    await world.run(1)
    await got(agent, 6)


async def test_a_tail_that_redis_never_got_is_revealed_by_a_heartbeat(world: World) -> None:
    agent = await opened(world)
    await world.run(5, publish=False)
    await agent.beat(1)
    await got(agent, 5)


async def test_a_hint_without_decisions_makes_dispatch_look(world: World) -> None:
    agent = await opened(world)
    await asyncio.sleep(0.6)  # Redis is quiet, as after a leader's death
    await world.run(2, publish=False)
    await world.hints.notify("dispatch")
    await got(agent, 2)


async def test_late_and_repeated_entries_change_nothing(world: World) -> None:
    agent = await opened(world)
    decisions = await world.run(6, publish=False)
    await world.publish(decisions[3:])
    await world.publish(decisions[:3])
    await world.publish(decisions)
    await got(agent, 6)
    await world.publish(decisions)
    await world.run(1)
    await got(agent, 7)


async def test_an_entry_that_nobody_understands_is_replaced_by_the_row(world: World) -> None:
    agent = await opened(world)
    decisions = await world.run(3, publish=False)
    await world.publish(decisions[:1])
    await world.stream.publish([StreamEntry(agent.cluster, 2, b"\xff\xff garbage")])
    await world.publish(decisions[2:])
    await got(agent, 3)


async def test_the_last_entry_may_be_the_one_that_nobody_understands(world: World) -> None:
    agent = await opened(world)
    await world.run(1, publish=False)
    await world.stream.publish([StreamEntry(agent.cluster, 1, b"\xff\xff garbage")])
    await got(agent, 1)


async def test_a_number_that_was_never_committed_does_not_bar_the_way(world: World) -> None:
    agent = await opened(world)
    await world.stream.publish([StreamEntry(agent.cluster, 1_000_000, b"junk")])

    async def dropped() -> bool:
        return not await world.stream.read({agent.cluster: 0}, 0)

    await eventually(dropped)
    await world.run(3)
    await got(agent, 3)


async def test_while_redis_is_down_decisions_come_from_the_store(memory_world: World) -> None:
    agent = await opened(memory_world)
    stream = memory_world.stream
    assert isinstance(stream, MemoryDecisionStream)
    stream.down = True
    await memory_world.run(5, publish=False)
    await got(agent, 5)
    stream.down = False
    await memory_world.run(5)
    await got(agent, 10)


async def test_without_redis_decisions_come_from_the_store(world: World) -> None:
    agent = await opened(world, redis=False)
    for _ in range(3):
        await world.run(5, publish=False)
    await got(agent, 15)


async def test_an_unsent_start_that_was_taken_back_arrives_as_void(world: World) -> None:
    agent = await world.agent(await world.replica())
    await agent.open()
    await agent.inventory(1, [node()])
    await eventually(lambda: has_nodes(world, agent.cluster))
    await agent.drop()
    decisions = await world.run(2)
    done = await world.revoke([decisions[0].attempt], StopCause.BIND_DEADLINE)
    assert [o.attempt.state for o in done.voided] == [AttemptState.VOID]
    await agent.open()
    await got(agent, 2)
    assert agent.kinds == [DecisionKind.VOID, DecisionKind.START]
    assert (await world.job(job_of(decisions[0].attempt))).state is JobState.QUEUED


async def test_a_start_voided_between_redis_and_the_push_is_not_pushed(world: World) -> None:
    """Redis still says START; the rows are asked after `sent_seq` is committed."""
    agent = await opened(world)
    await agent.drop()
    (decision,) = await world.run(1, publish=False)
    await world.revoke([decision.attempt], StopCause.BIND_DEADLINE)
    await world.publish([decision])
    await agent.open()
    await got(agent, 1)
    assert agent.kinds == [DecisionKind.VOID]


async def test_no_more_than_the_window_is_in_flight(world: World) -> None:
    running = await world.replica(window=8)
    agent = await world.agent(running)
    agent.auto_apply = False
    await agent.open()
    await agent.inventory(1, [node()])
    await eventually(lambda: has_nodes(world, agent.cluster))
    await world.run(30)
    await got(agent, 8)
    await agent.beat(1)
    await eventually(lambda: 1 in agent.beats)
    await asyncio.sleep(0.5)
    assert agent.numbers[-1] == 8
    await agent.apply(5)
    await got(agent, 13)
    agent.auto_apply = True
    await agent.apply(13)
    await got(agent, 30)


async def test_decisions_go_on_where_the_agents_journal_ends(world: World) -> None:
    agent = await opened(world)
    await world.run(10)
    await got(agent, 10)
    await agent.drop()
    agent.protos.clear()
    await agent.open(applied=7)
    await got(agent, 10)
    assert agent.numbers == [8, 9, 10]


@pytest.mark.parametrize("clusters", [3])
async def test_each_cluster_gets_its_own(world: World, clusters: int) -> None:
    running = await world.replica()
    agents = []
    for number in range(clusters):
        agent = await world.agent(running, cluster=ClusterName(f"c{number}"))
        await agent.open()
        await agent.inventory(1, [node()])
        await eventually(lambda: has_nodes(world, agent.cluster))  # noqa: B023
        agents.append(agent)
    for _ in range(3):
        for agent in agents:
            await world.place(await world.submit(5), cluster=agent.cluster)
    for agent in agents:
        await got(agent, 15)
