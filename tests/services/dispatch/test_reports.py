"""Reports become true once, in batches, and the refused ones are answered with the truth."""

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import Any, cast

from atoll.core.model.ids import AttemptId, JobId, job_of
from atoll.core.model.lifecycle import AttemptEvent, AttemptState, JobEvent, JobState, StopCause
from atoll.core.model.messages import Report
from atoll.core.model.plan import Resize
from atoll.ports.topics import PLACEMENT
from tests.services.dispatch.fake_agent import FakeAgent
from tests.services.dispatch.values import report, story
from tests.services.dispatch.worlds import World, node
from tests.support.waiting import eventually

ACCEPTED, STARTED, FINISHED, STOPPED, REJECTED = (
    AttemptEvent.ACCEPTED,
    AttemptEvent.STARTED,
    AttemptEvent.FINISHED,
    AttemptEvent.STOPPED,
    AttemptEvent.REJECTED,
)


async def running(world: World, count: int = 1) -> tuple[FakeAgent, list[AttemptId]]:
    """An agent that was told to start some jobs."""
    agent = await world.agent(await world.replica())
    await agent.open()
    await agent.inventory(1, [node()])

    async def listed() -> bool:
        return bool(await world.nodes())

    await eventually(listed)
    attempts = [decision.attempt for decision in await world.run(count)]
    await eventually(lambda: len(agent.numbers) == count)
    return agent, attempts


async def settled(agent: FakeAgent, number: int) -> None:
    """Wait for the acknowledgement of a report."""
    await eventually(lambda: agent.report_seq >= number)


async def test_a_job_runs_and_succeeds(world: World) -> None:
    agent, (attempt,) = await running(world)
    since = await world.stores.submission.events_now()
    for number, event in enumerate((ACCEPTED, STARTED, FINISHED), start=1):
        await agent.report(story(attempt, event, first=number))
        await settled(agent, number)
    job = await world.job(job_of(attempt))
    assert (job.state, job.exit_code, job.attempt) == (JobState.SUCCEEDED, 0, None)
    assert 0 < job.submitted_at <= job.accepted_at <= job.started_at <= job.ended_at
    assert (await world.attempt(attempt)).state is AttemptState.FINISHED
    assert await world.allocations() == []
    assert [e.event for e in await world.events(since)] == [JobEvent.STARTED, JobEvent.SUCCEEDED]
    assert not agent.stops


async def test_a_story_in_one_message_writes_each_row_once(world: World) -> None:
    agent, (attempt,) = await running(world)
    before = (await world.job(job_of(attempt))).revision
    since = await world.stores.submission.events_now()
    await agent.report(story(attempt, ACCEPTED, STARTED, FINISHED))
    await settled(agent, 3)
    job = await world.job(job_of(attempt))
    assert (job.state, job.revision) == (JobState.SUCCEEDED, before + 1)
    moves = [(e.event, e.attempt, e.cluster) for e in await world.events(since)]
    assert moves == [
        (JobEvent.STARTED, attempt, agent.cluster),
        (JobEvent.SUCCEEDED, attempt, agent.cluster),
    ]


async def test_capacity_that_became_free_wakes_placement(world: World) -> None:
    agent, (attempt,) = await running(world)
    async with aclosing(cast(Any, world.hints.subscribe(PLACEMENT))) as heard, asyncio.timeout(30):
        await anext(heard)  # the subscription stands
        await agent.report(story(attempt, ACCEPTED, STARTED, FINISHED))
        await anext(heard)


async def test_repeated_reports_change_nothing(world: World) -> None:
    agent, (attempt,) = await running(world)
    reports = story(attempt, ACCEPTED, STARTED)
    await agent.report(reports)
    await settled(agent, 2)
    before = await world.job(job_of(attempt))
    await agent.report(reports)
    await agent.report([*reports, *story(attempt, FINISHED, first=3)])
    await settled(agent, 3)
    after = await world.job(job_of(attempt))
    assert (after.state, after.revision) == (JobState.SUCCEEDED, before.revision + 1)
    assert not agent.stops


async def test_a_gap_is_not_stepped_over(world: World) -> None:
    agent, (attempt,) = await running(world)
    await agent.report(story(attempt, ACCEPTED))
    await settled(agent, 1)
    agent.report_seq = -1
    await agent.report(story(attempt, FINISHED, first=3))
    await settled(agent, 1)
    assert (await world.job(job_of(attempt))).state is JobState.ASSIGNED
    await agent.report(story(attempt, STARTED, FINISHED, first=2))
    await settled(agent, 3)
    assert (await world.job(job_of(attempt))).state is JobState.SUCCEEDED


