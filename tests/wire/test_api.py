"""Jobs, queues, clusters and errors as the API shows them."""

from dataclasses import replace

import pytest
from google.rpc import code_pb2, error_details_pb2, status_pb2
from hypothesis import given

from atoll.api.submission.v1 import submission_pb2
from atoll.core.model.errors import (
    Aborted,
    AlreadyExists,
    DomainError,
    ErrorCode,
    Exhausted,
    FailedPrecondition,
    FieldViolation,
    InvalidInput,
    NotFound,
    StaleEpoch,
    StaleSession,
    Unavailable,
)
from atoll.core.model.ids import (
    DEFAULT_SHARD,
    ClusterName,
    Epoch,
    JobId,
    NodeId,
    QueueName,
    Tenant,
    attempt_id,
)
from atoll.core.model.inventory import Cluster, Node, NodeInventory
from atoll.core.model.job import Attempt, Job, Queue
from atoll.core.model.lifecycle import JobState, JobWish
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.resources import DeviceGrant
from atoll.core.model.spec import JobSpec
from atoll.ports.store.common import Allocation, UnknownOutcome
from atoll.ports.store.submission import ClusterTotals
from atoll.wire.cluster import cluster_node_to_proto, cluster_to_proto
from atoll.wire.errors import STATUS_KEY, error_of, error_of_call, status_of
from atoll.wire.job import job_to_proto
from atoll.wire.queue import queue_from_proto, queue_to_proto
from tests.wire import strategies as make

TASK = TaskPlacement(0, 0, NodeId(3), node_name="n3", cpu_milli=1, memory_bytes=2)


def job_with(spec: JobSpec) -> Job:
    return Job(
        id=JobId(12),
        tenant=Tenant("t"),
        principal="ann",
        queue=QueueName(spec.queue),
        name=spec.name,
        spec=spec,
        priority=3,
        submitted_at=1.5,
        generation=4,
        revision=9,
    )


@given(make.specs)
def test_a_job_shows_its_last_attempt_and_no_secret(spec: JobSpec) -> None:
    job = replace(job_with(spec), wish=JobWish.CANCEL, state=JobState.RUNNING)
    attempt = Attempt(
        id=attempt_id(job.id, 2),
        cluster=ClusterName("north"),
        shard=DEFAULT_SHARD,
        epoch=Epoch(1, 2),
        number=8,
        tasks=(TASK,),
        created_at=1.0,
        bind_by=2.0,
    )
    shown = job_to_proto(job, attempt)
    assert (shown.attempt, shown.cluster, shown.etag) == ("12.2", "north", "4")
    assert shown.cancelling
    assert not shown.HasField("exit_code")
    assert [task.node for task in shown.tasks] == ["n3"]
    assert not any(shown.spec.secrets.values())


@given(make.specs)
def test_a_cancelled_job_is_no_longer_cancelling(spec: JobSpec) -> None:
    job = replace(job_with(spec), wish=JobWish.CANCEL, state=JobState.CANCELLED, exit_code=0)
    shown = job_to_proto(job)
    assert not shown.cancelling
    assert shown.HasField("exit_code")


def test_a_queue_comes_back_without_what_is_output_only() -> None:
    queue = Queue(
        QueueName("a.b"),
        Tenant("t"),
        description="d",
        max_queued_jobs=5,
        device_limit=700,
        weight=0.5,
        deserved=(("A100", 50), ("H100", 600)),
        kind_limits=(("H100", 650),),
        preempts=False,
    )
    shown = queue_to_proto(replace(queue, created_at=3.0, generation=2), {JobState.QUEUED: 4})
    assert dict(shown.job_counts) == {"QUEUED": 4}
    assert (shown.etag, shown.created_at) == ("2", 3.0)
    assert queue_from_proto(shown, Tenant("t")) == queue


def test_a_queue_of_an_older_client_has_the_defaults() -> None:
    given = submission_pb2.Queue(name="a", deserved_blocks={"H100": 0})
    assert queue_from_proto(given, Tenant("t")) == Queue(QueueName("a"), Tenant("t"))


