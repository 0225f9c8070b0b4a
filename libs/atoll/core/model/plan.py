"""What a cycle decides, and what it decides on."""

import functools
import hashlib
from dataclasses import dataclass

from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId, QueueName
from atoll.core.model.lifecycle import StopCause
from atoll.core.model.reason import Reason
from atoll.core.model.resources import DeviceGrant, TaskShape
from atoll.core.model.spec import JobSpec, OnLost, Topology


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """What the scheduler needs to know of a task group."""

    count: int
    min_count: int
    shapes: tuple[TaskShape, ...]
    """Alternatives in order of preference."""


@dataclass(frozen=True, slots=True)
class GangRequest:
    """What the scheduler needs to know of a job. Equal requests of a queue form a class."""

    groups: tuple[GroupRequest, ...]
    topology: Topology | None = None
    needs_guard: bool = False
    """`on_lost: requeue`: only clusters whose backend can stop a run by itself."""


def request_of(spec: JobSpec) -> GangRequest:
    """The part of a spec that decides where it fits."""
    groups = tuple(GroupRequest(g.count, g.min_count, g.shapes) for g in spec.groups)
    return GangRequest(groups, spec.topology, needs_guard=spec.on_lost is OnLost.REQUEUE)


@functools.lru_cache(maxsize=65_536)
def shape_key(request: GangRequest) -> str:
    """Digest of a request, equal for equal ones in every process (`Avoidance.shape_key`)."""
    return hashlib.blake2b(repr(request).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class PendingJob:
    """A queued job as the leader holds it."""

    id: JobId
    revision: int
    queue: QueueName
    priority: int
    submitted_at: float
    request: GangRequest
    attempts: int = 0
    begin_at: float = 0.0
    depends_on: tuple[JobId, ...] = ()
    trace: str = ""


@dataclass(frozen=True, slots=True)
class TaskPlacement:
    """One task on one node with its devices."""

    group: int
    """Index of the task group in the job."""
    rank: int
    """Over all tasks of the job, from 0."""
    node: NodeId
    node_name: str
    cpu_milli: int
    memory_bytes: int
    devices: tuple[DeviceGrant, ...] = ()


@dataclass(frozen=True, slots=True)
class GangPlacement:
    """A job placed whole on one cluster; not yet committed."""

    job: JobId
    revision: int
    """Of the job when the snapshot was taken: the compare-and-set of the commit."""
    attempt: AttemptId
    cluster: ClusterName
    queue: QueueName
    request: GangRequest
    submitted_at: float
    tasks: tuple[TaskPlacement, ...]
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Eviction:
    """A running attempt that the plan stops, and for whom."""

    attempt: AttemptId
    cluster: ClusterName
    cause: StopCause
    for_job: JobId | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a class of jobs was not placed in this cycle."""

    queue: QueueName
    request: GangRequest
    jobs: int
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """All decisions of one cycle."""

    placements: tuple[GangPlacement, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    waiting: tuple[Waiting, ...] = ()

    @property
    def empty(self) -> bool:
        """True when there is nothing to commit."""
        return not self.placements and not self.evictions