async def test_a_report_of_unknown_work_is_refused_and_it_is_told_to_stop(world: World) -> None:
    agent, (attempt,) = await running(world)
    unknown = AttemptId(99 << 16 | 1)
    await agent.report([report(1, STARTED, of=unknown), *story(attempt, STARTED, first=2)])
    await settled(agent, 2)
    assert agent.stops == {unknown}
    assert (await world.job(job_of(attempt))).state is JobState.RUNNING


async def test_what_the_table_refuses_is_dealt_with_and_never_forced(world: World) -> None:
    agent, (attempt,) = await running(world)
    await agent.report(story(attempt, STARTED, FINISHED, STOPPED, ACCEPTED))
    await settled(agent, 4)
    assert (await world.attempt(attempt)).state is AttemptState.FINISHED
    assert agent.stops == {attempt}
    assert (await world.cluster()).report_seq == 4


async def test_rejected_puts_the_job_back_and_names_the_nodes(world: World) -> None:
    agent, (attempt,) = await running(world)
    (suspect,) = await world.nodes()
    await agent.report([
        Report(
            cluster=agent.cluster,
            number=1,
            attempt=attempt,
            event=REJECTED,
            at=1.0,
            suspects=(suspect.id,),
            inventory_number=1,
        )
    ])
    await settled(agent, 1)
    job = await world.job(job_of(attempt))
    assert (job.state, job.rollbacks) == (JobState.QUEUED, 1)
    assert await world.allocations() == []
    shard = await world.stores.placement.load((await world.attempt(attempt)).shard)
    views = {v.attempt.id: v for v in shard.attempts}
    assert attempt not in views or views[attempt].suspects == (suspect.id,)


async def test_stopped_ends_the_job_by_the_cause_that_is_stored(world: World) -> None:
    agent, (cancelled, preempted) = await running(world, 2)
    await agent.report(story(cancelled, STARTED) + story(preempted, STARTED, first=2))
    await settled(agent, 2)
    await world.cancel(job_of(cancelled))
    await world.revoke([cancelled], StopCause.CANCEL)
    await world.revoke([preempted], StopCause.PREEMPT)
    await eventually(lambda: len(agent.numbers) == 4)
    await agent.report(story(cancelled, STOPPED, first=3) + story(preempted, STOPPED, first=4))
    await settled(agent, 4)
    assert (await world.job(job_of(cancelled))).state is JobState.CANCELLED
    assert (await world.job(job_of(preempted))).state is JobState.QUEUED
    assert await world.allocations() == []


async def test_completed_work_wins_over_a_cancel_on_its_way(world: World) -> None:
    agent, (attempt,) = await running(world)
    await world.cancel(job_of(attempt))
    await world.revoke([attempt], StopCause.CANCEL)
    await agent.report(story(attempt, STARTED, FINISHED, STOPPED))
    await settled(agent, 3)
    assert (await world.job(job_of(attempt))).state is JobState.SUCCEEDED


async def test_reports_of_many_sessions_share_transactions(world: World) -> None:
    agent, attempts = await running(world, 40)
    numbers = iter(range(1, 1000))
    for attempt in attempts:
        await agent.report(story(attempt, ACCEPTED, STARTED, first=next(numbers)))
        next(numbers)
    await settled(agent, 80)
    states = {(await world.job(JobId(attempt >> 16))).state for attempt in attempts}
    assert states == {JobState.RUNNING}


async def test_a_run_that_has_changed_its_size_holds_what_it_says_runs(world: World) -> None:
    agent, (attempt,) = await running(world)
    await agent.report(story(attempt, ACCEPTED, STARTED))
    await settled(agent, 2)
    (task,) = (await world.attempt(attempt)).tasks
    more = [task._replace(rank=rank, devices=(), cpu_milli=1) for rank in (1, 2)]
    await world.resize(Resize(attempt, agent.cluster, 1, add=tuple(more)))
    await eventually(lambda: len(agent.numbers) == 2)
    resize = agent.decisions[-1]
    assert (resize.generation, [t.rank for t in resize.tasks]) == (1, [0, 1, 2])
    assert agent.protos[-1].spec.name
    assert {row.rank for row in await world.allocations()} == {0, 1, 2}
    told = Report(agent.cluster, 3, attempt, AttemptEvent.RESIZED, 2.0, generation=1, ranks=(0, 2))
    await agent.report([told])
    await settled(agent, 3)
    assert {row.rank for row in await world.allocations()} == {0, 2}
    assert [t.rank for t in (await world.attempt(attempt)).tasks] == [0, 2]
    # The same again, as of an agent that came back, is refused and changes nothing.
    await agent.report([replace(told, number=4, ranks=(0,))])
    await settled(agent, 4)
    assert {row.rank for row in await world.allocations()} == {0, 2}
    assert not agent.stops
