"""Rented machines, and whose jobs may use them. Each is a cluster of its own."""

from collections.abc import Iterable
from types import MappingProxyType
from typing import Final

from atoll.core.model.burst import BurstPolicy, InstanceState, Rental, chain_of
from atoll.core.model.burst_rules import Policies, refusal
from atoll.core.model.ids import ClusterName, JobId, QueueName
from atoll.core.model.plan import GangRequest

HOLDABLE: Final = frozenset({InstanceState.REQUESTED, InstanceState.BOOTING, InstanceState.READY})
"""What is held there may start as soon as the machine has joined."""
COMING: Final = frozenset({InstanceState.REQUESTED, InstanceState.BOOTING})
ENDED: Final = frozenset({InstanceState.TERMINATED, InstanceState.FAILED})


def not_allowed(
    rental: Rental, policies: Policies, *, queue: QueueName, request: GangRequest
) -> str:
    """Why jobs of a queue with a request may not use a rented machine; empty when they may."""
    if not request.burst:
        return "it may not run on rented machines"
    if request.reservation:
        return f"it runs in booking {request.reservation} only"
    if rental.queue is not None and rental.queue not in chain_of(queue):
        return f"it is rented for queue {rental.queue}"
    return refusal(policies, queue, rental.offer)


def stops_at(rental: Rental) -> float | None:
    """From when on what runs there is told to stop; None: it may run on."""
    if rental.state is InstanceState.DRAINING:
        return rental.stop_at
    return 0.0 if rental.state is InstanceState.TERMINATING else None


class RentalBook:
    """Rentals of a world by cluster, until their clusters are forgotten."""

    def __init__(self) -> None:
        self._by_cluster: dict[ClusterName, Rental] = {}
        self._joined: set[ClusterName] = set()
        self.policies: Policies = {}

    def __bool__(self) -> bool:
        return bool(self._by_cluster)

    def __contains__(self, cluster: ClusterName) -> bool:
        return cluster in self._by_cluster

    @property
    def joined(self) -> frozenset[ClusterName]:
        """Clusters whose agents said what there is."""
        return frozenset(self._joined)

    @property
    def values(self) -> tuple[Rental, ...]:
        """The cheapest first."""
        return tuple(sorted(self._by_cluster.values(), key=_cheapness))

    def get(self, cluster: ClusterName) -> Rental | None:
        """The rental that is a cluster."""
        return self._by_cluster.get(cluster)

    def put(self, rentals: Iterable[Rental]) -> list[Rental]:
        """Enter or replace rentals; those that are new or changed."""
        changed = [r for r in rentals if self._by_cluster.get(r.cluster) != r]
        self._by_cluster.update((rental.cluster, rental) for rental in changed)
        return changed

    def drop(self, cluster: ClusterName) -> None:
        """Forget a rental."""
        self._by_cluster.pop(cluster, None)
        self._joined.discard(cluster)

    def set_policies(self, policies: Iterable[BurstPolicy]) -> bool:
        """Replace what queues may rent; whether that is another than before."""
        before = self.policies
        self.policies = MappingProxyType({policy.queue: policy for policy in policies})
        return self.policies != before

    def join(self, cluster: ClusterName) -> bool:
        """A cluster's agent has said what there is; whether that is new of a rented one."""
        new = cluster not in self._joined and cluster in self._by_cluster
        self._joined.add(cluster)
        return new

    def takes_work(self, cluster: ClusterName) -> bool:
        """Whether the machine is there, and is to be kept."""
        rental = self._by_cluster.get(cluster)
        return rental is not None and rental.state in HOLDABLE and cluster in self._joined

    def fault(
        self, cluster: ClusterName, job: JobId, *, queue: QueueName, request: GangRequest
    ) -> str:
        """Why a job may not be placed on a cluster now; empty when it may, or it is not rented."""
        rental = self._by_cluster.get(cluster)
        if rental is None:
            return ""
        if not self.takes_work(cluster):
            return f"rented machine {cluster} takes no work"
        if rental.state is not InstanceState.READY and job not in rental.jobs:
            return f"rented machine {cluster} is kept for others"
        why = not_allowed(rental, self.policies, queue=queue, request=request)
        return f"rented machine {cluster} is not for it: {why}" if why else ""

    def holds(self, cluster: ClusterName, job: JobId) -> bool:
        """Whether something may be held for a job on a cluster: if it is rented, then for it."""
        rental = self._by_cluster.get(cluster)
        return rental is None or (rental.state in HOLDABLE and job in rental.jobs)


def _cheapness(rental: Rental) -> tuple[int, int]:
    return rental.offer.price, rental.instance
