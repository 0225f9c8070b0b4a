"""Which placements say how quick placement is: those of jobs that found room at once."""

from dataclasses import replace

from atoll.core.model.ids import JobId
from atoll.core.model.lifecycle import AttemptEvent
from atoll.placement.usecases.leader import Leader
from tests.services.placement.shard import SETTINGS, Shard, one_gpu


async def placed(leader: Leader) -> tuple[set[JobId], set[JobId]]:
    """A cycle: what it placed, and which of these had waited for nothing."""
    await leader.catch_up()
    committed = await leader.schedule()
    if committed is None:
        return set(), set()
    return {p.placement.job for p in committed.placed}, set(committed.prompt)


async def test_a_job_that_found_room_at_once_has_not_waited() -> None:
    shard = Shard()
    await shard.cluster()
    leader = await shard.lead()
    (job,) = await shard.submit(one_gpu())
    assert await placed(leader) == ({job.id}, {job.id})


async def test_a_job_that_waited_for_capacity_has() -> None:
    shard = Shard()
    await shard.cluster(nodes=1, gpus=8)
    first, second = await shard.submit(one_gpu("a", gpus=8), one_gpu("b", gpus=8))
    leader = await shard.lead()
    assert await placed(leader) == ({first.id}, {first.id})
    attempt = await shard.attempt(first.id)
    await shard.report(attempt.id, AttemptEvent.FINISHED, exit_code=0)
    assert await placed(leader) == ({second.id}, set())


async def test_a_job_behind_others_that_wait_has_waited_too() -> None:
    shard = Shard()
    await shard.cluster(nodes=1, gpus=8)
    first, _ = await shard.submit(one_gpu("a", gpus=8), one_gpu("b", gpus=8))
    leader = await shard.lead()
    await placed(leader)
    # Its class does not fit, so there is no plan at all; it has been looked at all the same.
    (late,) = await shard.submit(one_gpu("c", gpus=8))
    assert await placed(leader) == (set(), set())
    await shard.report((await shard.attempt(first.id)).id, AttemptEvent.FINISHED, exit_code=0)
    await placed(leader)
    assert late.id not in leader.memory.newcomers.looked_at([late.id])


async def test_a_job_that_a_full_cycle_did_not_reach_has_waited_for_us_alone() -> None:
    shard = Shard()
    await shard.cluster(nodes=1, gpus=8)
    leader = await shard.lead()
    leader.rules = replace(leader.rules, max_placements=1)
    jobs = await shard.submit(one_gpu("a"), one_gpu("b"))
    found = [await placed(leader), await placed(leader)]
    assert found == [({jobs[0].id}, {jobs[0].id}), ({jobs[1].id}, {jobs[1].id})]


async def test_a_job_that_was_rolled_back_is_no_newcomer() -> None:
    shard = Shard()
    await shard.cluster()
    (job,) = await shard.submit(one_gpu())
    leader = await shard.lead()
    await placed(leader)
    await shard.clock.advance(SETTINGS.bind_timeout_s + 1)
    await leader.catch_up()
    await leader.take_back()
    await placed(leader)  # learns of it, and avoids the cluster for a while
    await shard.clock.advance(SETTINGS.avoid_base_s + 1)
    assert await placed(leader) == ({job.id}, set())


async def test_after_a_take_over_only_what_came_lately_is_new() -> None:
    shard = Shard()
    await shard.cluster()
    (old,) = await shard.submit(one_gpu("old"))
    await shard.clock.advance(3600)
    (late,) = await shard.submit(one_gpu("late"))
    assert await placed(await shard.lead()) == ({old.id, late.id}, {late.id})
