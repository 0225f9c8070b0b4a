"""Brings the output of a run from its agent to one reader, no faster than the reader takes it.

The agent's stream carries everything of its cluster, so it cannot be left unread
for one slow reader. Instead the agent is told to stop, and is asked again from
where it stopped once the reader has caught up.
"""

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from atoll.core.model.errors import DomainError, ErrorCode, NotFound
from atoll.core.model.ids import AttemptId
from atoll.dispatch.usecases.outbox import LogAsk, LogStop


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a reader asks for."""

    attempt: AttemptId
    ranks: tuple[int, ...]
    follow: bool = False
    offset: int = 0
    tail_lines: int = 0
    """Only the last lines; 0: all."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of one task's output; `offset` is where it begins."""

    rank: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece as the agent sends it."""

    request: int
    offset: int
    data: bytes
    end: bool = False
    error: str = ""


class Desk(Protocol):
    """Where relays ask their agent."""

    def ask(self, relay: "Relay", rank: int) -> int:
        """A number for a new request; chunks under it go to `relay`."""
        ...

    def send(self, order: LogAsk | LogStop) -> None:
        """Tell the agent."""
        ...

    def forget(self, request: int) -> None:
        """Chunks of this request are dropped from now on."""
        ...


@dataclass(slots=True)
class _Source:
    offset: int
    tail_lines: int
    request: int | None = None
    """None: paused, or ended."""
    ended: bool = False


class Relay:
    """One reader's output. Holds at most `most_bytes`, and the chunk that went over it."""

    def __init__(self, desk: Desk, wanted: Wanted, *, most_bytes: int) -> None:
        self._desk = desk
        self._wanted = wanted
        self._most_bytes = most_bytes
        self._sources = {r: _Source(wanted.offset, wanted.tail_lines) for r in wanted.ranks}
        self._pieces: deque[Piece] = deque()
        self.bytes_waiting = 0
        self._error: DomainError | None = None
        self._news = asyncio.Event()
        self._resume()

    def take(self, rank: int, chunk: Chunk) -> None:
        """A chunk has come from the agent."""
        source = self._sources[rank]
        if chunk.error:
            self.fail(NotFound(chunk.error, code=ErrorCode.ATTEMPT_NOT_FOUND))
        if chunk.data:
            self._pieces.append(Piece(rank, chunk.offset, chunk.data))
            self.bytes_waiting += len(chunk.data)
            source.offset, source.tail_lines = chunk.offset + len(chunk.data), 0
        if chunk.end:
            source.ended = True
            self._desk.forget(chunk.request)
            source.request = None
        if self.bytes_waiting > self._most_bytes:
            self._pause()
        self._news.set()

    def fail(self, error: DomainError) -> None:
        """Nothing more will come."""
        self._error = self._error or error
        self._news.set()

    async def next(self) -> Piece | None:
        """The next piece; None at the end. Raises what `fail` was told, after what came before."""
        while not self._pieces:
            if self._error is not None:
                raise self._error
            if all(source.ended for source in self._sources.values()):
                return None
            self._news.clear()
            await self._news.wait()
        piece = self._pieces.popleft()
        self.bytes_waiting -= len(piece.data)
        if self.bytes_waiting <= self._most_bytes // 2:
            self._resume()
        return piece

    def close(self) -> None:
        """The reader has gone."""
        self._pause()

    def _pause(self) -> None:
        for source in self._sources.values():
            if source.request is not None:
                self._desk.forget(source.request)
                self._desk.send(LogStop(source.request))
                source.request = None

    def _resume(self) -> None:
        for rank, source in self._sources.items():
            if source.request is None and not source.ended:
                source.request = self._desk.ask(self, rank)
                self._desk.send(
                    LogAsk(
                        request=source.request,
                        attempt=self._wanted.attempt,
                        rank=rank,
                        follow=self._wanted.follow,
                        offset=source.offset,
                        tail_lines=source.tail_lines,
                    )
                )
