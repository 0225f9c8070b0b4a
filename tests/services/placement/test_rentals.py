"""Rented machines on the real path: rows, holds, drains, and the end that a provider confirms."""

from dataclasses import replace

import pytest

from atoll.core.model.burst import Instance, InstanceState
from atoll.core.model.errors import DomainError
from atoll.core.model.ids import DEFAULT_SHARD, ClusterName, JobId
from atoll.core.model.inventory import ClusterState
from atoll.core.model.job import Job
from atoll.core.model.lifecycle import (
    AttemptEvent,
    AttemptState,
    AttemptWish,
    JobState,
    StopCause,
)
from atoll.core.model.messages import DecisionKind
from atoll.core.model.spec import OnLost
from atoll.placement.usecases.audit import audit
from atoll.placement.usecases.explain import explain_job
from atoll.placement.usecases.leader import Leader
from atoll.placement.usecases.rentals import forget_rentals
from atoll.ports.store.dispatch import InventoryDelta
from tests.adapters.burst_builders import TOKEN_HASH, move, set_policy, wish
from tests.adapters.store_builders import NORTH, claim, node
from tests.services.placement.shard import Shard, cycle, one_gpu

BOOTING, READY, DRAINING, TERMINATED = (
    InstanceState.BOOTING,
    InstanceState.READY,
    InstanceState.DRAINING,
    InstanceState.TERMINATED,
)
WAITED_FOR_S = 900.0


async def full() -> tuple[Shard, Leader, Job]:
    """Everybody may rent; one local node, which a job fills."""
    shard = Shard()
    await set_policy(shard.store, None)
    await shard.cluster(nodes=1, gpus=8)
    leader = await shard.lead()
    (local,) = await shard.submit(one_gpu("local", gpus=8))
    await cycle(leader)
    await shard.sent()
    return shard, leader, local


async def rented_for(shard: Shard, *jobs: Job, state: InstanceState = BOOTING) -> Instance:
    """As the broker records it: expected in 5 minutes, waited for 15."""
    now = shard.clock.now()
    new = wish(state=state, jobs=tuple(job.id for job in jobs))
    async with shard.store.burst.begin() as tx:
        (made,) = await tx.add_instances([
            replace(new, ready_at=now + 300.0, give_up_at=now + WAITED_FOR_S)
        ])
    return made


async def join(shard: Shard, name: ClusterName) -> None:
    """Its agent comes, and reports what was offered."""
    row = await shard.store.dispatch.open_session(claim(name, join_hash=TOKEN_HASH))
    epoch, machine = row.cluster.session_epoch, node(str(name), gpus=2)
    inventory = InventoryDelta(name, epoch, 1, full=True, nodes=(machine,))
    assert await shard.store.dispatch.put_inventory(inventory)


async def held(shard: Shard) -> dict[JobId, ClusterName]:
    rows = (await shard.store.placement.load(DEFAULT_SHARD)).nominations
    return {row.job: row.cluster for row in rows}


async def running_there(shard: Shard, leader: Leader, **given: object) -> tuple[Instance, Job]:
    """A machine that is there, and a job that runs on it."""
    made = await rented_for(shard, state=READY)
    await join(shard, made.cluster)
    (job,) = await shard.submit(replace(one_gpu("away", gpus=2), **given))  # type: ignore[arg-type]
    await cycle(leader)
    await shard.sent(made.cluster)
    await shard.report((await shard.attempt(job.id)).id, AttemptEvent.STARTED)
    await leader.catch_up()
    assert (await shard.attempt(job.id)).cluster == made.cluster
    return made, job


async def test_a_job_for_which_a_machine_boots_stays_at_home_if_there_is_room_first() -> None:
    shard, leader, local = await full()
    (job,) = await shard.submit(one_gpu("away", gpus=2))
    made = await rented_for(shard, job)
    await cycle(leader)
    assert await held(shard) == {job.id: made.cluster}
    assert "boots for another" in (await explain_job(leader, job.id)).summary
    attempt = (await shard.attempt(local.id)).id
    await shard.report(attempt, AttemptEvent.FINISHED, exit_code=0)
    await cycle(leader)
    assert (await shard.attempt(job.id)).cluster == NORTH
    assert await held(shard) == {}
    assert await audit(leader) == ()


