"""Reports on their way: numbered, journalled, sent, and sent again until they are acknowledged.

What happens while an fsync runs is numbered together with the next group.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from atoll.agent import telemetry
from atoll.agent.journal import Journal
from atoll.agent.records import Acknowledged, Reported, StopWish
from atoll.agent.usecases.attempts import TERMINAL
from atoll.api.agent.v1 import agent_pb2
from atoll.core.model.ids import AttemptId, ClusterName
from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.messages import Report
from atoll.ports.backend import RunEvent
from atoll.ports.clock import Clock
from atoll.runtime import failpoints, logs
from atoll.wire.report import report_to_proto

log = logs.logger(__name__)

MOST_UNACKNOWLEDGED: Final = 20_000
"""With more, no further decisions are applied: whoever does not listen gets no more work done."""
MOST_IN_GROUP: Final = 1_000
MESSAGE_CHARACTERS: Final = 500
BEATS_STUCK: Final = 10
"""Answered heartbeats after which reports without an answer are sent again."""


class Reports:
    """The agent's reports.

    `wake` is called when there is something to send; `seen` gives the number of
    the inventory that a rejection is about.
    """

    def __init__(
        self, cluster: ClusterName, journal: Journal, clock: Clock, *, seen: Callable[[], int]
    ) -> None:
        self.wake: Callable[[], None] = lambda: None
        self._seen = seen
        self._cluster = cluster
        self._journal = journal
        self._clock = clock
        self._told: list[RunEvent] = []
        self._has_told = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._durable = journal.memory.last_report
        self._sent = 0
        self._first = 0
        self._stuck = 0
        self._roomy = asyncio.Event()
        self._roomy.set()

    @property
    def last(self) -> int:
        """Number of the last durable report."""
        return self._durable

    @property
    def unacknowledged(self) -> int:
        """Reports made and not dealt with."""
        return len(self._journal.memory.reports) + len(self._told)

    def tell(self, event: RunEvent) -> None:
        """Report an event as soon as it is durable."""
        self._told.append(event)
        self._idle.clear()
        self._has_told.set()

    async def room(self) -> None:
        """Return when not too many reports wait for an answer."""
        await self._roomy.wait()

    async def run(self) -> None:
        """Number and journal what is told, for ever; raises LogBroken."""
        while True:
            await self._has_told.wait()
            group, self._told = self._told[:MOST_IN_GROUP], self._told[MOST_IN_GROUP:]
            if not self._told:
                self._has_told.clear()
            await self._make(group)
            if not self._told:
                self._idle.set()

    async def drained(self) -> None:
        """Return when all that was told is durable."""
        await self._idle.wait()

    def resume(self, report_seq: int) -> Sequence[AttemptId]:
        """A session began whose dispatch knows reports up to here; the attempts that are over.

        Whatever was not acknowledged is sent again, be it known there: the answer that was lost
        may have said that an attempt is to be stopped.
        """
        memory = self._journal.memory
        ended = self.acknowledge(report_seq, ()) if report_seq > memory.last_report else ()
        self._sent = next(iter(memory.reports), memory.last_report + 1) - 1
        self._durable = max(self._durable, self._sent)
        return ended

    def check_progress(self) -> None:
        """A heartbeat was answered: send again what has gone without an answer for several."""
        first = next(iter(self._journal.memory.reports), 0)
        stuck = 0 < first <= self._sent and first == self._first
        self._first, self._stuck = first, self._stuck + 1 if stuck else 0
        if self._stuck >= BEATS_STUCK:
            log.warning("reports are not acknowledged; sending them again", first=first)
            self._sent, self._stuck = first - 1, 0
            self.wake()

    def next_batch(self, limit: int) -> agent_pb2.ReportBatch | None:
        """Up to `limit` durable reports that this session has not sent."""
        reports = self._journal.memory.reports
        last = min(self._durable, self._sent + limit)
        numbers = range(self._sent + 1, last + 1)
        data = [reports[number].data for number in numbers if number in reports]
        self._sent = max(self._sent, last)
        if not data:
            return None
        return agent_pb2.ReportBatch(reports=map(agent_pb2.Report.FromString, data))

    def acknowledge(self, report_seq: int, stops: Iterable[AttemptId]) -> Sequence[AttemptId]:
        """Reports up to here are dealt with; the attempts whose end is known to all now.

        `stops` are journalled as wishes in the same breath: the truth that came
        with the answer must not be lost with it.
        """
        memory = self._journal.memory
        done = memory.upto(report_seq)
        wishes = [StopWish(attempt) for attempt in stops]
        if done or wishes or report_seq > memory.last_report:
            self._journal.note([*wishes, Acknowledged(report_seq)])
        if self.unacknowledged <= MOST_UNACKNOWLEDGED:
            self._roomy.set()
        telemetry.UNACKNOWLEDGED.set(self.unacknowledged)
        return [report.attempt for report in done if report.event in TERMINAL]

    async def _make(self, group: Sequence[RunEvent]) -> None:
        first = self._journal.memory.last_report + 1
        records = [self._record(event, number) for number, event in enumerate(group, first)]
        if self.unacknowledged > MOST_UNACKNOWLEDGED:
            self._roomy.clear()
        await self._journal.append(records)
        failpoints.hit("agent.before_report")
        self._durable = max(self._durable, first + len(records) - 1)
        telemetry.count_reports(event.event for event in group)
        self.wake()

    def _record(self, event: RunEvent, number: int) -> Reported:
        report = Report(
            cluster=self._cluster,
            number=number,
            attempt=event.attempt,
            event=event.event,
            at=event.at or self._clock.now(),
            reason=event.reason,
            message=event.message[:MESSAGE_CHARACTERS],
            exit_code=event.exit_code,
            suspects=event.suspects,
            inventory_number=self._seen() if event.event is AttemptEvent.REJECTED else 0,
            generation=event.generation,
            ranks=event.ranks,
        )
        data = report_to_proto(report).SerializeToString()
        return Reported(number, event.attempt, event.event, data)
