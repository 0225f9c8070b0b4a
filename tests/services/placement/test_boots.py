"""A leader measures how long clusters take to begin, and places by it."""

from atoll.core.model.ids import ClusterName
from atoll.core.model.lifecycle import AttemptEvent
from atoll.placement.usecases.leader import Leader
from tests.services.placement.shard import Shard, cycle, one_gpu

BATCH, DIRECT = ClusterName("batch"), ClusterName("direct")
BOOTS = {BATCH: 240.0, DIRECT: 2.0}


async def begun(shard: Shard, leader: Leader, jobs: int = 2) -> set[str]:
    """Jobs that came, were placed, and began as quickly as their cluster lets them; where."""
    made = await shard.submit(*[one_gpu(gpus=8) for _ in range(jobs)])
    await cycle(leader)
    attempts = [await shard.attempt(job.id) for job in made]
    for attempt in sorted(attempts, key=lambda each: BOOTS[each.cluster]):
        await shard.clock.advance(BOOTS[attempt.cluster])
        await shard.report(attempt.id, AttemptEvent.ACCEPTED)
        await shard.report(attempt.id, AttemptEvent.STARTED)
    for attempt in attempts:
        await shard.report(attempt.id, AttemptEvent.FINISHED)
    await cycle(leader)
    return {attempt.cluster for attempt in attempts}


async def test_jobs_go_where_jobs_began_soonest_and_the_next_leader_knows_it() -> None:
    shard = Shard()
    await shard.cluster(BATCH, nodes=1)
    await shard.cluster(DIRECT, nodes=1)
    leader = await shard.lead()
    await cycle(leader)
    for _ in range(3):
        assert await begun(shard, leader) == {BATCH, DIRECT}
    assert await begun(shard, leader, 1) == {DIRECT}
    leader = await shard.lead()
    await cycle(leader)
    assert await begun(shard, leader, 1) == {DIRECT}
    assert await begun(shard, leader, 2) == {BATCH, DIRECT}