def test_a_cluster_shows_what_is_free() -> None:
    totals = ClusterTotals(
        Cluster(ClusterName("north"), head_seq=5),
        nodes=2,
        nodes_up=1,
        cpu_milli=1000,
        memory_bytes=100,
        used_cpu_milli=400,
        used_memory_bytes=130,
        devices={"H100": 8},
        free_blocks={"H100": 750},
        live_attempts=1,
    )
    shown = cluster_to_proto(totals)
    assert (shown.free_cpu_milli, shown.free_memory_bytes, shown.head_seq) == (600, -30, 5)
    assert dict(shown.free_blocks) == {"H100": 750}


def test_a_node_shows_who_holds_its_devices() -> None:
    node = Node(NodeId(3), ClusterName("north"), NodeInventory("n3", 1000, memory_bytes=10))
    attempt = attempt_id(JobId(7), 1)
    rows = [
        Allocation(attempt, 0, NodeId(3), cpu_milli=200, memory_bytes=4),
        Allocation(attempt, 0, NodeId(3), device=DeviceGrant(2, blocks=25)),
    ]
    shown = cluster_node_to_proto(node, rows)
    assert (shown.used_cpu_milli, shown.used_memory_bytes) == (200, 4)
    assert [(use.index, use.blocks, use.attempt) for use in shown.device_use] == [(2, 25, "7.1")]


@pytest.mark.parametrize(
    ("error", "number"),
    [
        (InvalidInput((FieldViolation("a.b", "no"),)), code_pb2.INVALID_ARGUMENT),
        (NotFound("m", code=ErrorCode.JOB_NOT_FOUND), code_pb2.NOT_FOUND),
        (AlreadyExists("m", code=ErrorCode.QUEUE_EXISTS), code_pb2.ALREADY_EXISTS),
        (
            FailedPrecondition("m", code=ErrorCode.WRONG_STATE, metadata={"state": "HELD"}),
            code_pb2.FAILED_PRECONDITION,
        ),
        (Aborted("m", code=ErrorCode.ETAG_MISMATCH), code_pb2.ABORTED),
        (StaleEpoch(), code_pb2.ABORTED),
        (StaleSession(), code_pb2.ABORTED),
        (Exhausted("m", code=ErrorCode.QUEUE_FULL), code_pb2.RESOURCE_EXHAUSTED),
        (Unavailable("m", code=ErrorCode.NOT_LEADER), code_pb2.UNAVAILABLE),
    ],
)
def test_a_refusal_comes_back(error: DomainError, number: int) -> None:
    status = status_of(error)
    assert status.code == number
    trailing = [("other", "x"), (STATUS_KEY, status.SerializeToString())]
    back = error_of_call(number, error.message, trailing)
    assert type(back) is type(error)
    assert back is not None
    assert (back.code, back.message) == (error.code, error.message)
    assert (back.metadata, back.violations) == (error.metadata, error.violations)


def test_an_unknown_outcome_is_unavailable_to_the_caller() -> None:
    status = status_of(UnknownOutcome("lost", code=ErrorCode.UNAVAILABLE))
    assert status.code == code_pb2.UNAVAILABLE


def test_a_service_out_of_reach_is_a_refusal_and_a_bug_is_not() -> None:
    away = error_of_call(code_pb2.UNAVAILABLE, "connect failed", [])
    assert isinstance(away, Unavailable)
    assert away.code is ErrorCode.UNAVAILABLE
    slow = error_of_call(code_pb2.DEADLINE_EXCEEDED, "late", [])
    assert slow is not None
    assert slow.code is ErrorCode.TIMED_OUT
    assert error_of_call(code_pb2.INTERNAL, "bug", [(STATUS_KEY, b"\xff\xff")]) is None


def test_a_code_of_a_newer_version_keeps_its_class_and_its_text() -> None:
    status = status_pb2.Status(code=code_pb2.NOT_FOUND, message="m")
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason="NEW_CODE", domain="atoll"))
    error = error_of(status)
    assert isinstance(error, NotFound)
    assert error.metadata == {"reason": "NEW_CODE"}


def test_a_foreign_status_is_not_ours() -> None:
    status = status_pb2.Status(code=code_pb2.NOT_FOUND, message="m")
    assert error_of(status) is None
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason="X", domain="other.example"))
    assert error_of(status) is None
