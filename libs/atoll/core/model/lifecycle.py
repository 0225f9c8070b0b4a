"""The lifecycles of a job and of an attempt, as tables. docs/lifecycle.md is rendered from them."""

import enum
from typing import Final


class JobState(enum.StrEnum):
    """Where a job is. SUCCEEDED, FAILED and CANCELLED are final."""

    QUEUED = "QUEUED"
    HELD = "HELD"
    ASSIGNED = "ASSIGNED"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class JobEvent(enum.StrEnum):
    """What happens to a job."""

    PLACED = "PLACED"
    STARTED = "STARTED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    RETRIED = "RETRIED"
    ROLLED_BACK = "ROLLED_BACK"
    REQUEUED = "REQUEUED"
    CANCELLED = "CANCELLED"
    HELD = "HELD"
    RELEASED = "RELEASED"
    DEPENDENCY_FAILED = "DEPENDENCY_FAILED"


class JobWish(enum.StrEnum):
    """What the user wants of a job; written by submission alone."""

    RUN = "RUN"
    CANCEL = "CANCEL"


class AttemptState(enum.StrEnum):
    """What is known of one try to run a job on one cluster."""

    ASSIGNED = "ASSIGNED"
    ACCEPTED = "ACCEPTED"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    STOPPED = "STOPPED"
    REJECTED = "REJECTED"
    VOID = "VOID"
    LOST = "LOST"


class AttemptEvent(enum.StrEnum):
    """What an agent reports of an attempt, or the placement leader concludes (VOIDED, LOST)."""

    ACCEPTED = "ACCEPTED"
    STARTED = "STARTED"
    RESIZED = "RESIZED"
    FINISHED = "FINISHED"
    STOPPED = "STOPPED"
    REJECTED = "REJECTED"
    VOIDED = "VOIDED"
    LOST = "LOST"


class AttemptWish(enum.StrEnum):
    """What is wanted of an attempt; written by placement alone."""

    RUN = "RUN"
    STOP = "STOP"


class StopCause(enum.StrEnum):
    """Why an attempt is to stop; it decides what becomes of the job then."""

    NONE = "NONE"
    CANCEL = "CANCEL"
    BIND_DEADLINE = "BIND_DEADLINE"
    PREEMPT = "PREEMPT"
    DRAIN = "DRAIN"
    BOOKING = "BOOKING"


TERMINAL_JOB: Final = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})
TERMINAL_ATTEMPT: Final = frozenset({
    AttemptState.FINISHED,
    AttemptState.STOPPED,
    AttemptState.REJECTED,
    AttemptState.VOID,
    AttemptState.LOST,
})

JOB_MOVES: Final[dict[tuple[JobState, JobEvent], JobState]] = {
    (JobState.QUEUED, JobEvent.PLACED): JobState.ASSIGNED,
    (JobState.QUEUED, JobEvent.HELD): JobState.HELD,
    (JobState.QUEUED, JobEvent.CANCELLED): JobState.CANCELLED,
    (JobState.QUEUED, JobEvent.DEPENDENCY_FAILED): JobState.CANCELLED,
    (JobState.HELD, JobEvent.RELEASED): JobState.QUEUED,
    (JobState.HELD, JobEvent.CANCELLED): JobState.CANCELLED,
    (JobState.HELD, JobEvent.DEPENDENCY_FAILED): JobState.CANCELLED,
    (JobState.ASSIGNED, JobEvent.STARTED): JobState.RUNNING,
    (JobState.ASSIGNED, JobEvent.SUCCEEDED): JobState.SUCCEEDED,
    (JobState.ASSIGNED, JobEvent.FAILED): JobState.FAILED,
    (JobState.ASSIGNED, JobEvent.RETRIED): JobState.QUEUED,
    (JobState.ASSIGNED, JobEvent.ROLLED_BACK): JobState.QUEUED,
    (JobState.ASSIGNED, JobEvent.REQUEUED): JobState.QUEUED,
    (JobState.ASSIGNED, JobEvent.CANCELLED): JobState.CANCELLED,
    (JobState.RUNNING, JobEvent.SUCCEEDED): JobState.SUCCEEDED,
    (JobState.RUNNING, JobEvent.FAILED): JobState.FAILED,
    (JobState.RUNNING, JobEvent.RETRIED): JobState.QUEUED,
    (JobState.RUNNING, JobEvent.REQUEUED): JobState.QUEUED,
    (JobState.RUNNING, JobEvent.CANCELLED): JobState.CANCELLED,
}

ATTEMPT_MOVES: Final[dict[tuple[AttemptState, AttemptEvent], AttemptState]] = {
    (AttemptState.ASSIGNED, AttemptEvent.ACCEPTED): AttemptState.ACCEPTED,
    (AttemptState.ASSIGNED, AttemptEvent.STARTED): AttemptState.RUNNING,
    (AttemptState.ASSIGNED, AttemptEvent.FINISHED): AttemptState.FINISHED,
    (AttemptState.ASSIGNED, AttemptEvent.STOPPED): AttemptState.STOPPED,
    (AttemptState.ASSIGNED, AttemptEvent.REJECTED): AttemptState.REJECTED,
    (AttemptState.ASSIGNED, AttemptEvent.VOIDED): AttemptState.VOID,
    (AttemptState.ASSIGNED, AttemptEvent.LOST): AttemptState.LOST,
    (AttemptState.ACCEPTED, AttemptEvent.STARTED): AttemptState.RUNNING,
    (AttemptState.ACCEPTED, AttemptEvent.FINISHED): AttemptState.FINISHED,
    (AttemptState.ACCEPTED, AttemptEvent.STOPPED): AttemptState.STOPPED,
    (AttemptState.ACCEPTED, AttemptEvent.REJECTED): AttemptState.REJECTED,
    (AttemptState.ACCEPTED, AttemptEvent.LOST): AttemptState.LOST,
    (AttemptState.RUNNING, AttemptEvent.RESIZED): AttemptState.RUNNING,
    (AttemptState.RUNNING, AttemptEvent.FINISHED): AttemptState.FINISHED,
    (AttemptState.RUNNING, AttemptEvent.STOPPED): AttemptState.STOPPED,
    (AttemptState.RUNNING, AttemptEvent.LOST): AttemptState.LOST,
}


def next_job_state(state: JobState, event: JobEvent) -> JobState | None:
    """Where `event` takes a job in `state`; None when the table does not allow it."""
    return JOB_MOVES.get((state, event))


def next_attempt_state(state: AttemptState, event: AttemptEvent) -> AttemptState | None:
    """Where `event` takes an attempt in `state`; None when the table does not allow it."""
    return ATTEMPT_MOVES.get((state, event))
