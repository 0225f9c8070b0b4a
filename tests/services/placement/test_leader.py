"""The leader's steps over a store in memory: what is committed, taken back, remembered."""

import pytest

from atoll.core.model.errors import FailedPrecondition, NotFound, StaleEpoch
from atoll.core.model.ids import ClusterName, JobId
from atoll.core.model.inventory import ClusterState
from atoll.core.model.lifecycle import AttemptEvent, AttemptState, JobState, StopCause
from atoll.core.model.messages import DecisionKind
from atoll.core.model.reason import ReasonCode
from atoll.placement.usecases.audit import audit
from atoll.placement.usecases.explain import explain_job
from atoll.placement.usecases.forget import forget_cluster
from tests.adapters.store_builders import NORTH
from tests.services.placement.shard import Shard, cycle, one_gpu


async def test_queued_jobs_are_placed_numbered_and_held() -> None:
    shard = Shard()
    await shard.cluster(nodes=2, gpus=8)
    jobs = await shard.submit(one_gpu("a", gpus=8), one_gpu("b", gpus=8), one_gpu("c", gpus=8))
    leader = await shard.lead()
    await cycle(leader)
    assert await shard.states(jobs) == [JobState.ASSIGNED, JobState.ASSIGNED, JobState.QUEUED]
    assert [d.number for d in await shard.decisions()] == [1, 2]
    assert len(await shard.nodes_held()) == 2
    assert await audit(leader) == ()


async def test_capacity_that_a_report_freed_is_used_by_the_next_cycle() -> None:
    shard = Shard()
    await shard.cluster(nodes=1, gpus=8)
    jobs = await shard.submit(one_gpu("a", gpus=8), one_gpu("b", gpus=8))
    leader = await shard.lead()
    await cycle(leader)
    first = await shard.attempt(jobs[0].id)
    await shard.report(first.id, AttemptEvent.FINISHED, exit_code=0)
    await cycle(leader)
    assert await shard.states(jobs) == [JobState.SUCCEEDED, JobState.ASSIGNED]


async def test_a_job_cancelled_since_the_snapshot_falls_out_and_the_rest_stands() -> None:
    shard = Shard()
    await shard.cluster()
    jobs = await shard.submit(one_gpu("a"), one_gpu("b"))
    leader = await shard.lead()
    await leader.catch_up()
    await shard.cancel(jobs[0].id)
    committed = await leader.schedule()
    assert committed is not None
    assert [p.job for p in committed.dropped] == [jobs[0].id]
    assert await shard.states(jobs) == [JobState.QUEUED, JobState.ASSIGNED]


async def test_a_deposed_leader_commits_nothing() -> None:
    shard = Shard()
    await shard.cluster()
    jobs = await shard.submit(one_gpu())
    old = await shard.lead()
    await old.catch_up()
    await shard.lead()
    with pytest.raises(StaleEpoch):
        await old.schedule()
    assert await shard.states(jobs) == [JobState.QUEUED]
    assert await shard.decisions() == []


async def test_a_successor_knows_what_its_predecessor_committed() -> None:
    shard = Shard()
    await shard.cluster(nodes=1, gpus=2)
    await shard.submit(one_gpu("a"), one_gpu("b"))
    await cycle(await shard.lead())
    late = await shard.submit(one_gpu("c"))
    successor = await shard.lead()
    await cycle(successor)
    assert await shard.states(late) == [JobState.QUEUED]
    assert await audit(successor) == ()


async def test_an_unsent_start_without_an_answer_is_void_and_its_place_is_free() -> None:
    shard = Shard()
    await shard.cluster()
    jobs = await shard.submit(one_gpu())
    leader = await shard.lead()
    await cycle(leader)
    await shard.clock.advance(11)
    await leader.catch_up()
    assert await leader.take_back() == []
    attempt = await shard.attempt(jobs[0].id)
    assert attempt.state is AttemptState.VOID
    assert await shard.nodes_held() == set()
    assert [d.kind for d in await shard.decisions()] == [DecisionKind.VOID]
    row = await shard.job(jobs[0].id)
    assert (row.state, row.rollbacks) == (JobState.QUEUED, 1)


async def test_a_sent_start_without_an_answer_is_stopped_and_held_until_the_agent_confirms() -> (
    None
):
    shard = Shard()
    await shard.cluster()
    jobs = await shard.submit(one_gpu())
    leader = await shard.lead()
    await cycle(leader)
    await shard.sent()
    await shard.clock.advance(11)
    (stop,) = await leader.take_back()
    assert (stop.kind, stop.cause, stop.number) == (
        DecisionKind.STOP,
        StopCause.BIND_DEADLINE,
        2,
    )
    await cycle(leader)
    assert await shard.states(jobs) == [JobState.ASSIGNED]
    assert len(await shard.nodes_held()) == 1
    await shard.report(stop.attempt, AttemptEvent.STOPPED)
    await leader.catch_up()
    assert await shard.states(jobs) == [JobState.QUEUED]
    assert await shard.nodes_held() == set()


async def test_an_answered_start_is_left_alone_by_the_deadline() -> None:
    shard = Shard()
    await shard.cluster()
    jobs = await shard.submit(one_gpu())
    leader = await shard.lead()
    await cycle(leader)
    attempt = await shard.attempt(jobs[0].id)
    await shard.sent()
    await shard.report(attempt.id, AttemptEvent.ACCEPTED)
    await shard.clock.advance(60)
    await cycle(leader)
    assert (await shard.attempt(jobs[0].id)).state is AttemptState.ACCEPTED


