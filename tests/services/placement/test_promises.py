"""What the leader promises, and that it stands: over a store in memory."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from atoll.core.engine.deadlines.promise import kept
from atoll.core.engine.deadlines.resizing import resizes
from atoll.core.engine.deadlines.wishes import Ask
from atoll.core.model.deadline import Chance, Verdict
from atoll.core.model.ids import AttemptId, QueueName, job_of
from atoll.core.model.lifecycle import JobState
from atoll.core.model.plan import Resize, request_of
from atoll.core.model.spec import Elastic, JobSpec
from atoll.placement.usecases.leader import Leader
from atoll.placement.usecases.promises import KEPT_S
from tests.adapters.store_builders import NORTH
from tests.services.placement.shard import Shard, cycle, one_gpu

HOUR = 3600.0
SIZES = Elastic(((1, 1.0), (2, 2.0), (4, 3.0)), 2 * HOUR, rescale_cost_s=60.0)


def ask_of(spec: JobSpec) -> Ask:
    return Ask(QueueName(spec.queue), request_of(spec), spec.deadline_at, begin_at=spec.begin_at)


async def asked(leader: Leader, specs: Sequence[JobSpec], *, keep: bool = True) -> list[Verdict]:
    now = leader.clock.now()
    return await leader.promises.answer(
        leader.memory.world, [ask_of(spec) for spec in specs], now=now, keep=keep
    )


def chances(verdicts: Sequence[Verdict]) -> list[Chance]:
    return [verdict.chance for verdict in verdicts]


def whole(shard: Shard, *, hours: float) -> JobSpec:
    """All 8 devices of the one node for about half an hour, to be done in some hours."""
    due = shard.clock.now() + hours * HOUR
    return one_gpu(gpus=8, time_limit_s=0.5 * HOUR, deadline_at=due)


async def led() -> tuple[Shard, Leader]:
    shard = Shard()
    await shard.cluster(nodes=1, gpus=8)
    leader = await shard.lead()
    await leader.catch_up()
    return shard, leader


async def test_promises_are_given_until_the_time_is_sold() -> None:
    shard, leader = await led()
    found = await asked(leader, [whole(shard, hours=1.2)] * 3)
    assert chances(found) == [Chance.GUARANTEED, Chance.GUARANTEED, Chance.LIKELY]
    assert found[0].earliest_at < found[1].earliest_at < found[2].earliest_at
    assert chances(await asked(leader, [whole(shard, hours=1.2)])) == [Chance.LIKELY]


async def test_what_was_only_asked_is_not_kept() -> None:
    shard, leader = await led()
    spec = whole(shard, hours=0.6)
    assert chances(await asked(leader, [spec], keep=False)) == [Chance.GUARANTEED]
    assert chances(await asked(leader, [spec])) == [Chance.GUARANTEED]
    assert chances(await asked(leader, [spec])) == [Chance.LIKELY]


async def test_a_promise_whose_job_never_comes_lapses() -> None:
    shard, leader = await led()
    await asked(leader, [whole(shard, hours=0.6)])
    await shard.clock.advance(KEPT_S + 1)
    assert chances(await asked(leader, [whole(shard, hours=0.6)])) == [Chance.GUARANTEED]


async def test_a_promise_is_kept_by_its_job_queued_and_running_and_by_the_next_leader() -> None:
    shard, leader = await led()
    spec = whole(shard, hours=0.6)
    await asked(leader, [spec])
    (job,) = await shard.submit(spec, guaranteed=True)
    await leader.catch_up()
    assert [j.id for j in leader.memory.world.guaranteed()] == [job.id]
    assert chances(await asked(leader, [whole(shard, hours=0.6)])) == [Chance.LIKELY]
    await cycle(leader)
    assert await shard.states([job]) == [JobState.ASSIGNED]
    assert chances(await asked(leader, [whole(shard, hours=0.6)])) == [Chance.LIKELY]
    assert chances(await asked(leader, [whole(shard, hours=1.2)])) == [Chance.GUARANTEED]
    await shard.clock.advance(KEPT_S + 1)
    later = await shard.lead()
    await later.catch_up()
    assert chances(await asked(later, [whole(shard, hours=0.6)])) == [Chance.LIKELY]


async def test_other_running_work_is_in_the_way_until_its_limit() -> None:
    shard, leader = await led()
    await shard.submit(one_gpu(gpus=8, time_limit_s=HOUR))
    await cycle(leader)
    assert chances(await asked(leader, [whole(shard, hours=0.9)])) == [Chance.LIKELY]
    assert chances(await asked(leader, [whole(shard, hours=2)])) == [Chance.GUARANTEED]


async def test_what_is_promised_is_kept_from_when_to_when() -> None:
    shard, leader = await led()
    standing = [ask_of(whole(shard, hours=hours)) for hours in (1.2, 9.0)]
    now = leader.clock.now()
    first, second = kept(leader.memory.world.freeze(now), standing, now=now)
    assert (first.cluster, first.kind, first.blocks) == (NORTH, "H100", 800)
    assert first.end <= second.start < second.end <= now + 9 * HOUR
    assert first.end - first.start >= 0.5 * HOUR


async def test_an_elastic_job_is_promised_by_its_sizes() -> None:
    shard, leader = await led()
    now = shard.clock.now()
    elastic = one_gpu(tasks=4, elastic=SIZES, deadline_at=now + 1.1 * HOUR)
    assert chances(await asked(leader, [elastic] * 5)) == [Chance.GUARANTEED] * 4 + [Chance.LIKELY]
    hasty = replace(elastic, deadline_at=now + 0.5 * HOUR)
    (told,) = await asked(leader, [hasty])
    assert told.chance is Chance.CANNOT
    assert told.earliest_at > hasty.deadline_at


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"time_limit_s": 0.0}, "how long it runs"),
        ({"gpus": 0}, "whole devices"),
    ],
)
async def test_what_no_book_can_hold_is_told_why(given: dict[str, object], why: str) -> None:
    shard, leader = await led()
    fields = {"time_limit_s": HOUR, "deadline_at": shard.clock.now() + 9 * HOUR, **given}
    (told,) = await asked(leader, [one_gpu(**fields)])  # type: ignore[arg-type]
    assert told.chance is Chance.LIKELY
    assert why in told.why


async def test_a_deadline_that_is_over_cannot_be_met() -> None:
    shard, leader = await led()
    assert chances(await asked(leader, [whole(shard, hours=-1)])) == [Chance.CANNOT]


async def grown(*, tasks: int, cost_s: float = 60.0) -> tuple[Shard, Leader, AttemptId]:
    """An elastic job that was promised much time runs with some tasks on a node of 8 devices."""
    shard, leader = await led()
    elastic = replace(SIZES, rescale_cost_s=cost_s)
    spec = one_gpu(tasks=tasks, elastic=elastic, deadline_at=shard.clock.now() + 20 * HOUR)
    (job,) = await shard.submit(spec, guaranteed=True)
    await cycle(leader)
    return shard, leader, (await shard.attempt(job.id)).id


def due(leader: Leader, standing: Sequence[JobSpec] = ()) -> tuple[Resize, ...]:
    now = leader.clock.now()
    snapshot = leader.memory.world.freeze(now)
    return resizes(snapshot, [ask_of(spec) for spec in standing], {}, now=now)


async def test_a_running_job_shrinks_by_its_highest_ranks_for_one_that_was_promised_more() -> None:
    shard, leader, attempt = await grown(tasks=4)
    await shard.clock.advance(11 * 60.0)
    other = one_gpu(gpus=6, time_limit_s=HOUR, deadline_at=shard.clock.now() + 1.2 * HOUR)
    assert chances(await asked(leader, [other])) == [Chance.GUARANTEED]
    # What it could have beside the other stays free for those who come next.
    assert due(leader, [other]) == (Resize(attempt, NORTH, 1, drop=(1, 2, 3)),)


async def test_nobody_changes_its_size_twice_in_ten_times_what_that_costs() -> None:
    shard, leader, _ = await grown(tasks=4)
    await shard.clock.advance(9 * 60.0)
    other = one_gpu(gpus=6, time_limit_s=HOUR, deadline_at=shard.clock.now() + 1.02 * HOUR)
    assert due(leader, [other]) == ()


async def test_a_running_job_grows_onto_spare_devices_next_to_its_own() -> None:
    shard, leader, attempt = await grown(tasks=1)
    await shard.clock.advance(11 * 60.0)
    (resize,) = due(leader)
    assert (resize.attempt, resize.generation, resize.drop) == (attempt, 1, ())
    assert [task.rank for task in resize.add] == [1, 2, 3]
    devices = [grant.index for task in resize.add for grant in task.devices]
    held = (await shard.attempt(job_of(attempt))).tasks[0].devices[0].index
    assert len({*devices, held}) == 4
