"""Commits a whole plan in one fenced transaction: placements, stops for others, and holds."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from atoll.core.model.ids import AttemptId, ClusterName, JobId, job_of
from atoll.core.model.inventory import Cluster
from atoll.core.model.job import Job
from atoll.core.model.lifecycle import JobState, JobWish, StopCause
from atoll.core.model.messages import Decision
from atoll.core.model.plan import Nomination, Plan
from atoll.placement.usecases.commit import Committed, place
from atoll.placement.usecases.revoke import Locked, Revoked, revoke_locked
from atoll.ports.store.common import Fence
from atoll.ports.store.placement import PlacementStore, PlacementTx


@dataclass(frozen=True, slots=True)
class PlanCommitted:
    """What a commit left behind."""

    committed: Committed
    """Its decisions are those of the stops, too."""
    revoked: Revoked
    nominations: tuple[Nomination, ...] = ()
    """Those whose jobs still queue."""


async def commit_plan(
    store: PlacementStore,
    fence: Fence,
    plan: Plan,
    *,
    bind_timeout_s: float,
    lapsed: Collection[JobId] = (),
) -> PlanCommitted:
    """Commit a verified plan; `lapsed`: jobs for which nothing is held any more.

    A job that changed since the snapshot falls out with its gang and with the stops that only
    it needed; the rest stands. Raises StaleEpoch, StoreUnavailable (nothing happened) or
    UnknownOutcome.
    """
    async with store.begin() as tx:
        after = await tx.require(fence)
        locked = await _lock(tx, plan)
        nominations = tuple(n for n in plan.nominations if _waits(locked.jobs.get(n.job)))
        causes = _causes(plan, nominations)
        revoked = await revoke_locked(tx, after, causes, locked=locked)
        committed = await place(
            tx,
            after,
            plan.placements,
            clusters=_beyond(locked.clusters, revoked.decisions),
            bind_timeout_s=bind_timeout_s,
        )
        started = [item.placement.job for item in committed.placed]
        await tx.end_nominations(sorted({*lapsed, *plan.released, *started}))
        await tx.put_nominations(after.shard, nominations)
    decisions = (*revoked.decisions, *committed.decisions)
    return PlanCommitted(replace(committed, decisions=decisions), revoked, nominations)


async def _lock(tx: PlacementTx, plan: Plan) -> Locked:
    """Everything in the one order of locks: clusters, sessions, jobs, attempts."""
    victims = sorted({eviction.attempt for eviction in plan.evictions})
    of_victims = {eviction.cluster for eviction in plan.evictions}
    clusters = await tx.lock_clusters(sorted({p.cluster for p in plan.placements} | of_victims))
    if not (plan.evictions or plan.nominations):
        return Locked(clusters, {}, {})
    clusters |= await tx.lock_sessions(sorted(of_victims))
    # All jobs at once, also those that are placed: two batches would have two orders.
    jobs = {job_of(victim) for victim in victims} | {n.job for n in plan.nominations}
    rows = await tx.lock_jobs(jobs | {p.job for p in plan.placements})
    return Locked(clusters, rows, await tx.lock_attempts(victims))


def _waits(job: Job | None) -> bool:
    return job is not None and job.state is JobState.QUEUED and job.wish is JobWish.RUN


def _causes(plan: Plan, nominations: Sequence[Nomination]) -> dict[AttemptId, StopCause]:
    needed = {victim for nomination in nominations for victim in nomination.victims}
    jobs = {nomination.job for nomination in nominations}
    return {
        e.attempt: e.cause
        for e in plan.evictions
        if e.for_job is None or e.for_job in jobs or e.attempt in needed
    }


def _beyond(
    clusters: Mapping[ClusterName, Cluster], decisions: Sequence[Decision]
) -> dict[ClusterName, Cluster]:
    """Clusters as they stand once decisions have their numbers."""
    heads = {decision.cluster: decision.number for decision in decisions}
    return {
        name: replace(cluster, head_seq=max(cluster.head_seq, heads.get(name, 0)))
        for name, cluster in clusters.items()
    }
