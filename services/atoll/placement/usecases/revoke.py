"""Takes decisions back: VOID what was never sent, STOP what the agent may have seen.

Until the agent confirms that a stopped attempt is not running and never will, its job and its
allocations stay held; only a proven loss or an operator's word ends an attempt without it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from atoll.core.model.ids import AttemptId, ClusterName, JobId, job_of
from atoll.core.model.inventory import Cluster
from atoll.core.model.job import Attempt, Job
from atoll.core.model.lifecycle import (
    TERMINAL_ATTEMPT,
    AttemptEvent,
    AttemptWish,
    StopCause,
)
from atoll.core.model.messages import ChangeKind, Decision, DecisionKind, Event, Report
from atoll.core.model.outcome import Outcome, apply_report
from atoll.core.model.reason import ReasonCode
from atoll.ports.store.common import Change, Fence
from atoll.ports.store.placement import PlacementStore, PlacementTx


class Locked(NamedTuple):
    """Rows under lock: clusters with their sessions' counters, jobs, attempts."""

    clusters: Mapping[ClusterName, Cluster]
    jobs: Mapping[JobId, Job]
    attempts: Mapping[AttemptId, Attempt]


@dataclass(frozen=True, slots=True)
class Revoked:
    """What became of attempts that were to be revoked."""

    fence: Fence
    voided: tuple[Outcome, ...] = ()
    """Ended at once: never sent, or lost."""
    stopping: tuple[Attempt, ...] = ()
    """Told to stop; they end by their agent's report."""
    decisions: tuple[Decision, ...] = ()


async def revoke(
    store: PlacementStore, fence: Fence, causes: Mapping[AttemptId, StopCause]
) -> Revoked:
    """Revoke live attempts, each with its cause, in one fenced transaction.

    Attempts that have ended, or are stopping already, are left as they are.
    """
    async with store.begin() as tx:
        after = await tx.require(fence)
        return await revoke_locked(tx, after, causes, locked=await _lock(tx, causes))


async def revoke_locked(
    tx: PlacementTx, fence: Fence, causes: Mapping[AttemptId, StopCause], *, locked: Locked
) -> Revoked:
    """Revoke attempts in an open transaction that has locked all that they touch."""
    clusters, jobs, attempts = locked
    running = [a for a in attempts.values() if a.id in causes and _may_be_revoked(a)]
    if not running:
        return Revoked(fence)
    unsent = [a for a in running if a.number > clusters[a.cluster].sent_seq]
    sent = [a for a in running if a.number <= clusters[a.cluster].sent_seq]
    now = await tx.now()
    voided = outcomes_of(
        [replace(a, cause=causes[a.id]) for a in unsent], jobs, AttemptEvent.VOIDED, now=now
    )
    await tx.void_decisions([a.id for a in unsent])
    await end_attempts(tx, voided, now=now)
    stopping = [replace(a, wish=AttemptWish.STOP, cause=causes[a.id]) for a in sent]
    decisions = _stops(stopping, clusters, fence)
    await _write_stops(tx, stopping, decisions)
    return Revoked(fence, tuple(voided), tuple(stopping), tuple(decisions))


async def declare_lost(
    store: PlacementStore,
    fence: Fence,
    attempts: Iterable[AttemptId],
    *,
    last_seen: Mapping[ClusterName, float],
) -> Revoked:
    """End attempts of silent clusters; a cluster whose heartbeat raced is left alone."""
    async with store.begin() as tx:
        after = await tx.require(fence)
        clusters, jobs, rows = await _lock(tx, attempts)
        now = await tx.now()
        lost = [
            a
            for a in rows.values()
            if a.state not in TERMINAL_ATTEMPT
            and clusters[a.cluster].last_seen == last_seen[a.cluster]
        ]
        outcomes = outcomes_of(lost, jobs, AttemptEvent.LOST, now=now)
        # A late agent still finds the STOP after its START, and drops what it holds of the attempt.
        decisions = _stops(lost, clusters, fence)
        await end_attempts(tx, outcomes, now=now)
        await tx.add_decisions(decisions)
        await tx.changed([_decided(decisions)])
    return Revoked(after, tuple(outcomes), (), tuple(decisions))


