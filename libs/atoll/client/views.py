"""What the API answers, as values. Times are unix seconds; 0 means: not yet."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from atoll.api.common.v1 import common_pb2
from atoll.client.candidates import Candidate
from atoll.client.messages import message_values
from atoll.core.model.inventory import NodeInventory
from atoll.core.model.lifecycle import TERMINAL_JOB, JobState
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.reason import ReasonCode


@dataclass(frozen=True, slots=True)
class DeadlineTold:
    """What a job with a deadline is told when it is submitted."""

    chance: str
    """`guaranteed`, `likely` or `cannot`."""
    earliest_at: float = 0.0
    """By when it could be done; 0: nobody can say."""
    cluster: str = ""
    """Where it could be."""
    why: str = ""
    """Why it is not guaranteed."""


@dataclass(frozen=True, slots=True)
class JobInfo:
    """A job as it stood when it was read."""

    id: int
    name: str
    queue: str
    state: JobState
    priority_class: str = ""
    priority: int = 0
    tenant: str = ""
    principal: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    cancelling: bool = False
    reason: str = ""
    message: str = ""
    attempts: int = 0
    rollbacks: int = 0
    attempt: str = ""
    cluster: str = ""
    tasks: tuple[TaskPlacement, ...] = ()
    """Of the live or last attempt."""
    exit_code: int | None = None
    submitted_at: float = 0.0
    placed_at: float = 0.0
    accepted_at: float = 0.0
    started_at: float = 0.0
    ended_at: float = 0.0
    array_id: int = 0
    array_index: int = 0
    etag: str = ""
    guaranteed: bool = False
    """Its deadline was guaranteed at submit."""
    told: DeadlineTold | None = None
    """Right after the submit of a job with a deadline, when that was no repeated one."""
    proto: common_pb2.JobSpec = field(default_factory=common_pb2.JobSpec, repr=False)
    """The spec as accepted, without the values of its secrets."""

    @property
    def done(self) -> bool:
        """True once nothing more happens to it."""
        return self.state in TERMINAL_JOB

    @property
    def task_count(self) -> int:
        """Tasks wanted."""
        return sum(group.count for group in self.proto.groups)

    @property
    def spec(self) -> dict[str, Any]:
        """The spec as plain values; what is empty is left out."""
        return message_values(self.proto)


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of a job's history."""

    job_id: int
    queue: str
    event: str
    state: JobState
    at: float
    attempt: str
    cluster: str
    reason: str
    message: str
    principal: str
    cursor: str
    """Where a watch goes on when this event has been dealt with."""


@dataclass(frozen=True, slots=True)
class LogChunk:
    """A piece of a task's output; `offset` is that of its first byte."""

    rank: int
    data: bytes
    offset: int


@dataclass(frozen=True, slots=True)
class Reason:
    """A coded why-not with its numbers."""

    code: ReasonCode | str
    """Text when a newer server published a code that this version does not know."""
    message: str
    cluster: str = ""
    needed: int = 0
    available: int = 0
    unit: str = ""
    count: int = 0
    help: str = ""


@dataclass(frozen=True, slots=True)
class Tally:
    """Nodes of a cluster by what keeps a job from them; FITS where a task of it fits."""

    cluster: str
    nodes: int
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Holder:
    """Running work that holds what a job needs."""

    attempt: str
    queue: str
    cluster: str
    amount: int
    unit: str
    """`blocks` (100 a device), or `milli-CPU` for jobs without accelerators."""
    nodes: int
    until: float
    """When it ends at the latest; 0: it has no time limit."""
    stopping: bool


@dataclass(frozen=True, slots=True)
class Eta:
    """A forecast of a start, or a promise."""

    p50_at: float
    p90_at: float
    if_nothing_arrives_at: float
    cause: str
    promised: bool
    cluster: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Capacity that is held for a job until its victims have ended."""

    cluster: str
    until: float
    victims: tuple[str, ...]
    tasks: tuple[TaskPlacement, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a job waits, or where it is, as of one snapshot."""

    state: JobState
    summary: str
    reasons: tuple[Reason, ...]
    tallies: tuple[Tally, ...]
    jobs_ahead: int
    as_of: float
    unread: tuple[str, ...]
    fits_now: bool
    holders: tuple[Holder, ...] = ()
    eta: Eta | None = None
    """None: nobody can tell."""
    hold: Hold | None = None
    candidates: tuple[Candidate, ...] = ()
    """Where it could run, the best first."""


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """A queue with its live jobs by state."""

    name: str
    description: str = ""
    max_queued_jobs: int = 0
    device_limit_blocks: int = 0
    weight: float = 1.0
    deserved_blocks: Mapping[str, int] = field(default_factory=dict)
    """By device kind: what it may always claim back."""
    kind_limit_blocks: Mapping[str, int] = field(default_factory=dict)
    preempts: bool = True
    """Its jobs of higher priority may stop those of lower priority."""
    job_counts: Mapping[str, int] = field(default_factory=dict)
    created_at: float = 0.0
    etag: str = ""
    notes: tuple[str, ...] = ()
    """After a change: what was taken as given but may be a mistake."""


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """A cluster with its sums."""

    name: str
    backend: str
    state: str
    cordoned: bool
    cordon_reason: str
    nodes_up: int
    nodes: int
    devices: Mapping[str, int]
    free_blocks: Mapping[str, int]
    cpu_milli: int
    free_cpu_milli: int
    memory_bytes: int
    free_memory_bytes: int
    last_seen: float
    head_seq: int
    sent_seq: int
    acked_seq: int
    live_attempts: int
    can_guard: bool


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """Who holds a share of a device."""

    index: int
    blocks: int
    slice_mask: int
    attempt: str


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A node: what its agent says, and what allocations hold."""

    id: int
    cluster: str
    inventory: NodeInventory
    cordoned: bool
    cordon_reason: str
    suspect: bool
    used_cpu_milli: int
    used_memory_bytes: int
    device_use: tuple[DeviceUse, ...]


@dataclass(frozen=True, slots=True)
class PlacementStatus:
    """A placement replica."""

    leader: bool
    leader_address: str
    epoch: str
    queued: int
    live_attempts: int
    cycles: int
    placements: int
    rollbacks: int
    placement_ms: tuple[float, ...]
    """From submit to placed: 50th, 95th, 99th percentile."""
    eta_starts: int = 0
    """Jobs that had to wait and have started, with which forecasts at submit were compared."""
    eta_within: tuple[float, ...] = ()
    """What part of the last 1,000 of them had started by their p50, and by their p90."""
    eta_error_s: float = 0.0
    """Mean distance of their starts from their p50."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was given up with a cluster."""

    attempts_lost: int
    decisions_voided: int
