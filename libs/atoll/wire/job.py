"""Jobs as the API shows them."""

from atoll.api.common.v1 import common_pb2
from atoll.api.submission.v1 import submission_pb2
from atoll.core.model.ids import attempt_name
from atoll.core.model.job import Attempt, Job
from atoll.core.model.lifecycle import TERMINAL_JOB, JobState, JobWish
from atoll.core.model.trace import job_trace
from atoll.wire.enums import inverse, known, to_numbers
from atoll.wire.placement import task_to_proto
from atoll.wire.reason import code_to_text
from atoll.wire.spec import spec_to_proto

_STATES = to_numbers(JobState, common_pb2.JobState, prefix="JOB_STATE_")
_STATES_BACK = inverse(_STATES)


def job_to_proto(job: Job, attempt: Attempt | None = None) -> submission_pb2.Job:
    """A job with its live or last attempt; the values of its secrets are left out."""
    proto = submission_pb2.Job(
        id=job.id,
        spec=spec_to_proto(job.spec),
        state=state_to_proto(job.state),
        tenant=job.tenant,
        principal=job.principal,
        priority=job.priority,
        cancelling=job.wish is JobWish.CANCEL and job.state not in TERMINAL_JOB,
        reason=code_to_text(job.reason),
        message=job.message,
        attempts=job.attempts,
        rollbacks=job.rollbacks,
        cluster=job.cluster or "",
        exit_code=job.exit_code,
        array_id=job.spec.array_id or 0,
        array_index=job.spec.array_index,
        etag=etag(job.generation),
        trace=job_trace(job.trace, job.id),
        guaranteed=job.guaranteed,
    )
    _set_times(proto, job)
    if attempt is not None:
        _set_attempt(proto, attempt)
    return proto


def state_to_proto(state: JobState) -> common_pb2.JobState.ValueType:
    """A job's state."""
    return _STATES[state]


def state_from_proto(number: common_pb2.JobState.ValueType) -> JobState:
    """A job's state; raises WireError for one that this version does not know."""
    return known(_STATES_BACK, number, what="job state")


def etag(generation: int) -> str:
    """The version that users compare: it rises on their own changes alone."""
    return str(generation)


def _set_times(proto: submission_pb2.Job, job: Job) -> None:
    proto.submitted_at = job.submitted_at
    proto.placed_at = job.placed_at
    proto.accepted_at = job.accepted_at
    proto.started_at = job.started_at
    proto.ended_at = job.ended_at


def _set_attempt(proto: submission_pb2.Job, attempt: Attempt) -> None:
    proto.attempt = attempt_name(attempt.id)
    proto.cluster = attempt.cluster
    proto.tasks.extend(task_to_proto(task) for task in attempt.tasks)
