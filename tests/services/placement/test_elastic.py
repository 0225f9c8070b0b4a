"""Running elastic jobs grow and shrink by the leader's own steps: over a store in memory."""

from collections.abc import Sequence

from atoll.core.model.ids import AttemptId, QueueName
from atoll.core.model.inventory import ClusterState
from atoll.core.model.job import Job, Queue
from atoll.core.model.lifecycle import AttemptEvent, AttemptWish, JobState
from atoll.core.model.messages import ChangeKind, Decision, DecisionKind
from atoll.core.model.reason import ReasonCode
from atoll.core.model.spec import Elastic, JobSpec
from atoll.placement.usecases.change_sizes import change_sizes
from atoll.placement.usecases.leader import Leader
from atoll.placement.usecases.sizes import patience_s
from atoll.placement.usecases.sizing import SLOW_LOOK_S
from atoll.ports.store.common import Change
from tests.adapters.store_builders import NORTH, TENANT
from tests.services.placement.shard import SETTINGS, Shard, cycle, one_gpu

HOUR = 3600.0
COST_S = 60.0
HOLD_S = 10 * COST_S
SIZES = Elastic(((1, 1.0), (2, 1.9), (4, 3.5), (5, 3.6)), 9 * HOUR, rescale_cost_s=COST_S)
KNEE = 4


async def led(*, gpus: int = 8, nodes: int = 1) -> tuple[Shard, Leader]:
    shard = Shard()
    await shard.cluster(nodes=nodes, gpus=gpus)
    leader = await shard.lead()
    await leader.catch_up()
    return shard, leader


async def step(leader: Leader) -> list[Decision]:
    """A cycle and the changes of size after it, as the loop runs them."""
    await cycle(leader)
    return await change_sizes(leader)


async def started(shard: Shard, leader: Leader, spec: JobSpec, *, guaranteed: bool = False) -> Job:
    """A job that runs."""
    (job,) = await shard.submit(spec, guaranteed=guaranteed)
    await cycle(leader)
    await shard.sent()
    await shard.report((await shard.attempt(job.id)).id, AttemptEvent.STARTED)
    await leader.catch_up()
    return job


async def answer(shard: Shard, attempt: AttemptId, decision: Decision) -> None:
    """The agent has done what it was told."""
    ranks = tuple(sorted(task.rank for task in decision.tasks))
    generation = decision.generation
    await shard.report(attempt, AttemptEvent.RESIZED, generation=generation, ranks=ranks)


async def grown(shard: Shard, leader: Leader, job: Job) -> AttemptId:
    """Let a job that runs alone grow to its knee."""
    await shard.clock.advance(HOLD_S)
    (decision,) = await step(leader)
    attempt = (await shard.attempt(job.id)).id
    assert (decision.kind, len(decision.tasks)) == (DecisionKind.RESIZE, KNEE)
    await answer(shard, attempt, decision)
    return attempt


def ranks_of(decisions: Sequence[Decision]) -> list[list[int]]:
    return [[task.rank for task in decision.tasks] for decision in decisions]


async def test_a_lone_job_grows_to_its_knee_and_stays_there() -> None:
    shard, leader = await led()
    job = await started(shard, leader, one_gpu(elastic=SIZES))
    await shard.clock.advance(HOLD_S - 1)
    assert await step(leader) == []
    # While nothing changes but the time, nobody looks all the time.
    await shard.clock.advance(SLOW_LOOK_S)
    (decision,) = await step(leader)
    assert ranks_of([decision]) == [[0, 1, 2, 3]]
    row = await shard.attempt(job.id)
    assert (row.generation, row.resized, len(row.tasks)) == (1, 0, KNEE)
    # It had worked for all but the pause at its start.
    assert row.done == HOLD_S - 1 + SLOW_LOOK_S - COST_S
    assert row.changed_at == shard.clock.now()
    await answer(shard, row.id, decision)
    for _ in range(3):
        await shard.clock.advance(HOLD_S)
        assert await step(leader) == []


async def test_one_change_at_a_time_is_decided() -> None:
    shard, leader = await led()
    await started(shard, leader, one_gpu(elastic=SIZES))
    await shard.clock.advance(HOLD_S)
    assert len(await step(leader)) == 1
    await shard.clock.advance(1.0)
    assert await step(leader) == []


