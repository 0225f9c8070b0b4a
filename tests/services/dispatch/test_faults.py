"""What breaks around dispatch costs time and nothing else. Each test sees its fault happen."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from prometheus_client import REGISTRY
from redis.asyncio import Redis

from atoll.core.model.ids import job_of
from atoll.core.model.lifecycle import AttemptEvent, JobState
from tests.services.dispatch.conftest import Ways
from tests.services.dispatch.fake_agent import FakeAgent
from tests.services.dispatch.values import story
from tests.services.dispatch.worlds import World, node
from tests.support.servers import ValkeyLike
from tests.support.waiting import eventually

ENDING = (AttemptEvent.ACCEPTED, AttemptEvent.STARTED, AttemptEvent.FINISHED)


async def opened(world: World) -> FakeAgent:
    agent = await world.agent(await world.replica())
    await agent.open()
    await agent.inventory(1, [node()])

    async def listed() -> bool:
        return bool(await world.nodes())

    await eventually(listed)
    return agent


@pytest.fixture
async def beating() -> AsyncIterator[list[asyncio.Task[None]]]:
    """Background tasks of a test."""
    tasks: list[asyncio.Task[None]] = []
    yield tasks
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def beats(agent: FakeAgent) -> None:
    """Heartbeats, for ever."""
    for number in range(1, 1_000_000):
        await agent.beat(number)
        await asyncio.sleep(0.2)


def repairs() -> float:
    """Decisions that were read from the store so far."""
    return sum(
        sample.value
        for metric in REGISTRY.collect()
        for sample in metric.samples
        if sample.name == "atoll_dispatch_repaired_decisions_total"
    )


async def test_flushall_under_load(
    real_world: World, valkey_url: str, beating: list[asyncio.Task[None]]
) -> None:
    agent = await opened(real_world)
    beating.append(asyncio.create_task(beats(agent)))
    before = repairs()
    async with Redis.from_url(valkey_url) as client:
        for round_number in range(15):
            await real_world.run(10)
            if round_number % 5 == 2:
                await client.flushall()
                await real_world.run(10, publish=False)
    await eventually(lambda: len(agent.numbers) >= 180)
    assert agent.numbers == list(range(1, 181))
    assert repairs() > before


async def test_redis_dies_and_comes_back_empty(
    real_world: World, valkey_server: ValkeyLike, beating: list[asyncio.Task[None]]
) -> None:
    agent = await opened(real_world)
    beating.append(asyncio.create_task(beats(agent)))
    await real_world.run(5)
    await eventually(lambda: len(agent.numbers) == 5)
    valkey_server.kill()
    await real_world.run(20, publish=False)
    await eventually(lambda: len(agent.numbers) == 25)
    assert not valkey_server.running()
    await valkey_server.start()
    await real_world.run(5)
    await eventually(lambda: len(agent.numbers) == 30)
    assert agent.numbers == list(range(1, 31))


async def test_redis_is_cut_off_without_a_word(
    broken_world: World, ways: Ways, beating: list[asyncio.Task[None]]
) -> None:
    agent = await opened(broken_world)
    beating.append(asyncio.create_task(beats(agent)))
    ways.redis.blackhole()
    await broken_world.run(20, publish=False)
    await eventually(lambda: len(agent.numbers) == 20)
    ways.redis.heal()
    await broken_world.run(5)
    await eventually(lambda: len(agent.numbers) == 25)
    assert agent.numbers == list(range(1, 26))


async def test_the_database_is_away_for_a_while(broken_world: World, ways: Ways) -> None:
    agent = await opened(broken_world)
    decisions = await broken_world.run(5)
    await eventually(lambda: len(agent.numbers) == 5)
    ways.database.refuse()
    await agent.beat(1)
    for number, decision in enumerate(decisions):
        await agent.report(story(decision.attempt, *ENDING, first=3 * number + 1))
    await eventually(lambda: ways.database.refused > 0)
    assert 1 not in agent.beats, "answered, but not committed"
    assert agent.report_seq == -1
    ways.database.heal()
    await eventually(lambda: agent.report_seq == 15 and 1 in agent.beats)
    for decision in decisions:
        job = await broken_world.job(job_of(decision.attempt))
        assert (job.state, job.failures) == (JobState.SUCCEEDED, 0)


async def test_lost_answers_to_commits_apply_reports_once(broken_world: World, ways: Ways) -> None:
    agent = await opened(broken_world)
    decisions = await broken_world.run(5)
    await eventually(lambda: len(agent.numbers) == 5)
    for number, decision in enumerate(decisions):
        dropped = ways.database.dropped_bytes
        ways.database.drop_server_bytes()
        await agent.report(story(decision.attempt, *ENDING, first=3 * number + 1))
        await eventually(lambda: ways.database.dropped_bytes > dropped)  # noqa: B023
        ways.database.heal()
        await eventually(lambda: agent.report_seq == 3 * number + 3)  # noqa: B023
    for decision in decisions:
        job = await broken_world.job(job_of(decision.attempt))
        assert (job.state, job.rollbacks, job.failures) == (JobState.SUCCEEDED, 0, 0)
