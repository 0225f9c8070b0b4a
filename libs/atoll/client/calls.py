"""The verbs as values: what is sent, how the answer is read, and whether it may be sent again.

Both clients run these; only how they wait differs.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from google.protobuf.message import Message

from atoll.api.common.v1 import common_pb2
from atoll.api.placement.v1 import placement_pb2 as placement
from atoll.api.submission.v1 import submission_pb2 as submission
from atoll.client import reading
from atoll.client.views import DeadlineTold, Explanation, JobInfo
from atoll.core.model.lifecycle import JobState
from atoll.wire.job import state_to_proto

SUBMISSION: Final = "atoll.api.submission.v1.SubmissionService"
PLACEMENT: Final = "atoll.api.placement.v1.PlacementService"
RESERVATION: Final = "atoll.api.reservation.v1.ReservationService"
BURST: Final = "atoll.api.burst.v1.BurstService"

ReplyT = TypeVar("ReplyT", bound=Message)
OutT = TypeVar("OutT")
ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class Call(Generic[ReplyT, OutT]):
    """One call with one answer."""

    service: str
    method: str
    request: Message
    reply: type[ReplyT]
    read: Callable[[ReplyT], OutT]
    repeatable: bool = True
    """True: a second one does no harm."""


@dataclass(frozen=True, slots=True)
class Page(Generic[ItemT]):
    """A part of a list."""

    items: Sequence[ItemT]
    next_token: str


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs to list; what is empty does not restrict."""

    queue: str = ""
    states: tuple[JobState, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    job_ids: tuple[int, ...] = ()
    array_id: int = 0
    cluster: str = ""


def submit(
    specs: Sequence[common_pb2.JobSpec], request_id: str
) -> Call[submission.SubmitJobsResponse, list[tuple[int, DeadlineTold | None]]]:
    """Ids, and what is told of deadlines, in the order of the specs.

    Repeated with the same request_id it finds the same jobs.
    """
    return Call(
        SUBMISSION,
        "SubmitJobs",
        submission.SubmitJobsRequest(request_id=request_id, jobs=specs),
        submission.SubmitJobsResponse,
        reading.written,
    )


def get(job_id: int) -> Call[submission.GetJobResponse, JobInfo]:
    """One job."""
    return Call(
        SUBMISSION,
        "GetJob",
        submission.GetJobRequest(job_id=job_id),
        submission.GetJobResponse,
        lambda reply: reading.job_info(reply.job),
    )


def list_jobs(
    wanted: JobFilter, *, page_size: int, token: str = ""
) -> Call[submission.ListJobsResponse, Page[JobInfo]]:
    """A page of jobs, newest first."""
    request = submission.ListJobsRequest(
        page=page_request(page_size, token),
        queue=wanted.queue,
        states=[state_to_proto(state) for state in wanted.states],
        labels=dict(wanted.labels),
        job_ids=wanted.job_ids,
        array_id=wanted.array_id,
        cluster=wanted.cluster,
    )
    return Call(SUBMISSION, "ListJobs", request, submission.ListJobsResponse, _job_page)


def cancel(job_ids: Iterable[int]) -> Call[submission.CancelJobsResponse, list[JobInfo]]:
    """The jobs after it; repeatable, for cancelling twice is cancelling once."""
    return Call(
        SUBMISSION,
        "CancelJobs",
        submission.CancelJobsRequest(job_ids=job_ids),
        submission.CancelJobsResponse,
        lambda reply: [reading.job_info(job) for job in reply.jobs],
    )


def hold(job_id: int, etag: str) -> Call[submission.HoldJobResponse, JobInfo]:
    """The job after it."""
    return Call(
        SUBMISSION,
        "HoldJob",
        submission.HoldJobRequest(job_id=job_id, etag=etag),
        submission.HoldJobResponse,
        lambda reply: reading.job_info(reply.job),
        repeatable=False,
    )


def release(job_id: int, etag: str) -> Call[submission.ReleaseJobResponse, JobInfo]:
    """The job after it."""
    return Call(
        SUBMISSION,
        "ReleaseJob",
        submission.ReleaseJobRequest(job_id=job_id, etag=etag),
        submission.ReleaseJobResponse,
        lambda reply: reading.job_info(reply.job),
        repeatable=False,
    )


def set_priority(
    job_id: int, priority: int, etag: str
) -> Call[submission.SetJobPriorityResponse, JobInfo]:
    """The job after it."""
    return Call(
        SUBMISSION,
        "SetJobPriority",
        submission.SetJobPriorityRequest(job_id=job_id, priority=priority, etag=etag),
        submission.SetJobPriorityResponse,
        lambda reply: reading.job_info(reply.job),
        repeatable=False,
    )


def explain(job_id: int) -> Call[placement.ExplainJobResponse, Explanation]:
    """Why a job waits."""
    return Call(
        PLACEMENT,
        "ExplainJob",
        placement.ExplainJobRequest(job_id=job_id),
        placement.ExplainJobResponse,
        reading.explanation,
    )


def page_request(size: int, token: str) -> common_pb2.PageRequest:
    """Of any list."""
    return common_pb2.PageRequest(page_size=size, page_token=token)


def _job_page(reply: submission.ListJobsResponse) -> Page[JobInfo]:
    return Page([reading.job_info(job) for job in reply.jobs], reply.next_page_token)
