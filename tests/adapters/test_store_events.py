"""Watches of both stores: complete, without repeats, by page."""

import asyncio
from dataclasses import replace

import pytest

from atoll.core.model.errors import ErrorCode, FailedPrecondition
from atoll.core.model.ids import JobId, Tenant
from atoll.core.model.lifecycle import JobEvent, JobState
from atoll.core.model.messages import Event
from atoll.core.model.reason import ReasonCode
from atoll.ports.store.common import Cursor
from tests.adapters.store_builders import TENANT, job, spec, submit, submitted
from tests.adapters.store_worlds import Store, StoreWorld


async def read_all(
    store: Store, cursor: Cursor, *, limit: int = 1000
) -> tuple[list[JobId], Cursor]:
    """Ids of all events until a page is empty, and the last cursor."""
    seen: list[JobId] = []
    while True:
        page = await store.submission.events_after(cursor, tenant=TENANT, limit=limit)
        seen += [event.job for event in page.events]
        cursor = page.cursor
        if not page.events:
            return seen, cursor


async def test_events_come_back_whole(world: StoreWorld) -> None:
    [mine] = await submit(world.store)
    cursor = await world.store.submission.events_now()
    whole = Event(
        mine.id, mine.queue, event=JobEvent.FAILED, state=JobState.FAILED, at=5.5,
        attempt=None, cluster=None, reason=ReasonCode.TIME_LIMIT, message="m", principal="ann",
    )  # fmt: skip
    plain = submitted(mine)
    async with world.store.submission.begin() as tx:
        await tx.add_events([whole, plain, replace(plain, job=JobId(999))])
        await tx.add_events([])
    page = await world.store.submission.events_after(cursor, tenant=TENANT)
    assert page.events == (whole, plain)


async def test_a_watch_sees_what_comes_after_its_cursor_only(world: StoreWorld) -> None:
    await submit(world.store)
    cursor = await world.store.submission.events_now()
    later = [each.id for each in await submit(world.store, 3)]
    seen, cursor = await read_all(world.store, cursor)
    assert seen == later
    assert (
        await read_all(world.another(), cursor) == ([], cursor)
        or not (await read_all(world.another(), cursor))[0]
    )


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 100])
async def test_pages_have_no_gap_and_no_repeat(world: StoreWorld, limit: int) -> None:
    cursor = await world.store.submission.events_now()
    ids = [each.id for _ in range(3) for each in await submit(world.store, 3)]
    page = await world.store.submission.events_after(cursor, tenant=TENANT, limit=limit)
    # What is committed between two pages comes after what was there before.
    ids += [each.id for each in await submit(world.store, 2)]
    rest, _ = await read_all(world.store, page.cursor, limit=limit)
    assert [event.job for event in page.events] + rest == ids


async def test_a_watch_is_restricted_to_tenant_queue_and_jobs(world: StoreWorld) -> None:
    cursor = await world.store.submission.events_now()
    made = {}
    for queue in ("org", "org.a", "organ", "org_x.a"):
        [each] = await submit(world.store, spec=spec(queue=queue))
        made[queue] = each.id
    [foreign] = await submit(world.store, tenant=Tenant("other"))

    async def seen(**wanted: object) -> list[JobId]:
        asked = {"tenant": TENANT, **wanted}
        page = await world.store.submission.events_after(cursor, **asked)  # type: ignore[arg-type]
        return [event.job for event in page.events]

    assert await seen() == list(made.values())
    assert await seen(tenant=Tenant("other")) == [foreign.id]
    assert await seen(queue="org") == [made["org"], made["org.a"]]
    assert await seen(queue="org_") == []
    assert await seen(jobs=[made["organ"], foreign.id]) == [made["organ"]]


async def test_nothing_is_missed_under_concurrent_writers(world: StoreWorld) -> None:
    """Transactions that began early and commit late included."""
    start = await world.store.submission.events_now()
    done = asyncio.Event()

    async def write(turn: int) -> list[JobId]:
        async with world.store.submission.begin() as tx:
            ids = await tx.next_job_ids(3)
            jobs = [job(number) for number in ids]
            await tx.add_jobs(jobs)
            for each in jobs:
                await tx.add_events([submitted(each)])
                await asyncio.sleep(0.001 * (turn % 5))
        return ids

    async def watch() -> list[JobId]:
        seen, cursor = [], start
        while True:
            last = done.is_set()
            page = await world.store.submission.events_after(cursor, tenant=TENANT, limit=4)
            seen += [event.job for event in page.events]
            cursor = page.cursor
            if last and not page.events:
                return seen
            await asyncio.sleep(0)

    watching = asyncio.create_task(watch())
    written = await asyncio.gather(*(write(turn) for turn in range(30)))
    done.set()
    seen = await watching
    assert sorted(seen) == sorted(number for ids in written for number in ids)


@pytest.mark.parametrize("text", ["", "x", "1/2", "1/a/b/c/d/e/f", "memory/x/y", "memory/99/1/0"])
async def test_what_is_no_cursor_is_refused(world: StoreWorld, text: str) -> None:
    with pytest.raises(FailedPrecondition) as refused:
        await world.store.submission.events_after(Cursor(text), tenant=TENANT)
    assert refused.value.code is ErrorCode.CURSOR_EXPIRED
