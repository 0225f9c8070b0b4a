"""Decisions, jobs, attempts and reports for tests, with only what matters given."""

from itertools import count

from atoll.core.model.ids import (
    DEFAULT_SHARD,
    AttemptId,
    ClusterName,
    Epoch,
    JobId,
    NodeId,
    QueueName,
    Tenant,
    attempt_id,
)
from atoll.core.model.job import Attempt, Job
from atoll.core.model.lifecycle import AttemptEvent, AttemptState, JobState
from atoll.core.model.messages import Decision, DecisionKind, Report
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.resources import TaskShape
from atoll.core.model.spec import JobSpec, TaskGroup

CLUSTER = ClusterName("alpha")
EPOCH = Epoch(1, 1)
SHAPE = TaskShape(cpu_milli=100, memory_bytes=1 << 20)


def task(rank: int = 0, node: int = 1) -> TaskPlacement:
    """One small task."""
    return TaskPlacement(
        group=0,
        rank=rank,
        node=NodeId(node),
        node_name=f"node-{node}",
        cpu_milli=SHAPE.cpu_milli,
        memory_bytes=SHAPE.memory_bytes,
    )


def spec(name: str = "job", *, tasks: int = 1, retries: int = 0, secret: str = "") -> JobSpec:
    """A job that runs `true`."""
    group = TaskGroup(name="main", count=tasks, min_count=tasks, shapes=(SHAPE,), run="true")
    secrets = (("TOKEN", secret),) if secret else ()
    return JobSpec(name=name, queue="default", groups=(group,), retries=retries, secrets=secrets)


def decision(number: int, *, kind: DecisionKind = DecisionKind.START) -> Decision:
    """The decision `number`; a START is of job `number`."""
    return Decision(
        cluster=CLUSTER,
        number=number,
        epoch=EPOCH,
        kind=kind,
        attempt=attempt_id(JobId(number), 1),
        tasks=(task(),) if kind is DecisionKind.START else (),
    )


def job(number: int = 1, *, state: JobState = JobState.ASSIGNED, retries: int = 0) -> Job:
    """Job `number` with its first attempt live."""
    return Job(
        id=JobId(number),
        tenant=Tenant("default"),
        principal="someone",
        queue=QueueName("default"),
        name="job",
        spec=spec(retries=retries),
        priority=0,
        submitted_at=1.0,
        state=state,
        attempts=1,
        attempt=attempt_id(JobId(number), 1),
        cluster=CLUSTER,
    )


def attempt(number: int = 1, *, state: AttemptState = AttemptState.ASSIGNED) -> Attempt:
    """The first attempt of job `number`."""
    return Attempt(
        id=attempt_id(JobId(number), 1),
        cluster=CLUSTER,
        shard=DEFAULT_SHARD,
        epoch=EPOCH,
        number=number,
        tasks=(task(),),
        created_at=1.0,
        bind_by=31.0,
        state=state,
    )


def report(
    number: int,
    event: AttemptEvent,
    *,
    of: AttemptId | None = None,
    cluster: ClusterName = CLUSTER,
    exit_code: int | None = None,
) -> Report:
    """A report; of job 1's first attempt unless told."""
    return Report(
        cluster=cluster,
        number=number,
        attempt=of or attempt_id(JobId(1), 1),
        event=event,
        at=2.0,
        exit_code=exit_code,
    )


def story(of: AttemptId, *events: AttemptEvent, first: int = 1) -> list[Report]:
    """Reports on one attempt with consecutive numbers; FINISHED with exit code 0."""
    numbers = count(first)
    return [
        report(next(numbers), event, of=of, exit_code=0 if event is AttemptEvent.FINISHED else None)
        for event in events
    ]
