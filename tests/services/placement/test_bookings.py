"""Bookings on the leader's real path: learnt, planned around, and no cause to load anew."""

from dataclasses import replace

from atoll.core.model.booking import NodeShare, Owners
from atoll.core.model.ids import DEFAULT_SHARD, NodeId, QueueName
from atoll.core.model.lifecycle import AttemptEvent, AttemptWish, JobState, StopCause
from atoll.core.model.messages import ChangeKind
from atoll.core.model.reason import ReasonCode
from atoll.core.model.reservation import Occurrence, Part, When
from atoll.core.model.spec import Checkpoint
from atoll.placement import telemetry
from atoll.placement.usecases.explain import explain_job
from atoll.placement.usecases.leader import Leader
from atoll.ports.store.common import Change
from tests.adapters.booking_builders import booking, occurrence
from tests.adapters.store_builders import NORTH
from tests.services.placement.shard import Shard, cycle, one_gpu

HOUR_S = 3600.0


async def book(
    shard: Shard, name: str, start: float, *, owners: Owners, lend: bool = True
) -> Occurrence:
    """One hour of all of node 1, accepted as the reservation service does it."""
    when = When(length_s=HOUR_S, start_at=start)
    spec = replace(booking().spec, name=name, when=when, owners=owners, lend=lend)
    share = NodeShare(NodeId(1), "north-0", whole=True)
    async with shard.store.reservation.begin() as tx:
        made = await tx.add_reservation(booking(spec=spec))
        assert made is not None
        wanted = replace(occurrence(made, start), parts=(Part(NORTH, (share,)),))
        (stored,) = await tx.add_occurrences([wanted])
        await tx.changed([Change(ChangeKind.BOOKINGS, ids=(stored.id,))])
        await tx.raise_booking_rev([DEFAULT_SHARD])
    return stored


async def started() -> tuple[Shard, Leader]:
    shard = Shard()
    await shard.cluster(nodes=1, gpus=8)
    return shard, await shard.lead()


async def test_a_booking_under_a_plan_costs_one_more_plan_and_no_load() -> None:
    shard, leader = await started()
    reloads = telemetry.RELOADS._value.get()
    (job,) = await shard.submit(one_gpu(gpus=8, time_limit_s=2 * HOUR_S, preemptible=False))
    await leader.catch_up()
    memory = leader.memory
    start = shard.clock.now() + HOUR_S
    await book(shard, "exam", start, owners=Owners(queues=(QueueName("nlp"),)))
    fence = await leader.store.read_fence(DEFAULT_SHARD)
    assert fence.booking_rev == leader.fence.booking_rev + 1
    assert await leader.take_bookings(fence)
    await cycle(leader)
    assert await shard.states([job]) == [JobState.QUEUED]
    assert leader.memory is memory
    assert leader.counters.rebooked == 1
    assert telemetry.RELOADS._value.get() == reloads
    told = await explain_job(leader, job.id)
    assert told.reasons[0].code is ReasonCode.RESERVED
    assert "for queue nlp, booking exam" in told.reasons[0].message


async def test_a_booking_that_is_seen_before_the_plan_leaves_the_fence_right() -> None:
    shard, leader = await started()
    start = shard.clock.now() + HOUR_S
    await book(shard, "exam", start, owners=Owners(queues=(QueueName("nlp"),)))
    (job,) = await shard.submit(one_gpu(gpus=8, time_limit_s=HOUR_S / 2))
    await cycle(leader)
    assert await shard.states([job]) == [JobState.ASSIGNED]


async def test_a_run_in_the_way_is_stopped_in_time_and_queues_again() -> None:
    shard, leader = await started()
    spec = one_gpu(gpus=8, grace_s=10.0, checkpoint=Checkpoint(grace_s=20.0))
    (job,) = await shard.submit(spec)
    await cycle(leader)
    await shard.sent()
    await shard.report((await shard.attempt(job.id)).id, AttemptEvent.STARTED)
    start = shard.clock.now() + 100.0
    await book(shard, "exam", start, owners=Owners())
    await cycle(leader)
    wakeup = leader.memory.world.next_wakeup(shard.clock.now())
    assert wakeup == start - 35.0
    await shard.clock.advance(65.0)
    await cycle(leader)
    attempt = await shard.attempt(job.id)
    assert (attempt.wish, attempt.cause) == (AttemptWish.STOP, StopCause.BOOKING)
    assert leader.counters.booked == 1
    await shard.report(attempt.id, AttemptEvent.STOPPED)
    row = await shard.job(job.id)
    assert (row.state, row.reason) == (JobState.QUEUED, ReasonCode.STOPPED_FOR_BOOKING)
    await cycle(leader)
    assert await shard.states([job]) == [JobState.QUEUED]


async def test_jobs_of_a_user_are_the_bookings_own_though_they_were_queued_before() -> None:
    shard, leader = await started()
    (job,) = await shard.submit(one_gpu(gpus=8, time_limit_s=HOUR_S / 2, preemptible=False))
    principal = (await shard.job(job.id)).principal
    start = shard.clock.now() - 10.0
    await book(shard, "mine", start, owners=Owners(users=(principal,)), lend=False)
    await cycle(leader)
    assert await shard.states([job]) == [JobState.ASSIGNED]


async def test_a_job_that_asks_for_a_booking_starts_with_it_under_a_new_leader_too() -> None:
    shard, leader = await started()
    start = shard.clock.now() + 50.0
    await book(shard, "exam", start, owners=Owners(queues=(QueueName("default"),)))
    (job,) = await shard.submit(one_gpu(gpus=8, reservation="exam"))
    await cycle(leader)
    told = await explain_job(leader, job.id)
    assert told.reasons[0].code is ReasonCode.BOOKING_NOT_OPEN
    successor = await shard.lead()
    await shard.clock.advance(50.0)
    await cycle(successor)
    assert await shard.states([job]) == [JobState.ASSIGNED]
