"""What waits for an agent is bounded, ordered, and ends once."""

import asyncio

import pytest

from atoll.core.model.errors import StaleSession
from atoll.core.model.ids import AttemptId
from atoll.dispatch.usecases.outbox import (
    BeatAck,
    Decisions,
    LogAsk,
    LogStop,
    Outbox,
    Ready,
    ReportsAck,
    Resync,
    Welcome,
)
from tests.services.dispatch.values import decision


def ask(request: int) -> LogAsk:
    return LogAsk(request, AttemptId(1), rank=0, follow=False, offset=0, tail_lines=0)


async def test_the_welcome_comes_first_and_answers_before_decisions() -> None:
    outbox = Outbox(lambda: None)
    batch = Decisions((Ready(decision(1)),))
    outbox.decisions(batch)
    outbox.resync()
    outbox.reports_ack(3, ())
    outbox.beat_ack(1, 1)
    outbox.welcome(Welcome(1, 0, from_snapshot=False, live=()))
    taken = [await outbox.next() for _ in range(5)]
    assert taken == [
        Welcome(1, 0, from_snapshot=False, live=()),
        BeatAck(1, 1),
        ReportsAck(3, ()),
        Resync(),
        batch,
    ]


async def test_answers_that_nobody_takes_merge_into_one() -> None:
    outbox = Outbox(lambda: None)
    for number in range(1000):
        outbox.beat_ack(number, number)
        outbox.reports_ack(number, (AttemptId(number % 2),))
    assert await outbox.next() == BeatAck(999, 999)
    assert await outbox.next() == ReportsAck(999, (AttemptId(0), AttemptId(1)))


async def test_room_for_decisions_comes_back_when_a_batch_leaves() -> None:
    told: list[bool] = []
    outbox = Outbox(lambda: told.append(outbox.has_room))
    while outbox.has_room:
        outbox.decisions(Decisions((Ready(decision(1)),)))
    assert not told
    await outbox.next()
    assert told == [True]


async def test_a_request_that_was_not_sent_yet_is_taken_back() -> None:
    outbox = Outbox(lambda: None)
    outbox.log(ask(1))
    outbox.log(ask(2))
    outbox.log(LogStop(1))
    assert await outbox.next() == ask(2)
    outbox.log(LogStop(2))
    assert await outbox.next() == LogStop(2)


async def test_the_first_end_counts_and_wakes_whoever_waits() -> None:
    outbox = Outbox(lambda: None)
    waiting = asyncio.ensure_future(outbox.next())
    await asyncio.sleep(0)
    outbox.end(StaleSession())
    outbox.end()
    with pytest.raises(StaleSession):
        await waiting
    assert not outbox.has_room
