"""What the agent measures of itself."""

import logging
from collections.abc import Iterable
from typing import Final

from atoll.core.model.ids import attempt_name, job_of
from atoll.core.model.lifecycle import AttemptEvent
from atoll.ports.backend import Refusal, RunEvent, StartOrder
from atoll.runtime import logs, metrics, tracing

log = logs.logger(__name__)

CONNECTED: Final = metrics.gauge(
    "agent_session_connected", "1 while a session with dispatch is open."
)
LEASED: Final = metrics.gauge(
    "agent_lease_valid", "1 while the session lease lets this agent start work."
)
SESSIONS: Final = metrics.counter(
    "agent_sessions_total", "Sessions that ended, by what ended them.", ("cause",)
)
DECISIONS: Final = metrics.counter(
    "agent_decisions_total", "Decisions journalled, by kind.", ("kind",)
)
REPORTS: Final = metrics.counter("agent_reports_total", "Reports made, by event.", ("event",))
UNACKNOWLEDGED: Final = metrics.gauge(
    "agent_reports_unacknowledged", "Reports made that dispatch has not dealt with."
)
RUNNING: Final = metrics.gauge("agent_attempts_running", "Attempts that run.")
APPLIED: Final = metrics.gauge("agent_applied_seq", "Number of the last decision journalled.")
BIND: Final = metrics.histogram(
    "agent_bind_seconds", "From a decision's turn until the backend has started it."
)
JOURNAL: Final = metrics.gauge("agent_journal_bytes", "Size of the journal.")

_COUNT_REPORT: Final = {event: REPORTS.labels(event.value) for event in AttemptEvent}


def count_reports(events: Iterable[AttemptEvent]) -> None:
    """Count reports that were made."""
    for event in events:
        _COUNT_REPORT[event].inc()


def trace_start(order: StartOrder, *, begun: float, ended: float, error: str = "") -> None:
    """The span of a binding; wall times in seconds."""
    _record("agent.start", order, begun=begun, ended=ended, error=error)


def trace_run(order: StartOrder, event: RunEvent, *, begun: float, ended: float) -> None:
    """The span of a run; wall times in seconds."""
    failed = event.event is not AttemptEvent.FINISHED or event.exit_code != 0
    error = (event.message or event.event.value) if failed else ""
    _record("agent.run", order, begun=begun, ended=ended, error=error)


def tell_refusal(order: StartOrder, refusal: Refusal) -> None:
    """A START that this cluster cannot honour."""
    log.info(
        "start refused",
        **_ids(order),
        reason=refusal.reason,
        why=refusal.message,
        suspects=list(refusal.suspects),
    )


def tell_started(order: StartOrder) -> None:
    """For who looks closely."""
    if log.is_enabled_for(logging.DEBUG):
        log.debug("started", **_ids(order))


def tell_event(event: RunEvent) -> None:
    """What the backend says of a run, for who looks closely."""
    if log.is_enabled_for(logging.DEBUG):
        log.debug(
            "run told of",
            job_id=job_of(event.attempt),
            attempt_id=event.attempt,
            told=event.event,
            exit_code=event.exit_code,
        )


def _ids(order: StartOrder) -> dict[str, str | int]:
    return {
        "job_id": job_of(order.attempt),
        "attempt_id": order.attempt,
        "cluster": order.cluster,
        **tracing.log_ids(order.trace),
    }


def _record(name: str, order: StartOrder, *, begun: float, ended: float, error: str) -> None:
    if tracing.sampled(order.trace):
        tracing.record(
            name,
            parent=order.trace,
            start_ns=int(begun * 1e9),
            end_ns=int(max(begun, ended) * 1e9),
            attributes={
                "atoll.attempt": attempt_name(order.attempt),
                "atoll.cluster": order.cluster,
            },
            error=error,
        )
