"""What a leader answers of plans, shares, priorities and waits, between its cycles."""

from dataclasses import replace

import pytest

from atoll.core.model.errors import ErrorCode, InvalidInput, NotFound
from atoll.core.model.ids import JobId, QueueName, Tenant
from atoll.core.model.job import Queue
from atoll.core.model.lifecycle import JobState
from atoll.core.model.messages import ChangeKind
from atoll.core.model.priority import DEFAULT_CLASSES, by_name
from atoll.core.model.reason import ReasonCode
from atoll.core.model.spec import JobSpec
from atoll.placement import answers
from atoll.placement.usecases.explain import explain_job
from atoll.placement.usecases.leader import Leader
from atoll.placement.usecases.questions import (
    checked_spec,
    get_priority,
    get_shares,
    list_waits,
    plan_job,
)
from atoll.ports.store.common import Change
from tests.services.placement.shard import Shard, cycle, one_gpu

CLASSES = by_name(DEFAULT_CLASSES)
TENANT = Tenant("default")


async def led(*, nodes: int = 2) -> tuple[Shard, Leader]:
    """A leader over one cluster of nodes with 8 H100 each."""
    shard = Shard()
    await shard.cluster(nodes=nodes)
    leader = await shard.lead()
    await cycle(leader)
    return shard, leader


async def with_queue(shard: Shard, queue: Queue) -> None:
    async with shard.store.submission.begin() as tx:
        assert await tx.add_queue(queue)
        await tx.changed([Change(ChangeKind.QUEUES, names=(queue.name,))])


def whole(gpus: int = 8, *, tasks: int = 1, priority: int = 0) -> JobSpec:
    return replace(one_gpu(gpus=gpus, tasks=tasks), priority=priority)


async def test_a_plan_tells_the_place_and_submits_nothing() -> None:
    shard, leader = await led()
    found = await plan_job(leader, whole(tasks=2), TENANT)
    told = answers.planned(found)
    assert (told.fits_now, told.never_fits, told.cluster) == (True, False, "north")
    assert [(task.rank, len(task.devices)) for task in told.tasks] == [(0, 8), (1, 8)]
    assert told.summary == "it would start now on cluster north"
    assert await shard.nodes_held() == set()
    assert leader.memory.world.pending_count == 0
    assert not leader.memory.world.has_work()


async def test_a_plan_names_who_would_be_stopped() -> None:
    shard, leader = await led(nodes=1)
    (low,) = await shard.submit(whole(priority=-5))
    await cycle(leader)
    told = answers.planned(await plan_job(leader, whole(4, priority=5), TENANT))
    assert [(v.attempt, v.priority, v.queue) for v in told.victims] == [
        (f"{low.id}.1", -5, "default")
    ]
    assert (told.fits_now, told.cluster) == (False, "north")
    assert "once one run has been stopped" in told.summary


async def test_a_plan_tells_what_it_would_wait_for() -> None:
    shard, leader = await led(nodes=1)
    await shard.submit(whole())
    await cycle(leader)
    told = answers.planned(await plan_job(leader, whole(4), TENANT))
    assert (told.cluster, told.never_fits, told.fits_now) == ("", False, False)
    assert told.reasons[0].code == "DEVICES_SHORT"
    assert [(h.amount, h.unit) for h in told.holders] == [(800, "blocks")]


async def test_what_can_never_run_is_told() -> None:
    _, leader = await led(nodes=1)
    told = answers.planned(await plan_job(leader, whole(9), TENANT))
    assert (told.never_fits, told.cluster) == (True, "")
    assert told.summary.startswith("it can never run")


async def test_a_plan_is_for_a_queue_of_the_tenant() -> None:
    _, leader = await led()
    for spec, tenant in ((replace(whole(), queue="none"), TENANT), (whole(), Tenant("other"))):
        with pytest.raises(NotFound) as raised:
            await plan_job(leader, spec, tenant)
        assert raised.value.code is ErrorCode.QUEUE_NOT_FOUND


async def test_jobs_that_ended_well_are_waited_for_no_more() -> None:
    shard, leader = await led()
    (first,) = await shard.submit(whole())
    waiting = replace(whole(), depends_on=(first.id,))
    told = answers.planned(await plan_job(leader, waiting, TENANT))
    assert [reason.code for reason in told.reasons] == ["DEPENDENCY"]


