"""Metrics, traces and log lines of dispatch."""

import logging
from collections.abc import Sequence
from typing import Final

from atoll.core.model.ids import ClusterName, attempt_name, job_of
from atoll.core.model.job import Job
from atoll.core.model.messages import Decision
from atoll.core.model.trace import job_trace
from atoll.dispatch.usecases.observer import BatchKind, RepairCause, Settled
from atoll.dispatch.usecases.outbox import Ready
from atoll.dispatch.usecases.table import SessionTable
from atoll.ports.clock import Clock
from atoll.runtime import logs, metrics, tracing

log = logs.logger(__name__)

BATCHES: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
LONG: Final = (*metrics.SECONDS, 60.0, 300.0, 1800.0, 7200.0)
NS: Final = 1_000_000_000
MOST_LOGGED: Final = 5

SESSIONS: Final = metrics.gauge("dispatch_sessions", "Agents' sessions of this replica.")
LAG: Final = metrics.gauge(
    "dispatch_lag_decisions", "Decisions that an agent has not journalled yet.", ("cluster",)
)
PUSHED: Final = metrics.counter(
    "dispatch_decisions_pushed_total", "Decisions pushed to agents.", ("kind",)
)
REPORTS: Final = metrics.counter(
    "dispatch_reports_total", "Reports of agents that were dealt with.", ("event", "result")
)
BATCH_SIZE: Final = metrics.histogram(
    "dispatch_batch_size", "Things in one transaction.", ("kind",), buckets=BATCHES
)
REPAIRS: Final = metrics.counter(
    "dispatch_repairs_total", "Reads of decisions from the store.", ("cause",)
)
REPAIRED: Final = metrics.counter(
    "dispatch_repaired_decisions_total", "Decisions read from the store.", ("cause",)
)
STREAMS_AHEAD: Final = metrics.counter(
    "dispatch_streams_ahead_total", "Streams dropped: they had what the store does not know."
)
SPECS_MISSING: Final = metrics.counter(
    "dispatch_specs_missing_total", "STARTs pushed as VOID for want of a spec."
)
ACCEPTED: Final = metrics.histogram(
    "job_accepted_seconds", "From a job's submit to its agent's acceptance.", buckets=LONG
)
REDIS_SILENT: Final = metrics.gauge(
    "dispatch_redis_silent", "1 while Redis does not answer, and decisions come from the store."
)


class Telemetry:
    """The `Observer` of a replica."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def pushed(self, items: Sequence[Ready], *, since: float) -> None:
        """Count them, trace those whose trace is kept, and log them for who looks closely."""
        for kind in {item.decision.kind for item in items}:
            PUSHED.labels(kind.value).inc(sum(item.decision.kind is kind for item in items))
        if tracing.enabled():
            now = self._clock.now()
            for item in items:
                _trace_push(item.decision, since=since, now=now)
        if log.is_enabled_for(logging.DEBUG):
            for item in items:
                _tell_push(item.decision)

    def applied(self, settled: Sequence[Settled]) -> None:
        """Count them, trace those whose trace is kept, and log them for who looks closely."""
        _count(settled, "applied")
        if tracing.enabled():
            now = self._clock.now()
            for each in settled:
                _trace_report(each, now=now)
        if log.is_enabled_for(logging.DEBUG):
            for each in settled:
                log.debug("report applied", **_fields(each))

    def accepted(self, jobs: Sequence[Job]) -> None:
        """Measure how long that took."""
        for job in jobs:
            ACCEPTED.observe(max(0.0, job.accepted_at - job.submitted_at))

    def refused(self, settled: Sequence[Settled]) -> None:
        """Count them, and log some: after a takeover there can be thousands."""
        _count(settled, "refused")
        for each in settled[:MOST_LOGGED]:
            log.warning("report refused", in_this_batch=len(settled), **_fields(each))

    def batch(self, kind: BatchKind, size: int) -> None:
        """Note its size."""
        BATCH_SIZE.labels(kind.value).observe(size)

    def repaired(self, cluster: ClusterName, cause: RepairCause, *, decisions: int) -> None:
        """Count it, by cause."""
        REPAIRS.labels(cause.value).inc()
        REPAIRED.labels(cause.value).inc(decisions)
        if decisions or cause in (RepairCause.GAP, RepairCause.POISON):
            log.info(
                "decisions read from the store", cluster=cluster, cause=cause, decisions=decisions
            )

    def stream_ahead(self, cluster: ClusterName, number: int) -> None:
        """Say it aloud: somebody writes what was never committed, or the store was restored."""
        STREAMS_AHEAD.inc()
        log.error("stream has unknown decisions: dropped", cluster=cluster, number=number)

    def spec_missing(self, cluster: ClusterName, number: int) -> None:
        """Say it aloud."""
        SPECS_MISSING.inc()
        log.error("no spec for a START: pushed as VOID", cluster=cluster, number=number)


class Gauges:
    """What is looked at now and then."""

    def __init__(self, table: SessionTable, clock: Clock) -> None:
        self._table = table
        self._clock = clock
        self._known: set[str] = set()

    async def run(self) -> None:
        """Look for ever."""
        while True:
            self.look()
            await self._clock.sleep(1.0)

    def look(self) -> None:
        """Set the gauges; a cluster that has gone has no lag here any more."""
        lags = {str(session.cluster): session.lane.lag for session in self._table}
        for gone in self._known - lags.keys():
            LAG.remove(gone)
        for cluster, lag in lags.items():
            LAG.labels(cluster).set(lag)
        self._known = set(lags)
        SESSIONS.set(len(lags))


def _count(settled: Sequence[Settled], result: str) -> None:
    for event in {each.report.event for each in settled}:
        REPORTS.labels(event.value, result).inc(sum(s.report.event is event for s in settled))


def _trace_push(decision: Decision, *, since: float, now: float) -> None:
    tracing.record(
        "dispatch.push",
        parent=decision.trace,
        start_ns=int(since * NS),
        end_ns=int(now * NS),
        attributes={
            "atoll.attempt": attempt_name(decision.attempt),
            "atoll.cluster": decision.cluster,
            "atoll.decision": decision.kind.value,
        },
    )


def _trace_report(settled: Settled, *, now: float) -> None:
    report, job = settled.report, settled.job
    if job is None:
        return
    tracing.record(
        "dispatch.report",
        parent=job_trace(job.trace, job.id),
        start_ns=int(settled.since * NS),
        end_ns=int(now * NS),
        attributes={
            "atoll.attempt": attempt_name(report.attempt),
            "atoll.cluster": report.cluster,
            "atoll.event": report.event.value,
            "atoll.job_state": job.state.value,
        },
    )


def _tell_push(decision: Decision) -> None:
    log.debug(
        "decision pushed",
        job_id=job_of(decision.attempt),
        attempt_id=decision.attempt,
        cluster=decision.cluster,
        number=decision.number,
        kind=decision.kind,
        **tracing.log_ids(decision.trace),
    )


def _fields(settled: Settled) -> dict[str, str | int | None]:
    report, job = settled.report, settled.job
    return {
        "job_id": job_of(report.attempt),
        "attempt_id": report.attempt,
        "cluster": report.cluster,
        "number": report.number,
        "reported": report.event,
        "job_state": job.state if job else None,
        **tracing.log_ids(job_trace(job.trace, job.id) if job else ""),
    }