async def test_it_starts_on_the_machine_once_that_has_joined_and_nobody_else_gets_it() -> None:
    shard, leader, _ = await full()
    early, job = await shard.submit(one_gpu("early", gpus=2), one_gpu("away", gpus=2))
    made = await rented_for(shard, job)
    await cycle(leader)
    await join(shard, made.cluster)
    await cycle(leader)
    assert await shard.states([early, job]) == [JobState.QUEUED, JobState.ASSIGNED]
    (start,) = await shard.decisions(made.cluster)
    assert (start.kind, start.attempt) == (
        DecisionKind.START,
        (await shard.attempt(job.id)).id,
    )
    assert await held(shard) == {}
    assert await audit(leader) == ()


async def test_others_get_the_rest_of_a_machine_when_it_is_ready() -> None:
    shard, leader, _ = await full()
    first, second, third = await shard.submit(*(one_gpu(n, gpus=1) for n in ("a", "b", "c")))
    made = await rented_for(shard, second)
    await cycle(leader)
    await join(shard, made.cluster)
    await cycle(leader)
    await move(shard.store, made, READY)
    await cycle(leader)
    states = await shard.states([first, second, third])
    assert states == [JobState.ASSIGNED, JobState.ASSIGNED, JobState.QUEUED]
    reason = (await explain_job(leader, third.id)).reasons[0]
    assert reason.code == "DEVICES_SHORT"


async def test_what_runs_on_a_machine_that_is_given_back_stops_in_time_and_queues_again() -> None:
    shard, leader, _ = await full()
    made, job = await running_there(shard, leader, preemptible=False)
    await move(shard.store, made, DRAINING, stop_at=shard.clock.now() + 50.0)
    await cycle(leader)
    (late,) = await shard.submit(one_gpu("late", gpus=1))
    await cycle(leader)
    assert (await shard.attempt(job.id)).wish is AttemptWish.RUN
    await shard.clock.advance(50.0)
    await cycle(leader)
    attempt = await shard.attempt(job.id)
    assert (attempt.wish, attempt.cause) == (AttemptWish.STOP, StopCause.DRAIN)
    assert (await shard.decisions(made.cluster))[-1].cause is StopCause.DRAIN
    await shard.report(attempt.id, AttemptEvent.STOPPED)
    await cycle(leader)
    assert await shard.states([job, late]) == [JobState.QUEUED, JobState.QUEUED]
    row = await shard.job(job.id)
    assert (row.submitted_at, row.preemptions) == (job.submitted_at, 0)
    assert leader.counters.preempted == 0
    assert await audit(leader) == ()


@pytest.mark.parametrize("on_lost", [OnLost.HOLD, OnLost.REQUEUE])
async def test_what_ran_on_a_machine_that_is_gone_queues_again_whatever_it_wanted(
    on_lost: OnLost,
) -> None:
    shard, leader, _ = await full()
    made, job = await running_there(shard, leader, on_lost=on_lost)
    await move(shard.store, made, TERMINATED, ended_at=shard.clock.now())
    await leader.catch_up()
    assert await forget_rentals(leader) == [made.cluster]
    await cycle(leader)
    assert (await shard.attempt(job.id)).state is AttemptState.LOST
    assert await shard.states([job]) == [JobState.QUEUED]
    assert (await shard.cluster_row(made.cluster)).state is ClusterState.RETIRED
    assert await forget_rentals(leader) == []
    assert {c.name for c in await shard.store.placement.heartbeats(DEFAULT_SHARD)} == {NORTH}
    assert await audit(leader) == ()
    with pytest.raises(DomainError):
        await join(shard, made.cluster)


