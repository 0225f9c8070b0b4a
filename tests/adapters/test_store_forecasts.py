"""What a new leader learns of the past: how forecasts held, and how long runs lasted."""

from atoll.core.model.ids import DEFAULT_SHARD, ShardId
from atoll.core.model.lifecycle import AttemptEvent, AttemptState
from tests.adapters.store_builders import (
    cluster_with,
    lead,
    node,
    node_ids,
    place,
    placement,
    report,
    submit,
)
from tests.adapters.store_worlds import StoreWorld


async def test_the_record_of_forecasts_is_the_last_one_of_its_shard(world: StoreWorld) -> None:
    store = world.store
    fence = await lead(store)
    assert (await store.placement.load(DEFAULT_SHARD)).forecasts == ""
    for record in ('{"version": 0}', '{"version": 1}'):
        async with store.placement.begin() as tx:
            fence = await tx.require(fence)
            await tx.put_forecasts(DEFAULT_SHARD, record)
    assert (await store.placement.load(DEFAULT_SHARD)).forecasts == '{"version": 1}'
    assert (await store.placement.load(ShardId(9))).forecasts == ""


async def test_runs_that_came_to_their_end_are_told_the_latest_first(world: StoreWorld) -> None:
    store = world.store
    await cluster_with(store, node("n1"))
    fence = await lead(store)
    jobs = await submit(store, 4)
    (where,) = (await node_ids(store)).values()
    made = [placement(job, where) for job in jobs]
    await place(store, fence, *made)
    for each in made[:3]:
        await report(store, each.attempt, AttemptEvent.ACCEPTED)
        await report(store, each.attempt, AttemptEvent.STARTED)
    await report(store, made[0].attempt, AttemptEvent.FINISHED)
    await report(store, made[1].attempt, AttemptEvent.STOPPED)
    await report(store, made[2].attempt, AttemptEvent.FINISHED)
    views = await store.placement.past_attempts(DEFAULT_SHARD, most=9)
    assert [view.attempt.id for view in views] == [made[2].attempt, made[0].attempt]
    assert {view.attempt.state for view in views} == {AttemptState.FINISHED}
    assert views[0].queue == jobs[2].queue
    assert views[0].attempt.ended_at > 0
    assert views[0].run is not None
    (latest,) = await store.placement.past_attempts(DEFAULT_SHARD, most=1)
    assert latest.attempt.id == made[2].attempt
    assert await store.placement.past_attempts(ShardId(9), most=9) == []
