"""The verbs about what the scheduler would do and why, and what they answer, as values.

Times are unix seconds; 0 means: nobody knows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from atoll.api.common.v1 import common_pb2
from atoll.api.placement.v1 import placement_pb2 as pb
from atoll.client import reading
from atoll.client.calls import PLACEMENT, Call
from atoll.client.candidates import Candidate, candidate_of
from atoll.client.views import Eta, Holder, Reason, Tally
from atoll.core.model.lifecycle import JobState
from atoll.core.model.plan import TaskPlacement
from atoll.wire.job import state_from_proto
from atoll.wire.placement import tasks_from_proto


@dataclass(frozen=True, slots=True)
class Victim:
    """A run that would be stopped for a job."""

    attempt: str
    queue: str
    cluster: str
    priority: int
    grace_s: float


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """What would become of a job that is submitted now."""

    summary: str
    fits_now: bool
    never_fits: bool
    """Even if nothing else ran there would be no place for it."""
    cluster: str
    """Where it would go, now or once its victims have ended; empty: nowhere for now."""
    tasks: tuple[TaskPlacement, ...]
    victims: tuple[Victim, ...]
    reasons: tuple[Reason, ...]
    tallies: tuple[Tally, ...]
    jobs_ahead: int
    holders: tuple[Holder, ...]
    eta: Eta | None
    as_of: float
    candidates: tuple[Candidate, ...] = ()
    """Where it could run, the best first."""


@dataclass(frozen=True, slots=True)
class KindShare:
    """A queue's devices of one kind, in blocks (100 a device)."""

    kind: str
    held: int
    deserved: int
    borrowed: int
    capacity: int


@dataclass(frozen=True, slots=True)
class QueueShare:
    """A queue as the order sees it; what is below it counts for it."""

    queue: str
    weight: float
    cpu_milli: int
    memory_bytes: int
    kinds: tuple[KindShare, ...]
    dominant_share: float
    past_share: float
    bias: float


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor of a job's place, its weight included."""

    name: str
    value: float
    unit: str
    """`s`: seconds by which it is brought forward in its queue; empty: a plain number."""
    queue: str
    """The queue that it is of; empty: of the job itself."""


@dataclass(frozen=True, slots=True)
class Priority:
    """What places a job, in the order in which it is compared."""

    state: JobState
    order: str
    factors: tuple[Factor, ...]
    jobs_ahead: int
    as_of: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a queued job waits, in short; no code: it was not tried yet."""

    code: str
    message: str
    eta: Eta | None = None
    """When it will start; None: nobody can tell yet."""


def plan(spec: common_pb2.JobSpec) -> Call[pb.PlanJobResponse, PlannedJob]:
    """A dry run; nothing is submitted."""
    return Call(PLACEMENT, "PlanJob", pb.PlanJobRequest(spec=spec), pb.PlanJobResponse, _planned)


def shares(queue: str) -> Call[pb.GetSharesResponse, list[QueueShare]]:
    """Shares of a queue and of all below it; empty: of all."""
    return Call(
        PLACEMENT,
        "GetShares",
        pb.GetSharesRequest(queue=queue),
        pb.GetSharesResponse,
        lambda reply: [_share(share) for share in reply.shares],
    )


def priority(job_id: int) -> Call[pb.GetPriorityResponse, Priority]:
    """The factors of a job; none unless it is queued."""
    return Call(
        PLACEMENT,
        "GetPriority",
        pb.GetPriorityRequest(job_id=job_id),
        pb.GetPriorityResponse,
        _priority,
    )


def waits(job_ids: Iterable[int]) -> Call[pb.ListWaitsResponse, Mapping[int, Wait]]:
    """Why jobs wait, by id; those that are not queued are left out."""
    return Call(
        PLACEMENT,
        "ListWaits",
        pb.ListWaitsRequest(job_ids=job_ids),
        pb.ListWaitsResponse,
        lambda reply: {wait.job_id: _wait(wait) for wait in reply.waits},
        # Nice to have: it is not worth to wait for a leader.
        repeatable=False,
    )


def _wait(wait: pb.Wait) -> Wait:
    eta = reading.read(Eta, wait.eta) if wait.HasField("eta") else None
    return Wait(wait.code, wait.message, eta)


def _planned(reply: pb.PlanJobResponse) -> PlannedJob:
    return reading.read(
        PlannedJob,
        reply,
        tasks=tasks_from_proto(reply.tasks),
        victims=tuple(reading.read(Victim, victim) for victim in reply.victims),
        reasons=tuple(reading.reason_of(reason) for reason in reply.reasons),
        tallies=tuple(reading.tally_of(tally) for tally in reply.tallies),
        holders=tuple(reading.read(Holder, holder) for holder in reply.holders),
        eta=reading.read(Eta, reply.eta) if reply.HasField("eta") else None,
        candidates=tuple(candidate_of(each) for each in reply.candidates),
    )


def _share(share: pb.QueueShare) -> QueueShare:
    kinds = tuple(reading.read(KindShare, kind) for kind in share.kinds)
    return reading.read(QueueShare, share, kinds=kinds)


def _priority(reply: pb.GetPriorityResponse) -> Priority:
    return reading.read(
        Priority,
        reply,
        state=state_from_proto(reply.state),
        factors=tuple(reading.read(Factor, factor) for factor in reply.factors),
    )
