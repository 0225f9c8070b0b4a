"""Retention of both stores."""

from dataclasses import replace

import pytest

from atoll.core.model.errors import ErrorCode, FailedPrecondition
from atoll.core.model.ids import DEFAULT_SHARD, JobId
from atoll.core.model.lifecycle import AttemptEvent, JobState
from atoll.ports.store.dispatch import Beat
from atoll.ports.store.upkeep import Pruned, Retention
from tests.adapters.store_builders import (
    NORTH,
    TENANT,
    cluster_with,
    lead,
    node,
    node_ids,
    place,
    placement,
    report,
    request,
    spec,
    submit,
    submitted,
)
from tests.adapters.store_worlds import StoreWorld

NOTHING = Pruned(0, 0, 0, 0)
LONG = Retention()
SHORT_S = 0.05


async def test_nothing_young_or_alive_is_pruned(world: StoreWorld) -> None:
    await submit(world.store, 2)
    async with world.store.submission.begin() as tx:
        await tx.add_requests([request("k")])
    assert await world.store.upkeep.prune(replace(LONG, events_s=1e12)) == NOTHING
    assert await world.store.upkeep.prune(replace(LONG, jobs_s=0.0, events_s=1e12)) == NOTHING


async def test_ended_jobs_go_with_their_attempts_unless_somebody_waits_for_them(
    world: StoreWorld,
) -> None:
    await cluster_with(world.store, node("n1"))
    at = (await node_ids(world.store))["n1"]
    needed, gone, live = await submit(world.store, 3)
    await submit(world.store, spec=spec(depends_on=(needed.id,)))
    asked = placement(gone, at)
    await place(world.store, await lead(world.store), asked)
    await report(world.store, asked.attempt, AttemptEvent.FINISHED, exit_code=0)
    async with world.store.submission.begin() as tx:
        await tx.update_jobs([replace(needed, state=JobState.FAILED, ended_at=1.0)])
    await world.pass_time(SHORT_S)
    keep = replace(LONG, jobs_s=0.0, events_s=1e12)
    assert await world.store.upkeep.prune(keep) == Pruned(1, 0, 0, 0)
    assert await world.store.submission.get_job(TENANT, gone.id) is None
    assert await world.store.submission.get_attempt(asked.attempt) is None
    states = await world.store.placement.job_states([needed.id, gone.id, live.id])
    assert states == {needed.id: JobState.FAILED, live.id: JobState.QUEUED}
    async with world.store.submission.begin() as tx:
        assert await tx.live_jobs_in(live.queue) == 2


async def test_old_requests_are_forgotten(world: StoreWorld) -> None:
    async with world.store.submission.begin() as tx:
        await tx.add_requests([request("a"), request("b"), request("c")])
    await world.pass_time(SHORT_S)
    keep = replace(LONG, requests_s=0.0)
    assert (await world.store.upkeep.prune(keep, limit=2)).requests == 2
    assert (await world.store.upkeep.prune(keep, limit=2)).requests == 1
    async with world.store.submission.begin() as tx:
        assert await tx.add_requests([request("a", body=b"other")]) == [None]


async def test_decisions_go_once_they_are_acknowledged_and_over(world: StoreWorld) -> None:
    await cluster_with(world.store, node("n1"))
    at = (await node_ids(world.store))["n1"]
    asked = [placement(each, at) for each in await submit(world.store, 3)]
    await place(world.store, await lead(world.store), *asked)
    await world.store.dispatch.beat([Beat(NORTH, 1, applied_seq=2, lease_s=30)])
    for ended in (asked[0], asked[2]):
        await report(world.store, ended.attempt, AttemptEvent.FINISHED, exit_code=0)
    await world.pass_time(SHORT_S)
    keep = replace(LONG, decisions_s=0.0)
    assert (await world.store.upkeep.prune(keep)).decisions == 1
    assert await world.store.dispatch.decisions_after(NORTH, 0, limit=10) == []
    left = await world.store.dispatch.decisions_after(NORTH, 1, limit=10)
    assert [decision.number for decision in left] == [2, 3]


async def test_a_watch_that_stayed_away_too_long_is_told_so(world: StoreWorld) -> None:
    old = await world.store.submission.events_now()
    [first] = await submit(world.store)
    middle = await world.store.submission.events_now()
    async with world.store.submission.begin() as tx:
        recent = replace(submitted(first), at=4e9, message="m")
        await tx.add_events([recent])
    assert (await world.store.upkeep.prune(LONG)).events == 1
    with pytest.raises(FailedPrecondition) as refused:
        await world.store.submission.events_after(old, tenant=TENANT)
    assert refused.value.code is ErrorCode.CURSOR_EXPIRED
    page = await world.store.submission.events_after(middle, tenant=TENANT)
    assert page.events == (recent,)


async def test_upkeep_changes_nothing_that_anybody_sees(world: StoreWorld) -> None:
    cursor = (await world.store.placement.load(DEFAULT_SHARD)).cursor
    [mine] = await submit(world.store)
    await world.store.upkeep.maintain()
    await world.another().upkeep.maintain()
    [later] = await submit(world.store)
    seen = await world.store.placement.catch_up(DEFAULT_SHARD, cursor)
    assert [view.pending.id for view in seen.jobs] == [mine.id, later.id]
    states = await world.store.placement.job_states([mine.id, JobId(999)])
    assert states == {mine.id: JobState.QUEUED}
