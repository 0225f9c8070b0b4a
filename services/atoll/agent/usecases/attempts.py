"""What an agent knows of its attempts: decisions and events in, instructions out.

Every attempt gets one terminal report, and none is started that was stopped, or
that may have been started before. Whoever carries the instructions out may be
slow, or die and begin again with `restore`: nothing here waits.
"""

import enum
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from atoll.core.model.ids import AttemptId
from atoll.core.model.lifecycle import AttemptEvent, StopCause
from atoll.core.model.reason import ReasonCode
from atoll.ports.backend import ResizeOrder, RunEvent, StartOrder, StopOrder

TERMINAL: Final = frozenset({AttemptEvent.FINISHED, AttemptEvent.STOPPED, AttemptEvent.REJECTED})


class Phase(enum.Enum):
    """How far an attempt has come here."""

    WAITING = enum.auto()
    """Journalled; its turn has not come, or there is no lease to start under."""
    BINDING = enum.auto()
    RUNNING = enum.auto()
    STOPPING = enum.auto()
    """The backend makes sure that it is not running and never will."""
    ENDED = enum.auto()
    """Its terminal report is made, and not acknowledged yet."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the journal has of an attempt whose end is not acknowledged."""

    order: StartOrder | None
    """None: it was started, or is only known by a STOP."""
    started: bool
    """It was started, or may have been by somebody else: never start it again."""
    stop: StopCause | None = None
    """A STOP came."""
    ended: bool = False
    """Its terminal report is made."""
    resize: ResizeOrder | None = None
    """A RESIZE came, and was not answered."""


@dataclass(frozen=True, slots=True)
class Halt:
    """Tell the backend to stop an attempt."""

    order: StopOrder


@dataclass(frozen=True, slots=True)
class Reshape:
    """Tell the backend to change what runs of an attempt."""

    order: ResizeOrder


@dataclass(frozen=True, slots=True)
class Tell:
    """Report an event."""

    event: RunEvent


@dataclass(frozen=True, slots=True)
class Forget:
    """Tell the backend that nobody will ask for this attempt's end again."""

    attempt: AttemptId


Instruction = Halt | Reshape | Tell | Forget


@dataclass(slots=True)
class _Tracked:
    phase: Phase
    order: StartOrder | None = None
    resize: ResizeOrder | None = None
    """Waits until the attempt runs."""


