"""Stops for others on the real path: one fenced transaction, and holds that outlive a leader."""

from dataclasses import replace

import pytest

from atoll.core.model.ids import DEFAULT_SHARD, JobId
from atoll.core.model.job import Job
from atoll.core.model.lifecycle import (
    AttemptEvent,
    AttemptState,
    AttemptWish,
    JobState,
    StopCause,
)
from atoll.core.model.messages import ChangeKind, DecisionKind
from atoll.core.model.plan import LEAST_IMMUNITY_S
from atoll.core.model.reason import ReasonCode
from atoll.core.model.spec import Checkpoint
from atoll.placement.usecases.audit import audit
from atoll.placement.usecases.leader import Leader
from atoll.ports.store.common import Change
from tests.services.placement.shard import Shard, cycle, one_gpu

HIGH = 10


async def running(shard: Shard, leader: Leader, **given: object) -> Job:
    """A job that fills the one node, and runs."""
    (made,) = await shard.submit(replace(one_gpu("low", gpus=8), **given))  # type: ignore[arg-type]
    await cycle(leader)
    await shard.sent()
    await shard.report((await shard.attempt(made.id)).id, AttemptEvent.STARTED)
    return made


async def full() -> tuple[Shard, Leader, Job]:
    shard = Shard()
    await shard.cluster(nodes=1, gpus=8)
    leader = await shard.lead()
    return shard, leader, await running(shard, leader)


async def held(shard: Shard) -> list[JobId]:
    return [n.job for n in (await shard.store.placement.load(DEFAULT_SHARD)).nominations]


async def stop(shard: Shard, victim: Job) -> None:
    """The agent reports that it has stopped."""
    await shard.report((await shard.attempt(victim.id)).id, AttemptEvent.STOPPED)


async def high(shard: Shard, queue: str = "default") -> Job:
    (made,) = await shard.submit(one_gpu("high", gpus=8, priority=HIGH, queue=queue))
    return made


async def test_a_victim_is_told_to_stop_and_its_place_is_held_by_name() -> None:
    shard, leader, victim = await full()
    job = await high(shard)
    await cycle(leader)
    attempt = await shard.attempt(victim.id)
    assert (attempt.wish, attempt.cause) == (AttemptWish.STOP, StopCause.PREEMPT)
    last = (await shard.decisions())[-1]
    assert (last.kind, last.cause, last.attempt) == (
        DecisionKind.STOP,
        StopCause.PREEMPT,
        attempt.id,
    )
    assert await held(shard) == [job.id]
    assert await shard.states([victim, job]) == [JobState.RUNNING, JobState.QUEUED]
    assert await audit(leader) == ()


async def test_the_job_starts_there_when_the_victim_has_stopped_and_that_one_queues_again() -> None:
    shard, leader, victim = await full()
    job = await high(shard)
    await cycle(leader)
    (late,) = await shard.submit(one_gpu("late", gpus=1))
    await stop(shard, victim)
    await cycle(leader)
    assert await shard.states([victim, job, late]) == [
        JobState.QUEUED,
        JobState.ASSIGNED,
        JobState.QUEUED,
    ]
    row = await shard.job(victim.id)
    assert (row.reason, row.preemptions) == (ReasonCode.PREEMPTED, 1)
    assert row.submitted_at == victim.submitted_at
    assert await held(shard) == []
    assert await audit(leader) == ()


async def test_a_successor_keeps_the_hold() -> None:
    shard, leader, victim = await full()
    job = await high(shard)
    await cycle(leader)
    (late,) = await shard.submit(one_gpu("late", gpus=1))
    successor = await shard.lead()
    await cycle(successor)
    await stop(shard, victim)
    await cycle(successor)
    assert await shard.states([job, late]) == [JobState.ASSIGNED, JobState.QUEUED]
    assert len([d for d in await shard.decisions() if d.kind is DecisionKind.STOP]) == 1


