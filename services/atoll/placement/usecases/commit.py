"""Makes a plan true: the only place where an allocation is born."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from atoll.core.model.ids import ClusterName, JobId, job_of
from atoll.core.model.inventory import Cluster
from atoll.core.model.job import Attempt
from atoll.core.model.lifecycle import JobEvent, JobState
from atoll.core.model.messages import ChangeKind, Decision, DecisionKind, Event
from atoll.core.model.plan import GangPlacement
from atoll.core.model.trace import job_trace
from atoll.ports.store.common import Allocation, Change, Fence
from atoll.ports.store.placement import PlacementTx


@dataclass(frozen=True, slots=True)
class Placed:
    """A placement that was committed, and the attempt it became."""

    placement: GangPlacement
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit left behind."""

    fence: Fence
    """For the next commit."""
    placed: tuple[Placed, ...]
    dropped: tuple[GangPlacement, ...]
    """Lost their compare-and-set, or their cluster takes nothing any more."""
    decisions: tuple[Decision, ...]
    again: bool = False
    """Another cycle at once is worthwhile."""
    prompt: frozenset[JobId] = frozenset()
    """Of those placed: jobs that had to wait for nothing but the leader."""


async def place(
    tx: PlacementTx,
    fence: Fence,
    placements: Sequence[GangPlacement],
    *,
    clusters: Mapping[ClusterName, Cluster],
    bind_timeout_s: float,
) -> Committed:
    """Make verified placements true in an open transaction; `clusters` are locked.

    A job that changed since the snapshot falls out with its gang; the rest stands.
    """
    wanted = [p for p in placements if _takes_work(clusters, p.cluster)]
    won = await tx.place_jobs(wanted)
    now = await tx.now()
    placed = _numbered(
        [p for p in wanted if p.job in won],
        clusters=clusters,
        fence=fence,
        now=now,
        bind_by=now + bind_timeout_s,
    )
    decisions = [_start(p) for p in placed]
    await _write(tx, placed, decisions)
    dropped = tuple(p for p in placements if p.job not in won)
    return Committed(fence, tuple(placed), dropped, tuple(decisions))


def _takes_work(clusters: Mapping[ClusterName, Cluster], name: ClusterName) -> bool:
    cluster = clusters.get(name)
    return cluster is not None and cluster.schedulable


def _numbered(
    winners: Sequence[GangPlacement],
    *,
    clusters: Mapping[ClusterName, Cluster],
    fence: Fence,
    now: float,
    bind_by: float,
) -> list[Placed]:
    numbers: dict[ClusterName, Iterator[int]] = {
        name: count(cluster.head_seq + 1) for name, cluster in clusters.items()
    }
    return [
        Placed(
            placement,
            Attempt(
                id=placement.attempt,
                cluster=placement.cluster,
                shard=fence.shard,
                epoch=fence.epoch,
                number=next(numbers[placement.cluster]),
                tasks=placement.tasks,
                created_at=now,
                bind_by=bind_by,
            ),
        )
        for placement in winners
    ]


def _start(placed: Placed) -> Decision:
    attempt = placed.attempt
    return Decision(
        cluster=attempt.cluster,
        number=attempt.number,
        epoch=attempt.epoch,
        kind=DecisionKind.START,
        attempt=attempt.id,
        tasks=attempt.tasks,
        bind_by=attempt.bind_by,
        trace=job_trace(placed.placement.trace, placed.placement.job),
    )


async def _write(tx: PlacementTx, placed: Sequence[Placed], decisions: Sequence[Decision]) -> None:
    attempts = [p.attempt for p in placed]
    await tx.add_attempts(attempts)
    await tx.add_allocations([row for a in attempts for row in allocation_rows(a)])
    await tx.add_decisions(decisions)
    await tx.add_events([_event(p) for p in placed])
    await tx.changed(_changes(attempts))


def allocation_rows(attempt: Attempt) -> Iterator[Allocation]:
    """The allocations of an attempt: a row per task, and one per share of a device."""
    for task in attempt.tasks:
        yield Allocation(
            attempt=attempt.id,
            rank=task.rank,
            node=task.node,
            cpu_milli=task.cpu_milli,
            memory_bytes=task.memory_bytes,
        )
        for grant in task.devices:
            yield Allocation(attempt=attempt.id, rank=task.rank, node=task.node, device=grant)


def _event(placed: Placed) -> Event:
    return Event(
        job=placed.placement.job,
        queue=placed.placement.queue,
        event=JobEvent.PLACED,
        state=JobState.ASSIGNED,
        at=placed.attempt.created_at,
        attempt=placed.attempt.id,
        cluster=placed.attempt.cluster,
    )


def _changes(attempts: Sequence[Attempt]) -> list[Change]:
    jobs: list[JobId] = [job_of(attempt.id) for attempt in attempts]
    return [
        Change(ChangeKind.JOBS, ids=tuple(jobs)),
        Change(ChangeKind.ATTEMPTS, ids=tuple(attempt.id for attempt in attempts)),
        Change(ChangeKind.DECISIONS, names=tuple(sorted({a.cluster for a in attempts}))),
    ]
