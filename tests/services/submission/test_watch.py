import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from atoll.adapters.memory.clock import ManualClock, settle
from atoll.adapters.memory.streams import MemoryHints
from atoll.api.submission.v1 import submission_pb2 as api
from atoll.core.model.errors import DomainError, ErrorCode, Unavailable
from atoll.ports.topics import EVENTS
from atoll.ports.wake import LOOKS_PER_S, POLL_S, SETTLE_S, Wake
from tests.services.submission.worlds import Caller, World, node, refusal, spec

WITHIN_S = 60


@asynccontextmanager
async def watching(caller: Caller, **request: Any) -> AsyncIterator[Any]:
    """A watch that stands: its first answer has come."""
    call = caller.WatchJobs(api.WatchJobsRequest(**request))
    try:
        async with asyncio.timeout(WITHIN_S):
            first = await call.read()
            assert first.cursor
            call.first = first
            yield call
    finally:
        call.cancel()


async def events(call: Any, count: int) -> list[tuple[int, str]]:
    """The next events."""
    found: list[tuple[int, str]] = []
    while len(found) < count:
        found.extend((event.job_id, event.event) for event in (await call.read()).events)
    return found


async def test_the_first_answer_comes_at_once_and_has_the_cursor(ann: Caller) -> None:
    await ann.submit(spec())
    async with watching(ann) as call:
        assert not call.first.events


async def test_events_come_as_they_are_committed(world: World, ann: Caller) -> None:
    await world.add_cluster("alpha", node())
    async with watching(ann) as call:
        (number,) = await ann.submit(spec())
        assert await events(call, 1) == [(number, "SUBMITTED")]
        await world.place(number, "alpha")
        await world.hints.notify(EVENTS)
        assert await events(call, 1) == [(number, "PLACED")]
        await ann.CancelJobs(api.CancelJobsRequest(job_ids=[number]))
        assert await events(call, 1) == [(number, "CHANGED")]


async def test_a_lost_hint_is_covered_by_the_poll(world: World, ann: Caller) -> None:
    world.hints.down = True
    async with watching(ann) as call:
        (number,) = await ann.submit(spec())
        assert await events(call, 1) == [(number, "SUBMITTED")]


async def test_a_watch_goes_on_from_its_cursor_without_gap_or_repeat(ann: Caller) -> None:
    async with watching(ann) as call:
        cursor = call.first.cursor
    first, second = await ann.submit(spec("a"), spec("b"))
    request = api.WatchJobsRequest(cursor=cursor)
    call = ann.WatchJobs(request)
    answer = await call.read()
    call.cancel()
    assert [event.job_id for event in answer.events] == [first, second]
    (third,) = await ann.submit(spec("c"))
    call = ann.WatchJobs(api.WatchJobsRequest(cursor=answer.cursor))
    assert await events(call, 1) == [(third, "SUBMITTED")]
    call.cancel()


async def test_a_watch_of_jobs_or_of_a_queue_shows_nothing_else(ann: Caller) -> None:
    await ann.CreateQueue(api.CreateQueueRequest(queue=api.Queue(name="org.team")))
    (watched,) = await ann.submit(spec("a"))
    async with watching(ann, job_ids=[watched]) as one, watching(ann, queue="org") as below:
        (inside,) = await ann.submit(spec("b", queue="org.team"))
        await ann.HoldJob(api.HoldJobRequest(job_id=watched))
        assert await events(one, 1) == [(watched, "HELD")]
        assert await events(below, 1) == [(inside, "SUBMITTED")]


async def test_other_tenants_hear_nothing(world: World, ann: Caller) -> None:
    bob = world.caller("bob", "lab")
    await bob.CreateQueue(api.CreateQueueRequest(queue=api.Queue(name="lab")))
    async with watching(bob) as call:
        await ann.submit(spec("a"))
        (own,) = await bob.submit(spec("b", queue="lab"))
        assert await events(call, 1) == [(own, "SUBMITTED")]


async def test_a_long_backlog_comes_whole_and_in_order(ann: Caller) -> None:
    async with watching(ann) as call:
        cursor = call.first.cursor
    numbers = [*await ann.submit(spec(array=1_000)), *await ann.submit(spec(array=500))]
    call = ann.WatchJobs(api.WatchJobsRequest(cursor=cursor))
    async with asyncio.timeout(WITHIN_S):
        assert [job for job, _ in await events(call, 1_500)] == numbers
    call.cancel()


@pytest.mark.parametrize("cursor", ["nonsense", "1:2:3", "\u00e9", "x" * 4_000])
async def test_a_cursor_that_this_store_never_gave_is_refused(ann: Caller, cursor: str) -> None:
    call = ann.WatchJobs(api.WatchJobsRequest(cursor=cursor))
    found = await refusal(call.read())
    assert found.code is ErrorCode.CURSOR_EXPIRED


async def test_watches_end_when_the_server_stops(world: World, ann: Caller) -> None:
    async with watching(ann) as call:
        world.service.wake.stop()
        found: DomainError = await refusal(call.read())
        assert isinstance(found, Unavailable)
        assert await call.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_burst_of_hints_leads_to_one_look() -> None:
    clock, hints = ManualClock(), MemoryHints()
    wake = Wake(hints, clock, EVENTS)
    listening = asyncio.create_task(wake.run())
    await settle()
    waiting = asyncio.create_task(wake.wait())
    await settle()
    for _ in range(10):
        await hints.notify(EVENTS)
        await settle()
    assert not waiting.done()
    await clock.advance(SETTLE_S)
    assert waiting.done()
    listening.cancel()


async def test_without_hints_the_wait_is_the_poll() -> None:
    clock = ManualClock()
    wake = Wake(MemoryHints(), clock, EVENTS)
    waiting = asyncio.create_task(wake.wait())
    await clock.advance(POLL_S - 0.01)
    assert not waiting.done()
    await clock.advance(SETTLE_S + 0.02)
    assert waiting.done()


async def test_a_crowd_of_watches_looks_less_often_each() -> None:
    clock, hints = ManualClock(), MemoryHints()
    wake = Wake(hints, clock, EVENTS)
    crowd = [asyncio.create_task(wake.wait()) for _ in range(int(10 * LOOKS_PER_S))]
    await settle()
    await clock.advance(POLL_S + SETTLE_S)
    early = sum(waiting.done() for waiting in crowd)
    assert early <= POLL_S * LOOKS_PER_S
    await clock.advance(20.0)
    assert all(waiting.done() for waiting in crowd)
