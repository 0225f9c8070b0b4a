"""Sends the output of runs to whoever asked for it, no faster than the session takes it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

from atoll.api.agent.v1 import agent_pb2
from atoll.core.model.errors import DomainError
from atoll.core.model.ids import AttemptId
from atoll.ports.backend import Backend
from atoll.ports.clock import Clock
from atoll.runtime import logs

log = logs.logger(__name__)

MOST_READERS: Final = 256
CHUNK_BYTES: Final = 64 << 10
MOST_QUEUED: Final = 16
"""Chunks of all readers that wait to be sent; with more, readers stop reading."""
LOOK_S: Final = 0.2
"""How often a follower looks for more."""


class Output:
    """The requests of one session."""

    def __init__(self, backend: Backend, clock: Clock, wake: Callable[[], None]) -> None:
        self._backend = backend
        self._clock = clock
        self._wake = wake
        self._readers: dict[int, asyncio.Task[None]] = {}
        self._queue: asyncio.Queue[agent_pb2.LogChunk] = asyncio.Queue(MOST_QUEUED)

    def begin(self, request: agent_pb2.LogRequest) -> None:
        """Serve a request; at most MOST_READERS at a time, the others get an error."""
        serve = self._serve if len(self._readers) < MOST_READERS else self._turn_away
        number = request.request
        task = asyncio.create_task(serve(request), name=f"output {number}")
        self._readers[number] = task
        task.add_done_callback(lambda _: self._readers.pop(number, None))

    def cancel(self, number: int) -> None:
        """Nobody reads that request any more."""
        if (task := self._readers.get(number)) is not None:
            task.cancel()

    def next_chunk(self) -> agent_pb2.LogChunk | None:
        """The next chunk to send, if there is one."""
        return None if self._queue.empty() else self._queue.get_nowait()

    async def close(self) -> None:
        """The session is over."""
        tasks = list(self._readers.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, request: agent_pb2.LogRequest) -> None:
        try:
            if request.rank >= 0:
                await self._send_rank(request, request.rank)
            else:
                await self._send_all(request)
            await self._put(agent_pb2.LogChunk(request=request.request, end=True))
        except DomainError as error:
            await self._fail(request, error.message)
        except OSError as error:
            log.warning("output cannot be read", attempt_id=request.attempt_id, exc_info=error)
            await self._fail(request, f"the output cannot be read: {error.strerror}")

    async def _turn_away(self, request: agent_pb2.LogRequest) -> None:
        await self._fail(request, f"{MOST_READERS} readers are served already; try again later")

    async def _fail(self, request: agent_pb2.LogRequest, why: str) -> None:
        await self._put(agent_pb2.LogChunk(request=request.request, end=True, error=why))

    async def _send_all(self, request: agent_pb2.LogRequest) -> None:
        ranks = self._backend.log_ranks(AttemptId(request.attempt_id))
        try:
            async with asyncio.TaskGroup() as group:
                for rank in ranks:
                    group.create_task(self._send_rank(request, rank))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _send_rank(self, request: agent_pb2.LogRequest, rank: int) -> None:
        attempt = AttemptId(request.attempt_id)
        offset = request.offset
        if request.tail_lines > 0:
            offset = await tail_offset(self._backend, attempt, rank, lines=request.tail_lines)
        async for begin, data in self._pieces(attempt, rank, offset, follow=request.follow):
            await self._put(
                agent_pb2.LogChunk(request=request.request, rank=rank, data=data, offset=begin)
            )

    async def _pieces(
        self, attempt: AttemptId, rank: int, offset: int, *, follow: bool
    ) -> AsyncIterator[tuple[int, bytes]]:
        while True:
            piece = await self._backend.read_log(attempt, rank, offset=offset, limit=CHUNK_BYTES)
            if piece.data:
                yield piece.offset, piece.data
                offset = piece.offset + len(piece.data)
            elif piece.ended or not follow:
                return
            else:
                await self._clock.sleep(LOOK_S)

    async def _put(self, chunk: agent_pb2.LogChunk) -> None:
        await self._queue.put(chunk)
        self._wake()


async def tail_offset(backend: Backend, attempt: AttemptId, rank: int, *, lines: int) -> int:
    """Where the last `lines` lines begin, as the output stands now."""
    end = (await backend.read_log(attempt, rank, offset=0, limit=0)).size
    begin, needed = end, lines
    while begin > 0:
        length = min(CHUNK_BYTES, begin)
        piece = await backend.read_log(attempt, rank, offset=begin - length, limit=length)
        # The newline at the very end closes the last line and begins none.
        data = piece.data[:-1] if begin == end and piece.data.endswith(b"\n") else piece.data
        found = data.count(b"\n")
        if found >= needed:
            return begin - length + nth_from_end(data, needed) + 1
        needed, begin = needed - found, begin - length
    return 0


def nth_from_end(data: bytes, nth: int) -> int:
    """Offset of the nth newline from the end; there are at least so many."""
    place = len(data)
    for _ in range(nth):
        place = data.rindex(b"\n", 0, place)
    return place