async def test_a_hold_that_is_over_gives_its_victim_the_place_back_and_leaves_no_row() -> None:
    shard, leader, victim = await full()
    job = await high(shard, queue="research")
    await cycle(leader)
    await stop(shard, victim)
    await leader.catch_up()
    await shard.clock.advance(3600.0)
    await cycle(leader)
    await cycle(leader)
    assert await shard.states([victim, job]) == [JobState.ASSIGNED, JobState.QUEUED]
    assert await held(shard) == []


async def test_a_job_that_is_cancelled_meanwhile_holds_nothing() -> None:
    shard, leader, victim = await full()
    job = await high(shard)
    await cycle(leader)
    async with shard.store.submission.begin() as tx:
        rows = await tx.lock_jobs([job.id])
        await tx.update_jobs([replace(rows[job.id], state=JobState.CANCELLED)])
        await tx.changed([Change(ChangeKind.JOBS, ids=(job.id,))])
    await stop(shard, victim)
    await cycle(leader)
    assert await held(shard) == []
    assert await shard.states([victim]) == [JobState.ASSIGNED]


async def test_a_job_that_changed_before_the_commit_takes_its_stops_with_it() -> None:
    shard, leader, victim = await full()
    job = await high(shard)
    await leader.catch_up()
    async with shard.store.submission.begin() as tx:
        rows = await tx.lock_jobs([job.id])
        await tx.update_jobs([replace(rows[job.id], state=JobState.HELD)])
    await leader.schedule()
    assert (await shard.attempt(victim.id)).wish is AttemptWish.RUN
    assert await held(shard) == []


async def test_a_victim_that_was_never_sent_is_void_and_counts_as_no_preemption() -> None:
    shard = Shard()
    await shard.cluster(nodes=1, gpus=8)
    leader = await shard.lead()
    (victim,) = await shard.submit(one_gpu("low", gpus=8))
    await cycle(leader)
    job = await high(shard)
    await cycle(leader)
    assert (await shard.attempt(victim.id)).state is AttemptState.VOID
    await cycle(leader)
    assert await shard.states([victim, job]) == [JobState.QUEUED, JobState.ASSIGNED]
    assert (await shard.job(victim.id)).preemptions == 0
    assert [d.number for d in await shard.decisions()] == [1, 2]


async def test_work_that_finishes_although_it_was_to_stop_has_succeeded() -> None:
    shard, leader, victim = await full()
    job = await high(shard)
    await cycle(leader)
    attempt = await shard.attempt(victim.id)
    await shard.report(attempt.id, AttemptEvent.FINISHED, exit_code=0)
    await cycle(leader)
    assert await shard.states([victim, job]) == [JobState.SUCCEEDED, JobState.ASSIGNED]
    assert (await shard.job(victim.id)).preemptions == 0


@pytest.mark.parametrize("again", [False, True], ids=["the same leader", "a successor"])
async def test_who_was_stopped_once_is_left_alone_for_a_while(again: bool) -> None:
    shard, leader, victim = await full()
    first = await high(shard)
    await cycle(leader)
    await stop(shard, victim)
    await cycle(leader)
    await shard.report((await shard.attempt(first.id)).id, AttemptEvent.FINISHED, exit_code=0)
    await cycle(leader)
    assert await shard.states([victim]) == [JobState.ASSIGNED]
    second = await high(shard)
    leader = await shard.lead() if again else leader
    await cycle(leader)
    assert await held(shard) == []
    await shard.clock.advance(LEAST_IMMUNITY_S + 1)
    await cycle(leader)
    assert await held(shard) == [second.id]


async def test_a_hold_lasts_as_long_as_the_victim_may_take_to_save_its_work() -> None:
    shard = Shard()
    await shard.cluster(nodes=1, gpus=8)
    leader = await shard.lead()
    saving = Checkpoint("SIGUSR1", grace_s=300.0, interval_s=60.0)
    await running(shard, leader, checkpoint=saving, grace_s=30.0)
    await high(shard)
    await cycle(leader)
    (nomination,) = (await shard.store.placement.load(DEFAULT_SHARD)).nominations
    assert nomination.until >= shard.clock.now() + 330.0
