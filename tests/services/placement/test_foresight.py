"""When queued jobs will start, as a leader tells it, and what the next one knows of that."""

from dataclasses import replace

import pytest
from prometheus_client import REGISTRY

from atoll.core.model.ids import JobId, Tenant
from atoll.core.model.job import Job
from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.rounding import round_limit
from atoll.core.model.spec import JobSpec
from atoll.placement import answers, telemetry
from atoll.placement.looking_ahead import looked_ahead
from atoll.placement.usecases import foresight
from atoll.placement.usecases.etas import Eta
from atoll.placement.usecases.explain import explain_job
from atoll.placement.usecases.foresight import foresee, remember
from atoll.placement.usecases.leader import Leader
from atoll.placement.usecases.outlook import Outlook
from atoll.placement.usecases.questions import list_waits, plan_job
from tests.services.placement.shard import Shard, cycle, one_gpu

HOUR = round_limit(3600.0)
TENANT = Tenant("default")


def whole(**given: object) -> JobSpec:
    """A job that takes a node for an hour at most."""
    return replace(one_gpu(gpus=8), **{"time_limit_s": 3600.0, **given})  # type: ignore[arg-type]


async def led(*, nodes: int = 1) -> tuple[Shard, Leader]:
    shard = Shard()
    await shard.cluster(nodes=nodes)
    leader = await shard.lead()
    await cycle(leader)
    return shard, leader


async def seen(shard: Shard, leader: Leader, *specs: JobSpec) -> list[Job]:
    """Jobs that were submitted and tried, and a forecast after that."""
    jobs = await shard.submit(*specs)
    await cycle(leader)
    await foresee(leader)
    return jobs


def etas(leader: Leader, *jobs: Job) -> list[Eta | None]:
    return [wait.eta for wait in list_waits(leader, [job.id for job in jobs])]


def start(eta: Eta | None) -> float:
    assert eta is not None
    assert eta.if_nothing_arrives_at <= eta.p90_at or eta.p50_at <= eta.p90_at
    return eta.if_nothing_arrives_at


async def finish(shard: Shard, job: Job) -> None:
    number = (await shard.attempt(job.id)).id
    for event in (AttemptEvent.ACCEPTED, AttemptEvent.STARTED, AttemptEvent.FINISHED):
        await shard.report(number, event)


async def test_every_queued_job_is_told_when_it_starts() -> None:
    shard, leader = await led()
    await seen(shard, leader, whole())
    now = shard.clock.now()
    jobs = await seen(shard, leader, whole(), whole(), whole(), one_gpu(gpus=8, tasks=2))
    first, second, third, never = etas(leader, *jobs)
    # The first that is blocked has a reservation, bounded by what was asked for.
    assert first is not None
    assert (first.promised, first.cluster) == (True, "north")
    assert start(first) == pytest.approx(now + HOUR, abs=2)
    assert start(second) == pytest.approx(now + 2 * HOUR, rel=0.01, abs=0.1 * HOUR)
    assert start(third) > start(second) > start(first)
    assert second is not None
    assert not second.promised
    assert "before it have to run first" in second.cause
    assert never is None
    told = answers.explained(await explain_job(leader, jobs[1].id)).eta
    assert told.if_nothing_arrives_at == start(second)
    wait = answers.wait_to_proto(list_waits(leader, [jobs[1].id])[0])
    assert wait.eta.cause == second.cause


async def test_a_plan_tells_when_a_job_would_start() -> None:
    shard, leader = await led(nodes=2)
    await seen(shard, leader, whole())
    now = shard.clock.now()
    room = await plan_job(leader, whole(), TENANT)
    assert start(room.eta) == now
    await seen(shard, leader, whole(), whole())
    full = await plan_job(leader, whole(), TENANT)
    other = await plan_job(leader, whole(priority=-1), TENANT)
    assert now + HOUR - 1 <= start(full.eta) <= start(other.eta)
    assert answers.planned(full).eta.cluster == "north"
    assert (await plan_job(leader, one_gpu(gpus=9), TENANT)).eta is None


