"""What a session still has to say to its agent.

Bounded by how it is made, not by a limit that somebody has to check: answers of
one kind merge into one, and decisions come in a fixed number of batches. An
agent that never reads costs as much memory as one that is a moment late.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from atoll.core.model.errors import DomainError
from atoll.core.model.ids import AttemptId
from atoll.core.model.messages import Decision
from atoll.ports.store.dispatch import StartSpec

MOST_BATCHES: Final = 2
"""Batches of decisions that wait to be written; more would only be memory."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A decision as the agent gets it."""

    decision: Decision
    start: StartSpec | None = None
    """What a START runs; None for the other kinds."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Where the members of a gang are reached, by node name."""


@dataclass(frozen=True, slots=True)
class Welcome:
    """The session is open."""

    head_seq: int
    report_seq: int
    from_snapshot: bool
    live: tuple[AttemptId, ...]
    stopping: tuple[AttemptId, ...] = ()
    """Those of the live ones that were told to stop."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """Decisions in order, without a gap."""

    items: tuple[Ready, ...]


@dataclass(frozen=True, slots=True)
class BeatAck:
    """This heartbeat, and all before it, are committed."""

    number: int
    head_seq: int


@dataclass(frozen=True, slots=True)
class ReportsAck:
    """Reports up to here are dealt with; these attempts are not live."""

    report_seq: int
    stop: tuple[AttemptId, ...]


@dataclass(frozen=True, slots=True)
class Resync:
    """Send the whole inventory."""


@dataclass(frozen=True, slots=True)
class LogAsk:
    """Send the output of one task."""

    request: int
    attempt: AttemptId
    rank: int
    follow: bool
    offset: int
    tail_lines: int


@dataclass(frozen=True, slots=True)
class LogStop:
    """Send no more of it."""

    request: int


LogOrder = LogAsk | LogStop
Message = Welcome | Decisions | BeatAck | ReportsAck | Resync | LogAsk | LogStop


class Outbox:
    """Collects what is to be said; one writer takes it with `next`."""

    def __init__(self, on_room: Callable[[], None]) -> None:
        self._on_room = on_room
        """Called when a batch of decisions has left, so that the next may come."""
        self._welcome: Welcome | None = None
        self._beat: BeatAck | None = None
        self._report_seq = -1
        self._stop: set[AttemptId] = set()
        self._resync = False
        self._decisions: deque[Decisions] = deque()
        self._logs: dict[tuple[int, type[LogOrder]], LogOrder] = {}
        self._ended = False
        self._error: DomainError | None = None
        self._news = asyncio.Event()

    @property
    def has_room(self) -> bool:
        """Whether another batch of decisions may be put."""
        return len(self._decisions) < MOST_BATCHES and not self._ended

    @property
    def ended(self) -> bool:
        """Whether nothing can be said any more."""
        return self._ended

    def welcome(self, message: Welcome) -> None:
        """Open: before everything else."""
        self._welcome = message
        self._news.set()

    def decisions(self, message: Decisions) -> None:
        """Add a batch; ask `has_room` first."""
        self._decisions.append(message)
        self._news.set()

    def beat_ack(self, number: int, head_seq: int) -> None:
        """Answer a heartbeat. A newer answer takes the place of one that was not written yet."""
        self._beat = BeatAck(number, head_seq)
        self._news.set()

    def reports_ack(self, report_seq: int, stop: Iterable[AttemptId]) -> None:
        """Answer reports; merges with an answer that was not written yet."""
        self._report_seq = max(self._report_seq, report_seq)
        self._stop.update(stop)
        self._news.set()

    def resync(self) -> None:
        """Ask for the whole inventory."""
        self._resync = True
        self._news.set()

    def log(self, order: LogOrder) -> None:
        """Ask for output, or for no more of it; an order that was not written yet is taken back."""
        if isinstance(order, LogStop) and (order.request, LogAsk) in self._logs:
            del self._logs[order.request, LogAsk]
            return
        self._logs[order.request, type(order)] = order
        self._news.set()

    def end(self, error: DomainError | None = None) -> None:
        """Nothing more is said; with `error`, `next` raises it. The first end counts."""
        if not self._ended:
            self._ended, self._error = True, error
            self._news.set()

    async def next(self) -> Message | None:
        """Wait for the next message; None at the end, or the error that ended it."""
        while True:
            if self._ended:
                if self._error is not None:
                    raise self._error
                return None
            if (message := self._take()) is not None:
                return message
            self._news.clear()
            await self._news.wait()

    def _take(self) -> Message | None:
        if self._welcome is not None:
            message, self._welcome = self._welcome, None
            return message
        if self._beat is not None:
            beat, self._beat = self._beat, None
            return beat
        if self._report_seq >= 0:
            return self._take_report_ack()
        return self._take_bulk()

    def _take_report_ack(self) -> ReportsAck:
        ack = ReportsAck(self._report_seq, tuple(sorted(self._stop)))
        self._report_seq = -1
        self._stop.clear()
        return ack

    def _take_bulk(self) -> Message | None:
        if self._resync:
            self._resync = False
            return Resync()
        if self._logs:
            return self._logs.pop(next(iter(self._logs)))
        if self._decisions:
            batch = self._decisions.popleft()
            self._on_room()
            return batch
        return None
