"""A job and its attempts as they stand in the store."""

from dataclasses import dataclass

from atoll.core.model.ids import (
    DEFAULT_SHARD,
    AttemptId,
    ClusterName,
    Epoch,
    JobId,
    QueueName,
    ShardId,
    Tenant,
)
from atoll.core.model.lifecycle import AttemptState, AttemptWish, JobState, JobWish, StopCause
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.reason import ReasonCode
from atoll.core.model.spec import JobSpec


@dataclass(frozen=True, slots=True)
class Job:
    """A submitted job. `revision` rises on every update, `generation` on the user's only."""

    id: JobId
    tenant: Tenant
    principal: str
    """Who submitted it."""
    queue: QueueName
    name: str
    spec: JobSpec
    priority: int
    submitted_at: float
    state: JobState = JobState.QUEUED
    wish: JobWish = JobWish.RUN
    reason: ReasonCode | None = None
    """Why it ended, or was rolled back last."""
    message: str = ""
    attempts: int = 0
    """Attempts made so far; the next one gets the number after it."""
    failures: int = 0
    rollbacks: int = 0
    preemptions: int = 0
    """How often a run of it was stopped for others."""
    attempt: AttemptId | None = None
    """The live attempt, if any."""
    cluster: ClusterName | None = None
    """Where it runs, or ran last."""
    exit_code: int | None = None
    placed_at: float = 0.0
    accepted_at: float = 0.0
    started_at: float = 0.0
    ended_at: float = 0.0
    shard: ShardId = DEFAULT_SHARD
    trace: str = ""
    """W3C traceparent of the submit, which its jobs share; `job_trace` makes the job's own."""
    guaranteed: bool = False
    """Its deadline was guaranteed at submit, and still is."""
    revision: int = 1
    generation: int = 1


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try to run a job on one cluster."""

    id: AttemptId
    cluster: ClusterName
    shard: ShardId
    epoch: Epoch
    """Of the leader that made it."""
    number: int
    """Of its START decision in its cluster."""
    tasks: tuple[TaskPlacement, ...]
    created_at: float
    bind_by: float
    """Wall time shown to people; the judgement is the leader's, on its own clock."""
    state: AttemptState = AttemptState.ASSIGNED
    wish: AttemptWish = AttemptWish.RUN
    cause: StopCause = StopCause.NONE
    reason: ReasonCode | None = None
    message: str = ""
    exit_code: int | None = None
    accepted_at: float = 0.0
    started_at: float = 0.0
    ended_at: float = 0.0
    generation: int = 0
    """Of the last change of size that was decided. `tasks` is what it holds until that is done:
    tasks that are to end, and those that are to begin."""
    resized: int = 0
    """Of the last change of size that was carried out."""
    changed_at: float = 0.0
    """When the last change of size was decided; 0: it has had one size."""
    done: float = 0.0
    """Work done by then, in the unit of the job's `Elastic`."""
    revision: int = 1


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    """One accepted SubmitJobs call: what makes a repeated call find its jobs again."""

    tenant: Tenant
    key: str
    body_hash: bytes
    """SHA-256 of the canonical request."""
    jobs: tuple[JobId, ...]


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue. Names are paths; a parent needs no row of its own."""

    name: QueueName
    tenant: Tenant
    description: str = ""
    max_queued_jobs: int = 0
    """More are refused with QUEUE_FULL; 0: the service's own bound."""
    device_limit: int = 0
    """Devices (in blocks, over all kinds) that its running jobs may hold at most; 0: no limit."""
    weight: float = 1.0
    """Its part of what siblings borrow, beside theirs."""
    deserved: tuple[tuple[str, int], ...] = ()
    """(device kind, blocks): what it may always claim back; sorted by kind."""
    kind_limits: tuple[tuple[str, int], ...] = ()
    """(device kind, blocks): hard limits beside `device_limit`; sorted by kind."""
    preempts: bool = True
    """Its jobs of higher priority may stop those of lower priority."""
    created_at: float = 0.0
    generation: int = 1
    revision: int = 1
