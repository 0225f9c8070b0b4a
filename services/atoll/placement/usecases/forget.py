"""Gives a cluster up for good, on an operator's word that nothing of it runs any more."""

from dataclasses import dataclass

from atoll.core.model.errors import ErrorCode, FailedPrecondition, NotFound
from atoll.core.model.ids import AttemptId, ClusterName, job_of
from atoll.core.model.inventory import Cluster, ClusterState
from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.outcome import Outcome
from atoll.placement.usecases.revoke import end_attempts, outcomes_of
from atoll.ports.store.common import Fence
from atoll.ports.store.placement import PlacementStore, PlacementTx


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was given up."""

    fence: Fence
    outcomes: tuple[Outcome, ...]
    decisions_voided: int


async def forget_cluster(
    store: PlacementStore, fence: Fence, name: ClusterName, *, fenced: bool
) -> Forgotten:
    """Declare a cluster's attempts lost, void its decisions, retire its name.

    Raises NotFound; FailedPrecondition when the caller has not fenced it, or it still answers.
    """
    if not fenced:
        raise FailedPrecondition(
            f"cluster {name} may still run what would start elsewhere: make sure that it does not,"
            " then say so with --i-have-fenced-it",
            code=ErrorCode.CLUSTER_NOT_FENCED,
        )
    async with store.begin() as tx:
        after = await tx.require(fence)
        return await _forget(tx, after, _checked(await _found(tx, name), name))


async def forget_ended(store: PlacementStore, fence: Fence, name: ClusterName) -> Forgotten:
    """Forget the cluster of a rented machine of whose end its provider has assured us.

    Nothing runs there any more, so everything that did is lost, and queues again whatever its
    `on_lost` says. One that somebody has forgotten already is no error.
    """
    async with store.begin() as tx:
        after = await tx.require(fence)
        cluster = await _found(tx, name)
        if cluster is None or cluster.state is ClusterState.RETIRED:
            return Forgotten(after, (), 0)
        return await _forget(tx, after, cluster)


async def _forget(tx: PlacementTx, after: Fence, cluster: Cluster) -> Forgotten:
    attempts = await tx.forget_cluster(cluster.name)
    outcomes = await _lost(tx, attempts)
    await end_attempts(tx, outcomes, now=await tx.now())
    return Forgotten(after, tuple(outcomes), cluster.head_seq - cluster.sent_seq)


async def _found(tx: PlacementTx, name: ClusterName) -> Cluster | None:
    return (await tx.lock_sessions([name])).get(name)


def _checked(cluster: Cluster | None, name: ClusterName) -> Cluster:
    """A cluster that may be forgotten by an operator's word."""
    if cluster is None:
        raise NotFound(
            f"there is no cluster {name}",
            code=ErrorCode.CLUSTER_NOT_FOUND,
            metadata={"cluster": name},
        )
    if cluster.state is ClusterState.RETIRED:
        raise FailedPrecondition(
            f"cluster {name} was forgotten already", code=ErrorCode.CLUSTER_RETIRED
        )
    if cluster.state is ClusterState.ACTIVE and cluster.holder:
        raise FailedPrecondition(
            f"cluster {name} still answers: stop its agent first",
            code=ErrorCode.CLUSTER_NOT_FENCED,
        )
    return cluster


async def _lost(tx: PlacementTx, attempts: list[AttemptId]) -> list[Outcome]:
    jobs = await tx.lock_jobs({job_of(attempt) for attempt in attempts})
    rows = await tx.lock_attempts(attempts)
    return outcomes_of(list(rows.values()), jobs, AttemptEvent.LOST, now=await tx.now())