async def test_what_waits_for_a_time_or_another_job_says_so() -> None:
    shard, leader = await led(nodes=2)
    now = shard.clock.now()
    (runs,) = await seen(shard, leader, whole())
    later, after = await seen(
        shard,
        leader,
        whole(begin_at=now + 5 * HOUR),
        whole(depends_on=(runs.id,)),
    )
    (last,) = await seen(shard, leader, whole(depends_on=(after.id,)))
    begins, follows, ends = etas(leader, later, after, last)
    assert start(begins) == now + 5 * HOUR
    assert start(follows) == pytest.approx(now + HOUR, abs=2)
    assert start(ends) == pytest.approx(now + 2 * HOUR, abs=2)
    assert follows is not None
    assert str(runs.id) in follows.cause


async def test_a_guaranteed_deadline_promises_a_start() -> None:
    shard, leader = await led()
    await seen(shard, leader, whole())
    now = shard.clock.now()
    promised = whole(deadline_at=now + 9 * HOUR, time_limit_s=3600.0)
    (first,) = await shard.submit(whole())
    (job,) = await shard.submit(promised, guaranteed=True)
    await cycle(leader)
    await foresee(leader)
    leader.outlook = Outlook()  # without its reservation
    (eta,) = etas(leader, job)
    assert eta is not None
    assert (eta.promised, eta.cluster) == (True, "north")
    assert eta.p50_at == eta.p90_at == now + 8 * HOUR
    assert now < eta.if_nothing_arrives_at <= now + 2.1 * HOUR
    assert first.id < job.id


async def test_run_times_are_learnt_and_known_to_the_next_leader() -> None:
    shard, leader = await led()
    for _ in range(12):
        (job,) = await seen(shard, leader, whole())
        await shard.clock.advance(600.0)
        await finish(shard, job)
        await cycle(leader)
    await seen(shard, leader, whole())
    first, second = await seen(shard, leader, whole(), whole())
    now = shard.clock.now()
    assert now + 2 * 500.0 < start(etas(leader, second)[0]) < now + 2 * 1200.0
    follower = await shard.lead()
    await cycle(follower)
    await foresee(follower)
    known, unknown = start(etas(follower, second)[0]), start(etas(leader, second)[0])
    assert known == pytest.approx(unknown, abs=30)
    assert first.id < second.id


async def test_forecasts_are_compared_with_starts_across_leaders() -> None:
    shard, leader = await led()
    (runs,) = await seen(shard, leader, whole())
    jobs = await seen(shard, leader, whole(), whole())
    assert set(leader.foresight.record.followed) == {job.id for job in jobs}
    await remember(leader)
    before = leader.fence
    await remember(leader)
    assert leader.fence == before  # nothing new, nothing written
    leader = await shard.lead()
    await cycle(leader)
    assert set(leader.foresight.record.followed) == {job.id for job in jobs}
    await shard.clock.advance(1800.0)
    await finish(shard, runs)
    await cycle(leader)
    await foresee(leader)
    covered = leader.foresight.record.coverage()
    assert covered.count == 1
    assert covered.within == (1.0, 1.0)
    assert covered.error_s == pytest.approx(HOUR - 1800.0, abs=2)


async def test_what_was_cancelled_is_followed_no_more() -> None:
    shard, leader = await led()
    await seen(shard, leader, whole())
    (job,) = await seen(shard, leader, whole())
    assert list(leader.foresight.record.followed) == [job.id]
    leader.memory.world.remove_pending([job.id])
    await foresee(leader)
    assert not list(leader.foresight.record.followed)
    assert leader.foresight.latest.of is not None
    assert leader.memory.world.still_pending([JobId(99)]) == []


async def test_a_forecast_that_fails_leaves_the_last_one_and_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*given: object, **named: object) -> None:
        raise ArithmeticError("a mistake")

    shard, leader = await led()
    await seen(shard, leader, whole(), whole())
    before, failed = leader.foresight.latest, value("forecasts_failed_total")
    monkeypatch.setattr(foresight, "forecast", broken)
    assert await looked_ahead(leader, shard.clock) >= 0.0
    assert leader.foresight.latest is before
    assert value("forecasts_failed_total") == (failed or 0.0) + 1


async def test_metrics_tell_how_forecasts_held() -> None:
    shard, leader = await led()
    (runs,) = await seen(shard, leader, whole())
    await seen(shard, leader, whole())
    await shard.clock.advance(HOUR)
    await finish(shard, runs)
    await cycle(leader)
    await looked_ahead(leader, shard.clock)
    assert value("eta_starts_count") == 1
    assert value("eta_coverage_ratio", level="p90") in (0.0, 1.0)
    telemetry.stands_by()
    assert value("eta_coverage_ratio", level="p90") is None


def value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(f"atoll_placement_{name}", labels)