async def end_attempts(tx: PlacementTx, outcomes: Sequence[Outcome], *, now: float) -> None:
    """Write ended attempts with their jobs, and end their allocations, in the open transaction."""
    await tx.update_jobs([o.job for o in outcomes])
    await tx.update_attempts([o.attempt for o in outcomes])
    await tx.end_allocations([o.attempt.id for o in outcomes])
    await tx.add_events([event_of(o, now=now) for o in outcomes])
    await tx.changed([
        # The leader learns what it ended, and which jobs are back, as it learns the rest.
        Change(ChangeKind.JOBS, ids=tuple(o.job.id for o in outcomes), echo=True),
        Change(ChangeKind.ATTEMPTS, ids=tuple(o.attempt.id for o in outcomes), echo=True),
    ])


def event_of(outcome: Outcome, *, now: float) -> Event:
    """The history entry of a job's move."""
    job = outcome.job
    return Event(
        job=job.id,
        queue=job.queue,
        event=outcome.event,
        state=job.state,
        at=now,
        attempt=outcome.attempt.id,
        cluster=outcome.attempt.cluster,
        reason=job.reason,
        message=job.message,
    )


def outcomes_of(
    attempts: Sequence[Attempt], jobs: Mapping[JobId, Job], event: AttemptEvent, *, now: float
) -> list[Outcome]:
    """What an event that no agent reported makes of attempts; those it cannot move are left out."""
    found = (
        apply_report(jobs[job_of(a.id)], a, _report(a, event, now=now), now=now) for a in attempts
    )
    return [outcome for outcome in found if outcome is not None]


def _report(attempt: Attempt, event: AttemptEvent, *, now: float) -> Report:
    """What the leader concludes of an attempt, in the form in which agents report."""
    return Report(
        cluster=attempt.cluster,
        number=0,
        attempt=attempt.id,
        event=event,
        at=now,
        reason=ReasonCode.CLUSTER_LOST if event is AttemptEvent.LOST else None,
    )


async def _lock(tx: PlacementTx, ids: Iterable[AttemptId]) -> Locked:
    wanted = sorted(ids)
    # Which clusters is known only from the rows; attempts never change their cluster, so reading
    # them before their lock keeps the order shards, clusters, sessions, jobs, attempts.
    names = await tx.clusters_of(wanted)
    clusters = await tx.lock_sessions(sorted(set(names.values())))
    jobs = await tx.lock_jobs({job_of(attempt) for attempt in wanted})
    attempts = await tx.lock_attempts(wanted)
    return Locked(clusters, jobs, attempts)


def _may_be_revoked(attempt: Attempt) -> bool:
    return attempt.state not in TERMINAL_ATTEMPT and attempt.wish is AttemptWish.RUN


def _stops(
    attempts: Sequence[Attempt], clusters: Mapping[ClusterName, Cluster], fence: Fence
) -> list[Decision]:
    head = {name: cluster.head_seq for name, cluster in clusters.items()}
    stops: list[Decision] = []
    for attempt in attempts:
        head[attempt.cluster] += 1
        stops.append(
            Decision(
                cluster=attempt.cluster,
                number=head[attempt.cluster],
                epoch=fence.epoch,
                kind=DecisionKind.STOP,
                attempt=attempt.id,
                cause=attempt.cause,
            )
        )
    return stops


async def _write_stops(
    tx: PlacementTx, stopping: Sequence[Attempt], decisions: Sequence[Decision]
) -> None:
    await tx.update_attempts(stopping)
    await tx.add_decisions(decisions)
    await tx.changed([
        Change(ChangeKind.ATTEMPTS, ids=tuple(a.id for a in stopping)),
        _decided(decisions),
    ])


def _decided(decisions: Sequence[Decision]) -> Change:
    return Change(ChangeKind.DECISIONS, names=tuple(sorted({d.cluster for d in decisions})))
