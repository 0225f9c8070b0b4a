"""Output reaches its reader whole, however slow the reader and however small the buffer."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.adapters.memory.clock import settle
from atoll.core.model.errors import NotFound, Unavailable
from atoll.core.model.ids import AttemptId
from atoll.dispatch.usecases.desk import LogDesk
from atoll.dispatch.usecases.outbox import LogAsk, LogStop, Outbox
from atoll.dispatch.usecases.relay import Chunk, Piece, Relay, Wanted
from tests.services.dispatch.values import CLUSTER

WANTED = Wanted(AttemptId(1), ranks=(0,))


class ScriptedAgent:
    """Sends files in pieces of `step` bytes, and obeys what it is told."""

    def __init__(self, desk: LogDesk, outbox: Outbox, *, files: list[bytes], step: int) -> None:
        self._desk = desk
        self._outbox = outbox
        self._files = files
        self._step = step
        self._open: dict[int, tuple[int, int]] = {}

    async def hear(self) -> None:
        """Take in what it is told, for ever."""
        while (order := await self._outbox.next()) is not None:
            if isinstance(order, LogAsk):
                self._open[order.request] = (order.rank, order.offset)
            elif isinstance(order, LogStop):
                self._open.pop(order.request, None)

    def send(self) -> None:
        """One piece of every open request."""
        for request, (rank, offset) in list(self._open.items()):
            data = self._files[rank][offset : offset + self._step]
            end = offset + len(data) >= len(self._files[rank])
            self._desk.take(Chunk(request, offset, data, end=end))
            if end:
                del self._open[request]
            else:
                self._open[request] = (rank, offset + len(data))


@given(
    files=st.lists(st.binary(max_size=60), min_size=1, max_size=4),
    step=st.integers(1, 9),
    most_bytes=st.integers(1, 30),
    late=st.integers(0, 4),
)
async def test_every_byte_once_and_in_order(
    files: list[bytes], step: int, most_bytes: int, late: int
) -> None:
    outbox = Outbox(lambda: None)
    desk = LogDesk(CLUSTER, outbox)
    agent = ScriptedAgent(desk, outbox, files=files, step=step)
    wanted = Wanted(AttemptId(1), ranks=tuple(range(len(files))))
    relay = Relay(desk, wanted, most_bytes=most_bytes)
    got = [b""] * len(files)
    hearing = asyncio.ensure_future(agent.hear())
    while (piece := await _next(relay, agent, late)) is not None:
        assert relay.bytes_waiting <= most_bytes + step
        assert piece.offset == len(got[piece.rank])
        got[piece.rank] += piece.data
    outbox.end()
    await hearing
    assert got == files


async def _next(relay: Relay, agent: ScriptedAgent, late: int) -> Piece | None:
    """The reader's next piece, after the agent had `late` turns before it."""
    for _ in range(late):
        await settle()
        agent.send()
    reading = asyncio.ensure_future(relay.next())
    while not reading.done():
        await settle()
        agent.send()
    return await reading


async def test_a_slow_reader_pauses_the_agent_and_goes_on_where_it_stopped() -> None:
    outbox = Outbox(lambda: None)
    desk = LogDesk(CLUSTER, outbox)
    relay = Relay(desk, WANTED, most_bytes=4)
    assert await outbox.next() == LogAsk(1, AttemptId(1), 0, follow=False, offset=0, tail_lines=0)
    desk.take(Chunk(1, 0, b"hello"))
    assert await outbox.next() == LogStop(1)
    desk.take(Chunk(1, 5, b" lost on the way"))
    assert await relay.next() == Piece(0, 0, b"hello")
    assert await outbox.next() == LogAsk(2, AttemptId(1), 0, follow=False, offset=5, tail_lines=0)


async def test_what_came_before_a_failure_is_still_read() -> None:
    outbox = Outbox(lambda: None)
    desk = LogDesk(CLUSTER, outbox)
    relay = Relay(desk, WANTED, most_bytes=100)
    desk.relays.add(relay)
    desk.take(Chunk(1, 0, b"x"))
    desk.fail()
    assert await relay.next() == Piece(0, 0, b"x")
    with pytest.raises(Unavailable):
        await relay.next()


async def test_an_agent_that_cannot_read_says_why() -> None:
    desk = LogDesk(CLUSTER, Outbox(lambda: None))
    relay = Relay(desk, WANTED, most_bytes=100)
    desk.take(Chunk(1, 0, b"", error="no such output"))
    with pytest.raises(NotFound, match="no such output"):
        await relay.next()
