"""How the broker follows demand: all of it once, by pages, and then what changes."""

from dataclasses import replace

import pytest

from atoll.core.model.errors import ErrorCode, FailedPrecondition
from atoll.core.model.ids import JobId, NodeId
from atoll.core.model.lifecycle import AttemptEvent, JobState
from atoll.core.model.messages import ChangeKind
from atoll.ports.store.common import Change, Cursor
from atoll.ports.store.demand import NodeParts
from tests.adapters.burst_builders import rent
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


async def end(world: StoreWorld, *jobs: JobId, at: float) -> None:
    async with world.store.submission.begin() as tx:
        stand = (await tx.lock_jobs(jobs)).values()
        ended = [replace(job, state=JobState.CANCELLED, ended_at=at) for job in stand]
        await tx.update_jobs(ended)
        await tx.changed([Change(ChangeKind.JOBS, ids=jobs)])


@pytest.mark.parametrize("page", [1, 2, 3, 100])
async def test_pages_hold_every_job_once(world: StoreWorld, page: int) -> None:
    jobs = [each.id for each in await submit(world.store, 7)]
    # Three ended at one time, which is where a page may begin.
    await end(world, *jobs[3:6], at=500.0)
    await end(world, jobs[0], at=100.0)
    pages = [rows async for rows in world.store.burst.demand(since=100.0, page=page)]
    assert all(0 < len(rows) <= page for rows in pages)
    found = [row.job for rows in pages for row in rows]
    assert found == [jobs[1], jobs[2], jobs[6], *jobs[3:6]]


async def test_whoever_follows_sees_each_job_that_anybody_wrote(world: StoreWorld) -> None:
    await cluster_with(world.store, node("n1", gpus=2))
    at = (await node_ids(world.store))["n1"]
    first, second = await submit(world.store, 2)
    burst = world.store.burst
    cursor = await burst.demand_cursor()
    assert (await burst.changed_demand(cursor)).jobs == ()
    (third,) = await submit(world.another())
    changed = await burst.changed_demand(cursor)
    assert changed.jobs == (third.id,)
    # A placement is told by its attempts, too, and the writer may be this store itself.
    await place(world.store, await lead(world.store), placed := placement(second, at, gpus=(0, 1)))
    await report(world.store, placed.attempt, AttemptEvent.ACCEPTED)
    await report(world.store, placed.attempt, AttemptEvent.STARTED)
    changed = await burst.changed_demand(changed.cursor)
    assert changed.jobs == (second.id,)
    (row,) = await burst.demand_of(changed.jobs)
    assert (row.kind, row.devices, bool(row.started_at)) == ("H100", 2.0, True)
    assert (await burst.changed_demand(changed.cursor)).jobs == ()
    assert set((await burst.changed_demand(cursor)).jobs) == {second.id, third.id}
    assert first.id not in changed.jobs


async def test_what_is_back_in_the_queue_does_not_run(world: StoreWorld) -> None:
    (job,) = await submit(world.store)
    async with world.store.submission.begin() as tx:
        stands = (await tx.lock_jobs([job.id]))[job.id]
        await tx.update_jobs([replace(stands, started_at=50.0)])
    (row,) = await world.store.burst.demand_of([job.id])
    assert (row.started_at, row.waits, row.waits_at(60.0)) == (0.0, False, False)


async def test_a_cursor_of_something_else_is_refused(world: StoreWorld) -> None:
    with pytest.raises(FailedPrecondition) as raised:
        await world.store.burst.changed_demand(Cursor("of something else"))
    assert raised.value.code == ErrorCode.CURSOR_EXPIRED


async def test_processors_and_parts_of_nodes_are_told(world: StoreWorld) -> None:
    await rent(world.store)
    broken = replace(node("n2", gpus=2).devices[0], healthy=False)
    await cluster_with(
        world.store,
        node("n1", cpu_milli=48_500),
        replace(node("n2", gpus=2), devices=(broken, node("n2", gpus=2).devices[1])),
        node("n3", up=False),
    )
    assert await world.store.burst.cores() == 112.5
    ids = await node_ids(world.store)
    found = await world.store.burst.node_parts([ids["n1"], ids["n2"], NodeId(999)])
    assert found == {
        ids["n1"]: NodeParts((), 48.5),
        ids["n2"]: NodeParts(("", "H100"), 64.0),
    }
    await submit(world.store)
    (row,) = [row async for rows in world.store.burst.demand(since=0.0) for row in rows]
    assert (row.kind, row.devices, row.cores) == ("", 0.0, 1.0)