async def test_a_successor_gives_an_unanswered_start_a_full_period_anew() -> None:
    shard = Shard()
    await shard.cluster()
    jobs = await shard.submit(one_gpu())
    await cycle(await shard.lead())
    await shard.clock.advance(9)
    successor = await shard.lead()
    await shard.clock.advance(9)
    await cycle(successor)
    assert await shard.states(jobs) == [JobState.ASSIGNED]
    await shard.clock.advance(2)
    await successor.take_back()
    assert (await shard.attempt(jobs[0].id)).state is AttemptState.VOID


async def test_a_cancel_stops_a_running_attempt_once() -> None:
    shard = Shard()
    await shard.cluster()
    jobs = await shard.submit(one_gpu())
    leader = await shard.lead()
    await cycle(leader)
    attempt = await shard.attempt(jobs[0].id)
    await shard.sent()
    await shard.report(attempt.id, AttemptEvent.STARTED)
    await shard.cancel(jobs[0].id)
    for _ in range(3):
        await cycle(leader)
    stops = [d for d in await shard.decisions() if d.kind is DecisionKind.STOP]
    assert [d.cause for d in stops] == [StopCause.CANCEL]
    await shard.report(attempt.id, AttemptEvent.STOPPED)
    assert await shard.states(jobs) == [JobState.CANCELLED]


async def test_a_dependent_waits_for_success_and_falls_with_failure() -> None:
    shard = Shard()
    await shard.cluster()
    (first,) = await shard.submit(one_gpu("first"))
    (then,) = await shard.submit(one_gpu("then", depends_on=(first.id,)))
    (last,) = await shard.submit(one_gpu("last", depends_on=(then.id,)))
    leader = await shard.lead()
    await cycle(leader)
    assert await shard.states([first, then]) == [JobState.ASSIGNED, JobState.QUEUED]
    await shard.report((await shard.attempt(first.id)).id, AttemptEvent.FINISHED, exit_code=0)
    await cycle(leader)
    assert await shard.states([then, last]) == [JobState.ASSIGNED, JobState.QUEUED]
    await shard.report((await shard.attempt(then.id)).id, AttemptEvent.FINISHED, exit_code=1)
    await cycle(leader)
    row = await shard.job(last.id)
    assert (row.state, row.reason) == (JobState.CANCELLED, ReasonCode.DEPENDENCY_FAILED)


async def test_a_dependency_that_ended_before_the_leader_came_is_looked_up() -> None:
    shard = Shard()
    await shard.cluster()
    (first,) = await shard.submit(one_gpu("first"))
    leader = await shard.lead()
    await cycle(leader)
    await shard.report((await shard.attempt(first.id)).id, AttemptEvent.FINISHED, exit_code=0)
    (then,) = await shard.submit(one_gpu("then", depends_on=(first.id,)))
    await cycle(await shard.lead())
    assert await shard.states([then]) == [JobState.ASSIGNED]


async def test_a_forgotten_cluster_gives_its_jobs_back_and_keeps_nothing() -> None:
    shard = Shard()
    await shard.cluster()
    jobs = await shard.submit(one_gpu("a"), one_gpu("b"))
    leader = await shard.lead()
    await cycle(leader)
    store = leader.store
    with pytest.raises(FailedPrecondition, match="i-have-fenced-it"):
        await forget_cluster(store, leader.fence, NORTH, fenced=False)
    with pytest.raises(FailedPrecondition, match="still answers"):
        await forget_cluster(store, leader.fence, NORTH, fenced=True)
    with pytest.raises(NotFound):
        await forget_cluster(store, leader.fence, ClusterName("nowhere"), fenced=True)
    for _ in range(12):
        await shard.clock.advance(1)
        await leader.listen(dispatch_alive=True)
    forgotten = await forget_cluster(store, leader.fence, NORTH, fenced=True)
    leader.fence = forgotten.fence
    await leader.catch_up()
    assert len(forgotten.outcomes) == 2
    assert await shard.states(jobs) == [JobState.QUEUED, JobState.QUEUED]
    assert await shard.nodes_held() == set()
    assert (await shard.cluster_row()).state is ClusterState.RETIRED
    assert await audit(leader) == ()


async def test_explain_names_what_is_short_with_numbers() -> None:
    shard = Shard()
    await shard.cluster(nodes=1, gpus=4)
    jobs = await shard.submit(one_gpu("a", gpus=3), one_gpu("b", gpus=3))
    leader = await shard.lead()
    await cycle(leader)
    answer = await explain_job(leader, jobs[1].id)
    assert answer.state is JobState.QUEUED
    short = next(r for r in answer.reasons if r.code is ReasonCode.DEVICES_SHORT)
    assert (short.needed, short.available) == (3, 1)
    placed = await explain_job(leader, jobs[0].id)
    assert "north" in placed.summary
    with pytest.raises(NotFound):
        await explain_job(leader, JobId(999))


async def test_the_auditor_sees_an_allocation_that_the_ledger_lacks() -> None:
    shard = Shard()
    await shard.cluster()
    await shard.submit(one_gpu())
    leader = await shard.lead()
    await cycle(leader)
    leader.memory.world.end_allocations(list(leader.memory.live))
    differences = await audit(leader)
    assert {d.what for d in differences} == {"cpu_milli", "memory_bytes", "device 0"}