class Attempts:
    """The table of all attempts that are not over, in memory."""

    def __init__(self) -> None:
        self._tracked: dict[AttemptId, _Tracked] = {}
        self._waiting: deque[AttemptId] = deque()
        self._strangers: dict[AttemptId, RunEvent] = {}
        self._running = 0

    @property
    def running(self) -> int:
        """Attempts that run and are not being stopped."""
        return self._running

    def phase(self, attempt: AttemptId) -> Phase | None:
        """How far an attempt has come; None when it is not tracked."""
        tracked = self._tracked.get(attempt)
        return None if tracked is None else tracked.phase

    def restore(
        self, known: Mapping[AttemptId, Known], found: Iterable[RunEvent]
    ) -> list[Instruction]:
        """Begin with what the journal knows and the backend found.

        Runs that the journal does not know are left alone until a START claims them, `take_over`
        lists them, or `settle` says that no such thing will happen.
        """
        events = {event.attempt: event for event in found}
        self._strangers = {a: event for a, event in events.items() if a not in known}
        made: list[Instruction] = []
        for attempt, what in known.items():
            event = events.get(attempt)
            if event is not None and event.event is AttemptEvent.ACCEPTED:
                # Given up already, it must not come to life late; else it is simply started.
                given_up = what.started and what.stop is None
                what, event = (replace(what, stop=StopCause.NONE) if given_up else what), None
            made += self._restore_one(attempt, what, event)
        return made

    def start(self, order: StartOrder) -> list[Instruction]:
        """A START was journalled. It waits for its turn, unless a STOP was here before it."""
        attempt = order.attempt
        if attempt in self._tracked:
            return []
        stranger = self._strangers.pop(attempt, None)
        if stranger is not None and stranger.event is not AttemptEvent.ACCEPTED:
            self._track(attempt, Phase.BINDING)
            return self.observe(stranger)
        self._track(attempt, Phase.WAITING, order)
        self._waiting.append(attempt)
        return []

    def stop(self, attempt: AttemptId, cause: StopCause) -> list[Instruction]:
        """A STOP was journalled. An attempt never heard of is remembered until it is answered."""
        tracked = self._tracked.get(attempt) or self._track(attempt, Phase.WAITING)
        self._strangers.pop(attempt, None)
        if tracked.phase in (Phase.STOPPING, Phase.ENDED):
            return []
        self._move(tracked, Phase.STOPPING)
        tracked.order = None
        return [Halt(StopOrder(attempt, cause))]

    def resize(self, order: ResizeOrder) -> list[Instruction]:
        """A RESIZE was journalled; an attempt that ends, or is not here, is answered by its end."""
        tracked = self._tracked.get(order.attempt)
        if tracked is None:
            return []
        if tracked.phase is Phase.RUNNING:
            return [Reshape(order)]
        tracked.resize = order
        return []

    def stop_all(self) -> list[Instruction]:
        """The cluster was forgotten: whatever runs is to stop."""
        made: list[Instruction] = []
        for attempt in [*self._tracked, *self._strangers]:
            made += self.stop(attempt, StopCause.NONE)
        return made

    def take_over(self, live: Iterable[AttemptId]) -> list[Instruction]:
        """The live attempts of the cluster, in place of the decisions so far.

        A live attempt that is unknown here may have been started by another agent:
        it is given up, not started.
        """
        wanted = set(live)
        made: list[Instruction] = []
        for attempt in sorted(wanted - self._tracked.keys()):
            made += self._take(attempt)
        for attempt in [a for a in self._tracked if a not in wanted]:
            made += self.stop(attempt, StopCause.NONE)
        return made + self.settle()

    def settle(self) -> list[Instruction]:
        """Stop the runs that nobody has claimed: the prefix is whole now."""
        strangers, self._strangers = self._strangers, {}
        made: list[Instruction] = []
        for attempt, event in strangers.items():
            if event.event in TERMINAL:
                made.append(Forget(attempt))
            else:
                made += self.stop(attempt, StopCause.NONE)
        return made

    def due(self) -> StartOrder | None:
        """The next START whose turn it is; it counts as binding from now on."""
        while self._waiting:
            attempt = self._waiting.popleft()
            tracked = self._tracked.get(attempt)
            if tracked is not None and tracked.phase is Phase.WAITING and tracked.order is not None:
                self._move(tracked, Phase.BINDING)
                return tracked.order
        return None

    def put_back(self, attempt: AttemptId) -> None:
        """It could not begin without a lease: it is the next one again."""
        tracked = self._tracked.get(attempt)
        if tracked is not None and tracked.phase is Phase.BINDING:
            self._move(tracked, Phase.WAITING)
            self._waiting.appendleft(attempt)

    def observe(self, event: RunEvent) -> list[Instruction]:
        """An event of the backend, or ACCEPTED or REJECTED from whoever binds."""
        tracked = self._tracked.get(event.attempt)
        if tracked is None:
            return self._observe_stranger(event)
        if event.event in TERMINAL:
            return self._end(tracked, event)
        if event.event is AttemptEvent.RESIZED:
            return [Tell(event)] if tracked.phase is Phase.RUNNING else []
        if tracked.phase is not Phase.BINDING:
            return []  # stopping: what comes next is its end
        if event.event is not AttemptEvent.STARTED:
            return [Tell(event)]
        return [Tell(event), *self._run(tracked)]

    def acknowledged(self, attempt: AttemptId) -> list[Instruction]:
        """Its terminal report is dealt with, and its START is below the prefix."""
        tracked = self._tracked.get(attempt)
        if tracked is None or tracked.phase is not Phase.ENDED:
            return []
        del self._tracked[attempt]
        return [Forget(attempt)]

    def _restore_one(
        self, attempt: AttemptId, what: Known, event: RunEvent | None
    ) -> list[Instruction]:
        fresh = event is None and not (what.started or what.ended) and what.stop is None
        if fresh and what.order is not None:
            return self.start(what.order)
        tracked = self._track(attempt, Phase.ENDED if what.ended else Phase.BINDING)
        if what.ended:
            return []
        if event is not None and event.event in TERMINAL:
            return self._end(tracked, event)
        made: list[Instruction] = []
        tracked.resize = what.resize
        if event is not None:
            made += [] if what.started else [Tell(event)]
            made += self._run(tracked)
        if what.stop is not None:
            return made + self.stop(attempt, what.stop)
        return made if event is not None else self._end(tracked, _unknown_end(attempt))

    def _run(self, tracked: _Tracked) -> list[Instruction]:
        self._move(tracked, Phase.RUNNING)
        tracked.order = None
        order, tracked.resize = tracked.resize, None
        return [] if order is None else [Reshape(order)]

    def _take(self, attempt: AttemptId) -> list[Instruction]:
        tracked = self._track(attempt, Phase.BINDING)
        stranger = self._strangers.pop(attempt, None)
        if stranger is None:
            return self._end(tracked, _unknown_end(attempt))
        if stranger.event is AttemptEvent.ACCEPTED:
            return self.stop(attempt, StopCause.NONE)
        return self.observe(stranger)

    def _observe_stranger(self, event: RunEvent) -> list[Instruction]:
        if event.attempt in self._strangers:
            self._strangers[event.attempt] = event
            return []
        return [Forget(event.attempt)] if event.event in TERMINAL else []

    def _end(self, tracked: _Tracked, event: RunEvent) -> list[Instruction]:
        if tracked.phase is Phase.ENDED:
            return []
        self._move(tracked, Phase.ENDED)
        tracked.order = None
        return [Tell(event)]

    def _track(self, attempt: AttemptId, phase: Phase, order: StartOrder | None = None) -> _Tracked:
        tracked = self._tracked[attempt] = _Tracked(phase, order)
        return tracked

    def _move(self, tracked: _Tracked, phase: Phase) -> None:
        self._running += (phase is Phase.RUNNING) - (tracked.phase is Phase.RUNNING)
        tracked.phase = phase


def _unknown_end(attempt: AttemptId) -> RunEvent:
    return RunEvent(
        attempt,
        AttemptEvent.FINISHED,
        reason=ReasonCode.EXIT_UNKNOWN,
        message="it was started, and nothing is left of it to say how it ended",
    )
