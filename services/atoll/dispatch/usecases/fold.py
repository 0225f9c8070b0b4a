"""Folds reports onto rows in memory, so that each row is written once however many there are."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from atoll.core.model.ids import AttemptId, ClusterName, JobId, attempt_number, job_of
from atoll.core.model.job import Attempt, Job
from atoll.core.model.lifecycle import TERMINAL_ATTEMPT, AttemptEvent
from atoll.core.model.messages import Event, Report
from atoll.core.model.outcome import apply_report

LIVE_EVENTS = frozenset({AttemptEvent.ACCEPTED, AttemptEvent.STARTED, AttemptEvent.RESIZED})
"""What an agent says of work that it still has."""


@dataclass(frozen=True, slots=True)
class Split:
    """An agent's reports against what was dealt with before."""

    repeated: tuple[Report, ...]
    fresh: tuple[Report, ...]
    """Without a gap; what follows one is left out, for the agent sends it again."""


@dataclass(slots=True)
class Fold:
    """Rows on the way through reports; `jobs` and `attempts` are looked up and replaced."""

    jobs: dict[JobId, Job]
    attempts: dict[AttemptId, Attempt]
    now: float
    moved: set[AttemptId] = field(default_factory=set)
    events: list[Event] = field(default_factory=list)
    applied: list[Report] = field(default_factory=list)
    refused: list[Report] = field(default_factory=list)

    def take(self, reports: Iterable[Report]) -> None:
        """Apply reports in order; the lifecycle's table decides, and what it refuses is kept."""
        for report in reports:
            (self.applied if self._apply(report) else self.refused).append(report)

    def ended(self) -> list[AttemptId]:
        """Attempts that reports have brought to their end."""
        return sorted(a for a in self.moved if self.attempts[a].state in TERMINAL_ATTEMPT)

    def resized(self) -> list[Attempt]:
        """Live attempts that reports have given another set of tasks."""
        changed = {r.attempt for r in self.applied if r.event is AttemptEvent.RESIZED}
        live = changed - set(self.ended())
        return [self.attempts[attempt] for attempt in sorted(live)]

    def accepted(self) -> list[Job]:
        """Jobs that were taken for the first time: all attempts before this one were undone."""
        attempts = [self.attempts[a] for a in sorted(self.moved)]
        fresh = [a for a in attempts if a.accepted_at == self.now]
        jobs = [(a, self.jobs[job_of(a.id)]) for a in fresh]
        return [job for a, job in jobs if attempt_number(a.id) == job.rollbacks + 1]

    def live(self, attempt: AttemptId, cluster: ClusterName) -> bool:
        """Whether the attempt may go on there."""
        row = self.attempts.get(attempt)
        return row is not None and row.cluster == cluster and row.state not in TERMINAL_ATTEMPT

    def _apply(self, report: Report) -> bool:
        job = self.jobs.get(job_of(report.attempt))
        attempt = self.attempts.get(report.attempt)
        if job is None or attempt is None or attempt.cluster != report.cluster:
            return False
        outcome = apply_report(job, attempt, report, now=self.now)
        if outcome is None:
            return False
        self.jobs[job.id] = outcome.job
        self.attempts[attempt.id] = outcome.attempt
        self.moved.add(attempt.id)
        if outcome.event is not None:
            self.events.append(
                Event(
                    job=job.id,
                    queue=job.queue,
                    event=outcome.event,
                    state=outcome.job.state,
                    at=self.now,
                    attempt=attempt.id,
                    cluster=attempt.cluster,
                    reason=outcome.job.reason if outcome.job.attempt is None else None,
                    message=outcome.attempt.message,
                )
            )
        return True


def split(reports: Sequence[Report], report_seq: int) -> Split:
    """Sort out what is repeated and what is new, up to the first gap."""
    repeated, fresh = [], []
    expected = report_seq + 1
    for report in reports:
        if report.number < expected:
            repeated.append(report)
        elif report.number == expected:
            fresh.append(report)
            expected += 1
        else:
            break
    return Split(tuple(repeated), tuple(fresh))


def to_stop(parts: Split, fold: Fold, cluster: ClusterName) -> set[AttemptId]:
    """Attempts that the agent believes in and that are not live: the truth, told back.

    Those of refused reports, and those of repeated ones that spoke of work that goes on: the
    answer to their first time may have been lost. What the agent itself says is over needs none.
    """
    refused = set(map(id, fold.refused))
    said = (*parts.repeated, *parts.fresh)
    over = {r.attempt for r in said if r.event not in LIVE_EVENTS}
    doubtful = {r.attempt for r in parts.repeated if r.event in LIVE_EVENTS} - over
    doubtful |= {r.attempt for r in parts.fresh if id(r) in refused}
    return {attempt for attempt in doubtful if not fold.live(attempt, cluster)}


def attempts_in(parts: Mapping[ClusterName, Split]) -> set[AttemptId]:
    """All attempts that the reports speak of and whose truth matters."""
    fresh = {r.attempt for part in parts.values() for r in part.fresh}
    return fresh | {
        r.attempt for part in parts.values() for r in part.repeated if r.event in LIVE_EVENTS
    }
