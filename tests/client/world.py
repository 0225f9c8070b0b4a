"""A control plane in memory that keeps the contract of the two services, and fails when told to.

It runs no scheduler: a test moves jobs by hand, or lets `plays` run them through at once.
"""

import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import grpc

from atoll.api.burst.v1 import burst_pb2
from atoll.api.common.v1 import common_pb2 as common
from atoll.api.events.v1 import events_pb2 as events
from atoll.api.placement.v1 import placement_pb2
from atoll.api.submission.v1 import submission_pb2 as pb
from atoll.core.model.errors import DomainError
from atoll.wire.errors import STATUS_KEY, status_of

Context = grpc.ServicerContext
ENDED = (common.JOB_STATE_SUCCEEDED, common.JOB_STATE_FAILED, common.JOB_STATE_CANCELLED)


def refuse(context: Context, error: DomainError) -> Any:
    """Ends the call as the services do."""
    status = status_of(error)
    code = next(c for c in grpc.StatusCode if c.value[0] == status.code)
    context.set_trailing_metadata(((STATUS_KEY, status.SerializeToString()),))
    context.abort(code, error.message)
    raise AssertionError("abort raises")


@dataclass
class Rented:
    """What the fake burst service knows and says."""

    policies: dict[str, burst_pb2.BurstPolicy] = field(default_factory=dict)
    instances: dict[int, burst_pb2.Instance] = field(default_factory=dict)
    requests: dict[str, list[int]] = field(default_factory=dict)
    offers: list[burst_pb2.Offer] = field(default_factory=list)
    series: list[burst_pb2.Series] = field(default_factory=list)
    status: burst_pb2.GetBurstStatusResponse = field(
        default_factory=burst_pb2.GetBurstStatusResponse
    )
    spend: burst_pb2.GetSpendResponse = field(default_factory=burst_pb2.GetSpendResponse)
    explanation: burst_pb2.ExplainBurstResponse = field(
        default_factory=burst_pb2.ExplainBurstResponse
    )
    asked: list[Any] = field(default_factory=list)

    def rent(self, request: burst_pb2.RequestCapacityRequest) -> int:
        """One instance more."""
        number = len(self.instances) + 1
        offer = next(o for o in self.offers if request.offer in ("", o.key))
        self.instances[number] = burst_pb2.Instance(
            id=number,
            offer=offer,
            state=burst_pb2.INSTANCE_STATE_REQUESTED,
            cluster=f"burst-{number}",
            queue=request.queue,
            why=request.why or "asked for by hand",
            requested_at=1.0,
        )
        return number


@dataclass
class World:
    """Everything that the fake knows."""

    jobs: dict[int, pb.Job] = field(default_factory=dict)
    history: list[events.JobEvent] = field(default_factory=list)
    requests: dict[str, list[int]] = field(default_factory=dict)
    output: dict[int, list[tuple[int, bytes]]] = field(default_factory=lambda: defaultdict(list))
    queues: dict[str, pb.Queue] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """What the next changes of queues are told."""
    clusters: list[pb.Cluster] = field(default_factory=list)
    nodes: list[pb.Node] = field(default_factory=list)
    cordons: list[tuple[str, str, str]] = field(default_factory=list)
    deadlines: list[common.DeadlineAnswer] = field(default_factory=list)
    """What the jobs of the next submits are told."""
    asked: list[placement_pb2.AdmitDeadlinesRequest] = field(default_factory=list)
    explanations: dict[int, placement_pb2.ExplainJobResponse] = field(default_factory=dict)
    plan: placement_pb2.PlanJobResponse = field(default_factory=placement_pb2.PlanJobResponse)
    """The answer to every dry run."""
    planned: list[common.JobSpec] = field(default_factory=list)
    shares: list[placement_pb2.QueueShare] = field(default_factory=list)
    priorities: dict[int, placement_pb2.GetPriorityResponse] = field(default_factory=dict)
    waits: list[placement_pb2.Wait] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    burst: Rented = field(default_factory=Rented)
    leader: str = ""
    """Address to name in place of answering; empty: this one leads."""
    expired: set[str] = field(default_factory=set)
    """Cursors that are too old."""
    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    metadata: dict[str, str] = field(default_factory=dict)
    failures: dict[str, list[DomainError]] = field(default_factory=lambda: defaultdict(list))
    """Errors that the next calls of a method end with."""
    lost_replies: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Calls of a method that are done, but whose reply does not arrive."""
    drop_after_bytes: list[int] = field(default_factory=list)
    """Output streams that break after so many bytes."""
    watch_breaks_after: list[int] = field(default_factory=list)
    """Watches that break after so many events."""
    plays: Callable[["World", int], None] | None = None
    """What happens to a job as soon as it is submitted."""
    shown: list[str] = field(default_factory=list)
    """States of jobs as they were read one by one."""
    watches: int = 0
    """How many have stood so far: what happens from then on reaches them."""
    changed: threading.Condition = field(default_factory=threading.Condition)

    def move(self, job_id: int, state: str, event: str = "", **fields: Any) -> None:
        """Set a job's state and tell it."""
        with self.changed:
            job = self.jobs[job_id]
            job.state = common.JobState.Value(f"JOB_STATE_{state}")
            for name, value in fields.items():
                setattr(job, name, value)
            self._tell(job, event or state)

    def place(self, job_id: int, cluster: str = "here", node: str = "node-0") -> None:
        """A first attempt on a node."""
        job = self.jobs[job_id]
        job.attempts += 1
        del job.tasks[:]
        tasks = sum(group.count for group in job.spec.groups)
        for rank in range(tasks):
            job.tasks.add(rank=rank, node=node, node_id=1)
        name = f"{job_id}.{job.attempts}"
        self.move(job_id, "ASSIGNED", "PLACED", attempt=name, cluster=cluster, placed_at=2.0)

    def start(self, job_id: int) -> None:
        """Its work runs."""
        self.move(job_id, "RUNNING", "STARTED", started_at=3.0)

    def write(self, job_id: int, data: bytes, rank: int = 0) -> None:
        """Its work prints."""
        with self.changed:
            self.output[job_id].append((rank, data))
            self.changed.notify_all()

    def end(self, job_id: int, exit_code: int = 0) -> None:
        """Its work ends by itself."""
        state = "FAILED" if exit_code else "SUCCEEDED"
        reason = "EXIT_NONZERO" if exit_code else ""
        self.move(job_id, state, exit_code=exit_code, ended_at=4.0, reason=reason)

    def add(self, spec: common.JobSpec, index: int = 0) -> int:
        """A job more."""
        with self.changed:
            job_id = len(self.jobs) + 1
            job = pb.Job(id=job_id, spec=spec, state=common.JOB_STATE_QUEUED, principal="me")
            job.submitted_at, job.array_index, job.etag = 1.0, index, "1"
            self.jobs[job_id] = job
            self._tell(job, "SUBMITTED")
        return job_id

    def _tell(self, job: pb.Job, event: str) -> None:
        self.history.append(
            events.JobEvent(
                job_id=job.id,
                queue=job.spec.queue,
                event=event,
                state=job.state,
                at=float(len(self.history) + 1),
                attempt=job.attempt,
                cluster=job.cluster,
                reason=job.reason,
            )
        )
        self.changed.notify_all()
