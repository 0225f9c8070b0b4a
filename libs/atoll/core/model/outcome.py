"""What the end of an attempt means for its job: the one place where that is decided."""

from dataclasses import dataclass, replace
from typing import assert_never

from atoll.core.model.job import Attempt, Job
from atoll.core.model.lifecycle import (
    TERMINAL_ATTEMPT,
    AttemptEvent,
    AttemptState,
    JobEvent,
    JobState,
    JobWish,
    StopCause,
    next_attempt_state,
    next_job_state,
)
from atoll.core.model.messages import Report
from atoll.core.model.reason import ReasonCode


@dataclass(frozen=True, slots=True)
class Outcome:
    """The rows after a report, and the job's move if it made one."""

    attempt: Attempt
    job: Job
    event: JobEvent | None


def apply_report(job: Job, attempt: Attempt, report: Report, *, now: float) -> Outcome | None:
    """The rows after `report`; None when the lifecycle does not allow it.

    `now` is database time in unix seconds; the agent's own clock is only shown, never used.
    """
    state = next_attempt_state(attempt.state, report.event)
    if state is None or job.attempt != attempt.id:
        return None
    if report.event is AttemptEvent.RESIZED:
        return _resized(job, attempt, report)
    moved = _moved_attempt(attempt, report, state=state, now=now)
    event = job_event(job, moved)
    return Outcome(moved, _moved_job(job, moved, event, now=now), event)


def _resized(job: Job, attempt: Attempt, report: Report) -> Outcome | None:
    # The answer to an older change of size says nothing of what is wanted now.
    if report.generation != attempt.generation or attempt.resized == attempt.generation:
        return None
    ranks = frozenset(report.ranks)
    kept = tuple(task for task in attempt.tasks if task.rank in ranks)
    return Outcome(replace(attempt, tasks=kept, resized=attempt.generation), job, None)


def job_event(job: Job, attempt: Attempt) -> JobEvent | None:
    """What an attempt's new state means for its job; None: nothing yet."""
    match attempt.state:
        case AttemptState.ASSIGNED | AttemptState.ACCEPTED:
            return None
        case AttemptState.RUNNING:
            return JobEvent.STARTED if job.state is JobState.ASSIGNED else None
        case AttemptState.FINISHED:
            return _finished(job, attempt)
        case AttemptState.REJECTED | AttemptState.VOID:
            return _unless_cancelled(job, JobEvent.ROLLED_BACK)
        case AttemptState.STOPPED:
            return _stopped(job, attempt)
        case AttemptState.LOST:
            return _unless_cancelled(job, JobEvent.REQUEUED)
        case _:
            assert_never(attempt.state)


def _finished(job: Job, attempt: Attempt) -> JobEvent:
    # Completed work wins, even over a cancel that was on its way.
    if attempt.exit_code == 0:
        return JobEvent.SUCCEEDED
    if job.wish is JobWish.CANCEL:
        return JobEvent.CANCELLED
    may_retry = attempt.reason is not ReasonCode.TIME_LIMIT and job.failures < job.spec.retries
    return JobEvent.RETRIED if may_retry else JobEvent.FAILED


def _stopped(job: Job, attempt: Attempt) -> JobEvent:
    # A start that was revoked never counted; everything else that ran queues again.
    revoked = attempt.cause is StopCause.BIND_DEADLINE and job.state is JobState.ASSIGNED
    return _unless_cancelled(job, JobEvent.ROLLED_BACK if revoked else JobEvent.REQUEUED)


def _unless_cancelled(job: Job, event: JobEvent) -> JobEvent:
    return JobEvent.CANCELLED if job.wish is JobWish.CANCEL else event


def _moved_attempt(attempt: Attempt, report: Report, *, state: AttemptState, now: float) -> Attempt:
    ended = state in TERMINAL_ATTEMPT
    return replace(
        attempt,
        state=state,
        reason=report.reason or attempt.reason,
        message=report.message or attempt.message,
        exit_code=report.exit_code if report.exit_code is not None else attempt.exit_code,
        accepted_at=attempt.accepted_at or (0.0 if _never_accepted(report) else now),
        started_at=attempt.started_at or (now if _has_started(report) else 0.0),
        ended_at=now if ended else 0.0,
    )


def _never_accepted(report: Report) -> bool:
    return report.event in (AttemptEvent.REJECTED, AttemptEvent.VOIDED, AttemptEvent.LOST)


def _has_started(report: Report) -> bool:
    return report.event in (AttemptEvent.STARTED, AttemptEvent.FINISHED)


def _moved_job(job: Job, attempt: Attempt, event: JobEvent | None, *, now: float) -> Job:
    # One replace each: a job has many fields, and this runs for every report.
    accepted_at = attempt.accepted_at or job.accepted_at
    started_at = attempt.started_at or job.started_at
    if event is None:
        return replace(job, accepted_at=accepted_at, started_at=started_at)
    state = next_job_state(job.state, event)
    if state is None:
        raise AssertionError(f"{job.state} cannot take {event}")
    if attempt.state is AttemptState.RUNNING:
        return replace(job, state=state, accepted_at=accepted_at, started_at=started_at)
    final = event in (JobEvent.SUCCEEDED, JobEvent.FAILED, JobEvent.CANCELLED)
    failed = event in (JobEvent.FAILED, JobEvent.RETRIED)
    return replace(
        job,
        state=state,
        accepted_at=accepted_at,
        started_at=started_at,
        attempt=None,
        reason=_job_reason(attempt, event),
        message=attempt.message,
        exit_code=attempt.exit_code,
        failures=job.failures + failed,
        rollbacks=job.rollbacks + (event is JobEvent.ROLLED_BACK),
        preemptions=job.preemptions + _was_preempted(attempt, event),
        ended_at=now if final else 0.0,
    )


def _was_preempted(attempt: Attempt, event: JobEvent) -> bool:
    others = (StopCause.PREEMPT, StopCause.BOOKING)
    return event is JobEvent.REQUEUED and attempt.cause in others


def _job_reason(attempt: Attempt, event: JobEvent) -> ReasonCode | None:
    if event is JobEvent.SUCCEEDED:
        return None
    if event is JobEvent.CANCELLED:
        return ReasonCode.USER_CANCEL
    if attempt.cause is StopCause.BIND_DEADLINE:
        return ReasonCode.BIND_DEADLINE
    if attempt.cause is StopCause.PREEMPT:
        return ReasonCode.PREEMPTED
    if attempt.cause is StopCause.BOOKING:
        return ReasonCode.STOPPED_FOR_BOOKING
    if attempt.reason is None and event in (JobEvent.FAILED, JobEvent.RETRIED):
        return ReasonCode.EXIT_NONZERO
    return attempt.reason