async def test_a_newcomer_makes_it_shrink_by_as_much_as_it_takes_and_starts_then() -> None:
    shard, leader = await led()
    job = await started(shard, leader, one_gpu(elastic=SIZES))
    attempt = await grown(shard, leader, job)
    await shard.clock.advance(HOLD_S)
    (other,) = await shard.submit(one_gpu("other", gpus=6, priority=50))
    (decision,) = await step(leader)
    assert ranks_of([decision]) == [[0, 1]]
    assert (await shard.attempt(job.id)).wish is AttemptWish.RUN
    # What is to end is held until it has ended; nobody is told anything twice, or stopped.
    await shard.clock.advance(1.0)
    assert await step(leader) == []
    assert await shard.states([job, other]) == [JobState.RUNNING, JobState.QUEUED]
    await answer(shard, attempt, decision)
    await step(leader)
    assert await shard.states([job, other]) == [JobState.RUNNING, JobState.ASSIGNED]
    assert leader.counters.preempted == 0


async def test_others_shrink_before_anybody_is_stopped() -> None:
    shard, leader = await led()
    rigid = await started(shard, leader, one_gpu("rigid", gpus=4, priority=-10))
    elastic = await started(shard, leader, one_gpu(tasks=4, elastic=SIZES))
    await shard.clock.advance(HOLD_S)
    (urgent,) = await shard.submit(one_gpu("urgent", gpus=2, priority=50))
    (decision,) = await step(leader)
    assert (decision.kind, ranks_of([decision])) == (DecisionKind.RESIZE, [[0, 1]])
    # One that this does not help stops whom it may.
    (wide,) = await shard.submit(one_gpu("wide", gpus=4, priority=40))
    await shard.clock.advance(1.0)
    await step(leader)
    assert [(await shard.attempt(job.id)).wish for job in (rigid, elastic)] == [
        AttemptWish.STOP,
        AttemptWish.RUN,
    ]
    assert await shard.states([urgent, wide]) == [JobState.QUEUED, JobState.QUEUED]


async def test_a_job_shrinks_for_others_of_its_queue_that_is_at_its_limit() -> None:
    shard, leader = await led()
    await limit(shard, devices=4)
    elastic = await started(shard, leader, one_gpu(tasks=4, elastic=SIZES))
    await shard.clock.advance(HOLD_S)
    (other,) = await shard.submit(one_gpu("other", gpus=2))
    (decision,) = await step(leader)
    assert ranks_of([decision]) == [[0, 1]]
    await answer(shard, (await shard.attempt(elastic.id)).id, decision)
    await step(leader)
    assert await shard.states([other]) == [JobState.ASSIGNED]
    # Nor does it grow beyond the limit.
    await shard.clock.advance(HOLD_S)
    assert await step(leader) == []


async def test_a_newcomer_waits_for_one_that_has_just_grown() -> None:
    shard, leader = await led()
    job = await started(shard, leader, one_gpu(elastic=SIZES))
    await grown(shard, leader, job)
    (other,) = await shard.submit(one_gpu("other", gpus=6))
    await shard.clock.advance(HOLD_S / 2)
    assert await step(leader) == []
    assert await shard.states([other]) == [JobState.QUEUED]
    # Nothing comes free then: that it may shrink is what makes the other worth a try.
    await shard.clock.advance(HOLD_S / 2)
    found = [*await step(leader), *await step(leader)]
    assert ranks_of(found) == [[0, 1]]


async def test_nobody_grows_onto_what_others_wait_for() -> None:
    shard, leader = await led()
    await started(shard, leader, one_gpu(elastic=SIZES))
    await shard.submit(one_gpu("wide", gpus=8))
    await shard.clock.advance(HOLD_S)
    assert await step(leader) == []


async def test_one_that_no_shrinking_helps_is_no_reason_to_shrink() -> None:
    shard, leader = await led()
    job = await started(shard, leader, one_gpu(elastic=SIZES))
    await grown(shard, leader, job)
    await shard.submit(one_gpu("wide", gpus=8))
    await shard.clock.advance(HOLD_S)
    assert [*await step(leader), *await step(leader)] == []


async def test_a_guarantee_stays_whoever_waits() -> None:
    shard, leader = await led()
    # Alone on one device it would take 9 hours: with so little time it needs its four.
    due = shard.clock.now() + 3 * HOUR
    spec = one_gpu(tasks=4, elastic=SIZES, deadline_at=due)
    job = await started(shard, leader, spec, guaranteed=True)
    await shard.clock.advance(HOLD_S)
    (other,) = await shard.submit(one_gpu("other", gpus=6, priority=50))
    assert [*await step(leader), *await step(leader)] == []
    assert await shard.states([job, other]) == [JobState.RUNNING, JobState.QUEUED]
    assert (await shard.job(job.id)).guaranteed