async def test_a_machine_that_could_not_be_had_is_forgotten_with_what_was_held_there() -> None:
    shard, leader, _ = await full()
    (job,) = await shard.submit(one_gpu("away", gpus=2))
    made = await rented_for(shard, job)
    await cycle(leader)
    await move(shard.store, made, InstanceState.FAILED, ended_at=1.0)
    await leader.catch_up()
    await forget_rentals(leader)
    await cycle(leader)
    assert await held(shard) == {}
    assert (await shard.cluster_row(made.cluster)).state is ClusterState.RETIRED
    successor = await shard.lead()
    assert successor.memory.world.rentals == ()


async def test_a_machine_that_has_ended_under_no_leader_takes_nothing_from_the_next() -> None:
    shard, leader, _ = await full()
    made, job = await running_there(shard, leader)
    await move(shard.store, made, TERMINATED, ended_at=2.0)
    (late,) = await shard.submit(one_gpu("late", gpus=1))
    successor = await shard.lead()
    await successor.schedule()
    assert await shard.states([late]) == [JobState.QUEUED]
    assert await forget_rentals(successor) == [made.cluster]
    assert await shard.states([job]) == [JobState.QUEUED]
    assert await audit(successor) == ()


async def test_a_machine_that_boots_is_not_silent() -> None:
    shard, leader, _ = await full()
    made = await rented_for(shard)
    await leader.catch_up()
    for _ in range(10):
        await shard.clock.advance(10.0)
        await shard.beat(NORTH)
        await leader.listen(dispatch_alive=True)
    assert (await shard.cluster_row(made.cluster)).state is ClusterState.BOOTING


async def test_nobody_waits_for_a_machine_longer_than_it_is_waited_for() -> None:
    shard, leader, _ = await full()
    (job,) = await shard.submit(one_gpu("away", gpus=2))
    await rented_for(shard, job)
    await cycle(leader)
    await shard.clock.advance(WAITED_FOR_S)
    await cycle(leader)
    assert await held(shard) == {}
    assert await shard.states([job]) == [JobState.QUEUED]


async def test_what_is_held_on_a_machine_that_boots_outlives_the_leader() -> None:
    shard, leader, _ = await full()
    early, job = await shard.submit(one_gpu("early", gpus=2), one_gpu("away", gpus=2))
    made = await rented_for(shard, job)
    await cycle(leader)
    successor = await shard.lead()
    await cycle(successor)
    assert await held(shard) == {job.id: made.cluster}
    await join(shard, made.cluster)
    third = await shard.lead()
    await cycle(third)
    assert await shard.states([early, job]) == [JobState.QUEUED, JobState.ASSIGNED]
    assert len(await shard.decisions(made.cluster)) == 1
    assert await held(shard) == {}
    assert await audit(third) == ()


async def test_a_hold_ends_with_its_machine_though_nobody_led_then() -> None:
    shard, leader, _ = await full()
    (job,) = await shard.submit(one_gpu("away", gpus=2))
    made = await rented_for(shard, job)
    await cycle(leader)
    await move(shard.store, made, InstanceState.TERMINATING)
    successor = await shard.lead()
    assert not successor.memory.world.ledger.nominations
    await cycle(successor)
    assert await held(shard) == {}


async def test_a_machine_is_no_place_for_who_may_not_rent() -> None:
    shard, leader, _ = await full()
    made = await rented_for(shard, state=READY)
    await join(shard, made.cluster)
    await set_policy(shard.store, None, per_hour=0)
    barred, allowed = await shard.submit(
        one_gpu("stays", gpus=1, burst=False), one_gpu("goes", gpus=1)
    )
    await cycle(leader)
    assert await shard.states([barred, allowed]) == [JobState.QUEUED, JobState.ASSIGNED]
    reasons = (await explain_job(leader, barred.id)).reasons
    assert reasons[-1].message == (
        f"cluster {made.cluster} is rented: it may not run on rented machines"
    )
