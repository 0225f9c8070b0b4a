"""What a cycle decides, and what it decides on."""

import functools
import hashlib
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId, QueueName
from atoll.core.model.lifecycle import StopCause
from atoll.core.model.reason import Reason
from atoll.core.model.resources import DeviceGrant, TaskShape
from atoll.core.model.rounding import round_limit
from atoll.core.model.slices import with_slices
from atoll.core.model.spec import AntiAffinity, Elastic, JobSpec, OnLost, Spread, Topology


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """What the scheduler needs to know of a task group."""

    count: int
    min_count: int
    shapes: tuple[TaskShape, ...]
    """Alternatives in order of preference."""
    spread: Spread | None = None


@dataclass(frozen=True, slots=True)
class RunTerms:
    """How long a job may run, and what stopping it early would cost."""

    time_limit_s: float = 0.0
    """0: unlimited. Bounds reservations; rounded up, so that few values make few classes."""
    checkpoint_interval_s: float = 0.0
    """Work since the last multiple of it is lost when the run is stopped; 0: all of it is."""
    restart_cost_s: float = 0.0
    grace_s: float = 0.0
    """From the order to stop until nothing of it runs any more, at most."""
    preemptible: bool = True
    preempts: bool = True
    """False: it stops nobody, whatever its priority."""
    elastic: Elastic | None = None


@dataclass(frozen=True, slots=True)
class GangRequest:
    """What the scheduler needs to know of a job. Equal requests of a queue form a class."""

    groups: tuple[GroupRequest, ...]
    topology: Topology | None = None
    needs_guard: bool = False
    """`on_lost: requeue`: only clusters whose backend can stop a run by itself."""
    terms: RunTerms = RunTerms()
    anti_affinity: AntiAffinity | None = None
    """Its name has the queue in front, so that it means the same jobs wherever it is read."""
    reservation: str = ""
    """Runs in this booking's windows only."""
    marks: tuple[str, ...] = ()
    """By which bookings know the job beside its queue; only those that some window asks for."""
    burst: bool = True  # on rented capacity, where its queue may
    burst_max_cost: int = 0  # micro-dollars that renting for it may cost; 0: no bound of its own


LEAST_IMMUNITY_S: Final = 600.0


def request_of(spec: JobSpec) -> GangRequest:
    """The part of a spec that decides where and when it fits."""
    groups = tuple(
        GroupRequest(g.count, g.min_count, with_slices(g.shapes), g.spread) for g in spec.groups
    )
    apart = spec.anti_affinity
    return GangRequest(
        groups,
        spec.topology,
        needs_guard=spec.on_lost is OnLost.REQUEUE,
        terms=_terms(spec),
        anti_affinity=apart and replace(apart, name=f"{spec.queue}/{apart.name}"),
        reservation=spec.reservation,
        burst=spec.burst,
        burst_max_cost=spec.burst_max_cost,
    )


def _terms(spec: JobSpec) -> RunTerms:
    checkpoint = spec.checkpoint
    return RunTerms(
        time_limit_s=round_limit(spec.time_limit_s),
        checkpoint_interval_s=checkpoint.interval_s if checkpoint else 0.0,
        restart_cost_s=spec.restart_cost_s,
        grace_s=spec.grace_s + (checkpoint.grace_s if checkpoint else 0.0),
        preemptible=spec.preemptible,
        preempts=spec.preempts,
        elastic=spec.elastic,
    )


@functools.lru_cache(maxsize=65_536)
def shape_key(request: GangRequest) -> str:
    """Digest of a request, equal for equal ones in every process (`Avoidance.shape_key`)."""
    # Where it fits does not depend on how long it runs.
    place = replace(request, terms=RunTerms(), reservation="", marks=(), burst_max_cost=0)
    return hashlib.blake2b(repr(place).encode(), digest_size=8).hexdigest()


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
    deadline_at: float = 0.0
    guaranteed: bool = False
    """Its deadline was guaranteed at submit; no later job may take that from it."""
    preemptions: int = 0
    """How often it was stopped for others."""


