"""What a journal amounts to: the state that its records leave behind, and the fewest that do."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import assert_never

from atoll.agent.records import (
    Acknowledged,
    Decided,
    Identity,
    InventoryNumber,
    Live,
    Prefix,
    Record,
    Reported,
    Sizing,
    StopWish,
    TakenOver,
)
from atoll.agent.usecases.attempts import TERMINAL
from atoll.core.model.ids import AttemptId
from atoll.core.model.lifecycle import AttemptEvent, StopCause
from atoll.core.model.messages import DecisionKind


@dataclass(slots=True)
class Remembered:
    """An attempt whose end has not been reported and acknowledged."""

    start: bytes = b""
    """Its START as it came; empty when it is not needed any more, or never came."""
    started: bool = False
    stop: StopCause | None = None
    ended: bool = False
    resize: bytes = b""
    """The last RESIZE as it came, until it is answered."""


@dataclass(slots=True)
class Memory:
    """The state that follows from a journal."""

    instance: str = ""
    cluster: str = ""
    applied: int | None = None
    """The prefix; None: the journal is new, and no session was opened with it."""
    attempts: dict[AttemptId, Remembered] = field(default_factory=dict)
    reports: dict[int, Reported] = field(default_factory=dict)
    """Not acknowledged, in the order of their numbers."""
    last_report: int = 0
    inventory_number: int = 0

    def apply(self, record: Record) -> None:  # noqa: C901 - one case per kind of record
        """Take one record in."""
        match record:
            case Identity(instance, cluster):
                self.instance, self.cluster = instance, cluster
            case Decided():
                self._decide(record)
            case Reported():
                self._report(record)
            case Acknowledged(number):
                self._acknowledge(number)
            case StopWish(attempt):
                self._of(attempt).stop = StopCause.NONE
            case TakenOver(head, live):
                self._take_over(head, live)
            case Live(attempt, started, stop, data):
                self.attempts[attempt] = Remembered(data, started, stop)
            case Sizing(attempt, data):
                self._of(attempt).resize = data
            case Prefix(number):
                self.applied = number
            case InventoryNumber(number):
                self.inventory_number = number
            case _:
                assert_never(record)

    def records(self) -> Iterator[Record]:
        """The fewest records that leave the same state behind."""
        yield Identity(self.instance, self.cluster)
        if self.applied is not None:
            yield Prefix(self.applied)
        for attempt, what in self.attempts.items():
            yield Live(attempt, started=what.started, stop=what.stop, data=what.start)
            if what.resize:
                yield Sizing(attempt, what.resize)
        # Its number goes on where it stood, even when nothing waits for an answer.
        yield Acknowledged(next(iter(self.reports), self.last_report + 1) - 1)
        yield from self.reports.values()
        yield InventoryNumber(self.inventory_number)

    def upto(self, number: int) -> list[Reported]:
        """The unacknowledged reports up to `number`."""
        return list(takewhile(lambda report: report.number <= number, self.reports.values()))

    def _decide(self, record: Decided) -> None:
        self.applied = record.number
        match record.kind:
            case DecisionKind.START:
                # A STOP that came before stays; the START is remembered to be refused.
                self.attempts.setdefault(record.attempt, Remembered(record.data))
            case DecisionKind.STOP:
                self._of(record.attempt).stop = StopCause(record.data.decode())
            case DecisionKind.RESIZE:
                self._of(record.attempt).resize = record.data
            case DecisionKind.VOID:
                pass
            case _:
                assert_never(record.kind)

    def _report(self, record: Reported) -> None:
        self.reports[record.number] = record
        self.last_report = record.number
        what = self._of(record.attempt)
        if record.event is AttemptEvent.ACCEPTED:
            return
        if record.event is AttemptEvent.RESIZED:
            what.resize = b""
            return
        what.start = b""
        what.started = True
        what.ended = what.ended or record.event in TERMINAL

    def _acknowledge(self, number: int) -> None:
        for report in self.upto(number):
            del self.reports[report.number]
            if report.event in TERMINAL:
                self.attempts.pop(report.attempt, None)
        self.last_report = max(self.last_report, number)

    def _take_over(self, head: int, live: tuple[AttemptId, ...]) -> None:
        self.applied = head
        wanted = set(live)
        for attempt, what in self.attempts.items():
            if attempt not in wanted and what.stop is None:
                what.stop = StopCause.NONE
        for attempt in live:
            self.attempts.setdefault(attempt, Remembered(started=True))

    def _of(self, attempt: AttemptId) -> Remembered:
        return self.attempts.setdefault(attempt, Remembered())