def test_a_spec_gets_the_priority_of_its_class() -> None:
    low = checked_spec(replace(one_gpu(), priority_class="low"), CLASSES)
    assert (low.priority, low.preempts) == (-1000, False)
    with pytest.raises(InvalidInput) as raised:
        checked_spec(replace(one_gpu(), priority_class="lowest"), CLASSES)
    assert raised.value.violations[0].field == "spec.priority_class"


async def test_shares_are_told_by_queue_and_kind() -> None:
    shard, leader = await led()
    await with_queue(shard, Queue(QueueName("org.a"), TENANT, deserved=(("H100", 400),), weight=2))
    await with_queue(shard, Queue(QueueName("other"), TENANT))
    await shard.submit(replace(whole(), queue="org.a"))
    await cycle(leader)
    shares = answers.shared_out(await get_shares(leader, "org")).shares
    assert [share.queue for share in shares] == ["org", "org.a"]
    (kind,) = shares[1].kinds
    assert (shares[1].weight, kind.kind) == (2.0, "H100")
    assert (kind.held, kind.deserved, kind.borrowed, kind.capacity) == (800, 400, 400, 1600)
    assert shares[1].dominant_share == pytest.approx(0.5)
    with pytest.raises(NotFound):
        await get_shares(leader, "nobody")


async def test_factors_are_told_of_queued_jobs() -> None:
    shard, leader = await led(nodes=1)
    (runs,) = await shard.submit(whole())
    await cycle(leader)
    _, second = await shard.submit(whole(), whole())
    await cycle(leader)
    told = answers.prioritised(await get_priority(leader, second.id), "fifo")
    assert (told.jobs_ahead, told.order) == (1, "fifo")
    names = [factor.name for factor in told.factors]
    assert names[0] == "guaranteed"
    assert {"share", "priority", "age", "size", "total"} <= set(names)
    assert not (await get_priority(leader, runs.id)).factors
    with pytest.raises(NotFound):
        await get_priority(leader, JobId(999))


async def test_waits_are_what_the_last_cycle_found() -> None:
    shard, leader = await led(nodes=1)
    (runs,) = await shard.submit(whole())
    await cycle(leader)
    (waits,) = await shard.submit(whole(4))
    (after,) = await shard.submit(replace(whole(), depends_on=(runs.id,)))
    (later,) = await shard.submit(replace(whole(), begin_at=shard.clock.now() + 60))
    asked = [runs.id, waits.id, after.id, later.id]
    await leader.catch_up()
    untried = list_waits(leader, asked)
    assert (untried[0].job, untried[0].reason) == (waits.id, None)
    await cycle(leader)
    found = {wait.job: wait.reason and wait.reason.code for wait in list_waits(leader, asked)}
    assert found == {
        waits.id: ReasonCode.DEVICES_SHORT,
        after.id: ReasonCode.DEPENDENCY,
        later.id: ReasonCode.BEGIN_IN_FUTURE,
    }


async def test_an_explanation_names_who_holds_what_is_needed() -> None:
    shard, leader = await led(nodes=1)
    await shard.submit(replace(whole(), time_limit_s=3600.0))
    await cycle(leader)
    (waits,) = await shard.submit(whole(4))
    await cycle(leader)
    told = answers.explained(await explain_job(leader, waits.id))
    (holder,) = told.holders
    assert (holder.amount, holder.queue, holder.stopping) == (800, "default", False)
    assert holder.until > shard.clock.now()
    assert (told.eta.promised, told.eta.cluster) == (True, "north")
    assert told.eta.p50_at == pytest.approx(holder.until, abs=1.0)
    assert not told.HasField("hold")


async def test_an_explanation_tells_what_is_held_for_the_job() -> None:
    shard, leader = await led(nodes=1)
    (low,) = await shard.submit(whole())
    await cycle(leader)
    await shard.sent()
    (high,) = await shard.submit(whole(priority=10))
    await cycle(leader)
    told = answers.explained(await explain_job(leader, high.id))
    assert told.hold.cluster == "north"
    assert list(told.hold.victims) == [f"{low.id}.1"]
    assert "is held for another" in told.summary
    assert (await explain_job(leader, low.id)).state is JobState.ASSIGNED