class TaskPlacement(NamedTuple):
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


class GangPlacement(NamedTuple):
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
    priority: int = 0
    deadline_at: float = 0.0
    guaranteed: bool = False
    preemptions: int = 0


class RunFacts(NamedTuple):
    """What scheduling needs to know of an attempt that holds capacity."""

    job: JobId
    priority: int = 0
    submitted_at: float = 0.0
    started_at: float = 0.0
    """When it was placed; work inside quota is counted in this order."""
    terms: RunTerms = RunTerms()
    deadline_at: float = 0.0
    guaranteed: bool = False
    preemptions: int = 0
    immune_until: float = 0.0
    """Wall time until which it is no victim, but for operators and bookings."""
    apart: AntiAffinity | None = None
    """Jobs that it is kept apart from; the queue is in the name."""
    reservation: str = ""
    marks: tuple[str, ...] = ()
    """As in its request, as is `reservation`."""


def run_facts(placement: GangPlacement, *, started_at: float) -> RunFacts:
    """What is known of a job once it is placed; `started_at`: wall time of the commit."""
    terms = placement.request.terms
    return RunFacts(  # by place, as keywords would take as long again
        placement.job,
        placement.priority,
        placement.submitted_at,
        started_at,
        terms,
        placement.deadline_at,
        placement.guaranteed,
        placement.preemptions,
        immune_until(terms, placement.preemptions, started_at=started_at),
        placement.request.anti_affinity,
        placement.request.reservation,
        placement.request.marks,
    )


def immune_until(terms: RunTerms, preemptions: int, *, started_at: float) -> float:
    """Until when a run is no victim because it was one before; 0 when it never was."""
    if not preemptions:
        return 0.0
    return started_at + max(LEAST_IMMUNITY_S, 2 * terms.restart_cost_s)


@dataclass(frozen=True, slots=True)
class Nomination:
    """Capacity held for a named job while its victims end, until it starts or the hold ends."""

    job: JobId
    cluster: ClusterName
    queue: QueueName
    tasks: tuple[TaskPlacement, ...]
    """Exactly what the job will take."""
    until: float
    """Wall time: the victims' grace and the bind deadline."""
    victims: tuple[AttemptId, ...] = ()


@dataclass(frozen=True, slots=True)
class Resize:
    """A running attempt's new size: a task group of it grows or shrinks while it runs."""

    attempt: AttemptId
    cluster: ClusterName
    generation: int
    """Rises by one with each change of size."""
    add: tuple[TaskPlacement, ...] = ()
    drop: tuple[int, ...] = ()
    """Ranks of the tasks that end."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a guaranteed deadline needs of a pool from `start` to `end`, on whatever nodes."""

    id: str
    start: float
    end: float
    cluster: ClusterName
    kind: str
    """Device kind; empty for nodes as a whole."""
    blocks: int
    queues: tuple[QueueName, ...] = ()
    """Whose job it is."""


@dataclass(frozen=True, slots=True)
class Promise:
    """When a blocked job will start by present knowledge: its backfill reservation."""

    job: JobId
    cluster: ClusterName
    start: float


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
    again: bool = False
    """It is worth another try in the next cycle, even if nothing changes."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All decisions of one cycle."""

    placements: tuple[GangPlacement, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    nominations: tuple[Nomination, ...] = ()
    """New ones; each with the evictions that free what it holds."""
    released: tuple[JobId, ...] = ()
    """Jobs whose nominations end because others take what was held for them."""
    resizes: tuple[Resize, ...] = ()
    promises: tuple[Promise, ...] = ()  # backfill reservations, by the order of their jobs
    cleared: tuple[JobId, ...] = ()
    """Jobs for which nodes take nothing else, though nobody knows when they will be free."""

    @property
    def empty(self) -> bool:
        """True when there is nothing to commit."""
        return not (self.placements or self.evictions or self.nominations or self.resizes)