async def test_one_with_time_to_spare_shrinks_although_it_was_promised_its_deadline() -> None:
    shard, leader = await led()
    due = shard.clock.now() + 30 * HOUR
    spec = one_gpu(tasks=4, elastic=SIZES, deadline_at=due)
    job = await started(shard, leader, spec, guaranteed=True)
    await shard.clock.advance(HOLD_S)
    await shard.submit(one_gpu("other", gpus=6, priority=50))
    decisions = await step(leader)
    assert ranks_of(decisions) == [[0, 1]]
    assert (await shard.job(job.id)).guaranteed


async def test_a_change_that_nobody_answers_is_given_anew() -> None:
    shard, leader = await led()
    job = await started(shard, leader, one_gpu(elastic=SIZES))
    await shard.clock.advance(HOLD_S)
    (first,) = await step(leader)
    patience = patience_s(0.0, SETTINGS.bind_timeout_s)
    await shard.clock.advance(patience - 1)
    assert await step(leader) == []
    done = (await shard.attempt(job.id)).done
    await shard.clock.advance(1.0)
    (again,) = await step(leader)
    assert (again.generation, again.tasks) == (first.generation + 1, first.tasks)
    row = await shard.attempt(job.id)
    assert (row.generation, row.resized, row.done) == (2, 0, done)
    await answer(shard, row.id, again)
    assert (await shard.attempt(job.id)).resized == 2


async def test_the_next_leader_knows_what_was_done_and_repeats_what_is_open() -> None:
    shard, leader = await led()
    job = await started(shard, leader, one_gpu(elastic=SIZES))
    await shard.clock.advance(HOLD_S)
    (first,) = await step(leader)
    later = await shard.lead()
    await later.catch_up()
    facts = later.memory.sizes.facts()[first.attempt]
    row = await shard.attempt(job.id)
    assert (facts.generation, facts.since, facts.done) == (1, row.changed_at, row.done)
    await shard.clock.advance(patience_s(0.0, SETTINGS.bind_timeout_s))
    (again,) = await step(later)
    assert (again.generation, ranks_of([again])) == (2, [[0, 1, 2, 3]])


async def test_a_guarantee_is_lost_with_the_nodes_and_that_is_told() -> None:
    shard, leader = await led(nodes=2)
    due = shard.clock.now() + 1.2 * HOUR
    both = one_gpu(gpus=8, tasks=2, time_limit_s=HOUR, deadline_at=due)
    (job,) = await shard.submit(both, guaranteed=True)
    await leader.catch_up()
    assert await change_sizes(leader) == []
    assert (await shard.job(job.id)).guaranteed
    begin = await shard.store.submission.events_now()
    await silence(shard, leader)
    await shard.clock.advance(SLOW_LOOK_S)
    await change_sizes(leader)
    assert not (await shard.job(job.id)).guaranteed
    (lost,) = leader.sizing.lost
    assert "of 16 H100 in north 0 are left" in lost.cause
    page = await shard.store.submission.events_after(begin, tenant=TENANT)
    told = [event for event in page.events if event.reason is ReasonCode.GUARANTEE_LOST]
    assert [(event.job, event.message) for event in told] == [(job.id, lost.cause)]
    await leader.catch_up()
    assert leader.memory.world.guaranteed() == ()
    await shard.clock.advance(30.0)
    await change_sizes(leader)
    assert len(leader.sizing.lost) == 1


async def limit(shard: Shard, *, devices: int) -> None:
    """What the default queue may hold at most."""
    async with shard.store.submission.begin() as tx:
        queue = Queue(QueueName("default"), TENANT, device_limit=100 * devices)
        await tx.update_queue(queue)
        await tx.changed([Change(ChangeKind.QUEUES, names=(queue.name,))])


async def silence(shard: Shard, leader: Leader) -> None:
    """The cluster is not heard any more."""
    async with leader.store.begin() as tx:
        leader.fence = await tx.require(leader.fence)
        await tx.lock_clusters([NORTH])
        await tx.set_cluster_state(NORTH, ClusterState.SILENT)
        await tx.changed([Change(ChangeKind.CLUSTERS, names=(NORTH,), echo=True)])
    await leader.catch_up()
