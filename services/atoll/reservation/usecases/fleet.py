"""Clusters, nodes, queues, runs and queued jobs of all shards, from what the leaders are told."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from atoll.core.engine.bookings.rules.large_jobs import devices_of
from atoll.core.model.booking import NodeShare
from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId, QueueName, Tenant
from atoll.core.model.inventory import Cluster, ClusterState, Node
from atoll.core.model.job import Queue
from atoll.core.model.lifecycle import TERMINAL_ATTEMPT, AttemptWish, JobState
from atoll.core.model.plan import PendingJob
from atoll.core.state.ledger import Holding
from atoll.core.state.world import World
from atoll.ports.store.placement import AttemptView, ShardDelta

GIVEN_UP: Final = frozenset({ClusterState.LOST, ClusterState.RETIRED})


@dataclass(slots=True)
class FleetCopy:
    """A world that only follows, and the names in it."""

    world: World = field(default_factory=World)
    clusters: dict[ClusterName, Cluster] = field(default_factory=dict)
    queues: dict[QueueName, Queue] = field(default_factory=dict)
    nodes: dict[NodeId, Node] = field(default_factory=dict)
    node_ids: dict[str, NodeId] = field(default_factory=dict)
    """By `cluster/node`."""
    large: set[JobId] = field(default_factory=set)
    """Queued jobs of more than one device, or with a guaranteed deadline."""
    failing: set[NodeId] = field(default_factory=set)
    """Nodes that came to have less, or may have, until somebody has looked after them."""
    _live: set[AttemptId] = field(default_factory=set)

    def absorb(self, delta: ShardDelta) -> bool:
        """Take in rows that changed; whether that matters to the calendar."""
        self._absorb_clusters(delta.clusters)
        # Before its nodes are known: nobody books what is rented.
        self.world.put_rentals(delta.rentals)
        self._absorb_nodes(delta.nodes)
        self._absorb_queues(delta)
        self._absorb_attempts(delta.attempts)
        self._absorb_jobs(delta)
        promised = any(view.pending.guaranteed for view in delta.jobs)
        return bool(delta.clusters or delta.nodes or delta.attempts or promised)

    def present(self) -> Iterator[Node]:
        """Nodes that their agents list."""
        return (node for node in self.nodes.values() if node.present)

    def waiting(self, tenant: Tenant) -> list[PendingJob]:
        """A tenant's queued jobs that are large, by number."""
        found = (self.world.pending(number) for number in sorted(self.large))
        own = {name for name, queue in self.queues.items() if queue.tenant == tenant}
        return [job for job in found if job is not None and job.queue in own]

    def domains(self, cluster: ClusterName, level: str) -> dict[str, list[str]]:
        """Nodes as `cluster/node` by domain as `cluster/domain`; both by name."""
        found: dict[str, list[str]] = {}
        for node in self.present():
            domain = dict(node.inventory.domains).get(level)
            if node.cluster == cluster and domain is not None:
                name = f"{cluster}/{node.inventory.name}"
                found.setdefault(f"{cluster}/{domain}", []).append(name)
        return {domain: sorted(nodes) for domain, nodes in sorted(found.items())}

    def open_clusters(self) -> set[ClusterName]:
        """Clusters that were not given up."""
        return {c.name for c in self.clusters.values() if c.state is not ClusterState.RETIRED}

    def lacks(self, share: NodeShare) -> bool:
        """Whether a node cannot give what is booked of it."""
        node = self.nodes.get(share.node)
        if node is None or not node.present or not node.inventory.up or node.cordoned:
            return True
        cluster = self.clusters.get(node.cluster)
        if cluster is None or cluster.state in GIVEN_UP:
            return True
        well = {device.index for device in node.inventory.devices if device.healthy}
        if share.whole:
            return len(well) < len(node.inventory.devices)
        return not {grant.index for grant in share.devices} <= well

    def kinds(self) -> set[str]:
        """Kinds of devices that any present node has."""
        return {device.kind for node in self.present() for device in node.inventory.devices}

    def _absorb_clusters(self, clusters: Sequence[Cluster]) -> None:
        self.world.set_clusters(clusters)
        self.clusters.update((cluster.name, cluster) for cluster in clusters)
        given_up = {c.name for c in clusters if c.state in GIVEN_UP}
        self.failing.update(n.id for n in self.nodes.values() if n.cluster in given_up)

    def _absorb_nodes(self, nodes: Sequence[Node]) -> None:
        self.world.upsert_nodes(nodes)
        for node in nodes:
            before = self.nodes.get(node.id)
            if before is None or _offer(before) != _offer(node):
                self.failing.add(node.id)
            self.nodes[node.id] = node
            self.node_ids[f"{node.cluster}/{node.inventory.name}"] = node.id

    def _absorb_queues(self, delta: ShardDelta) -> None:
        self.world.set_queues(delta.queues)
        self.world.remove_queues(delta.queues_gone)
        self.queues.update((queue.name, queue) for queue in delta.queues)
        for name in delta.queues_gone:
            self.queues.pop(name, None)

    def _absorb_attempts(self, views: Sequence[AttemptView]) -> None:
        # Ended attempts give back what they held before anybody else takes it.
        ended = [v.attempt.id for v in views if v.attempt.state in TERMINAL_ATTEMPT]
        self.world.end_allocations(ended)
        self._live.difference_update(ended)
        alive = [v for v in views if v.attempt.state not in TERMINAL_ATTEMPT]
        new = [v for v in alive if v.attempt.id not in self._live]
        self.world.add_allocations([
            Holding(v.attempt.id, v.queue, v.attempt.cluster, v.attempt.tasks, v.run) for v in new
        ])
        self._live.update(v.attempt.id for v in new)
        for view in alive:
            self.world.resize(view.attempt.id, view.attempt.tasks)
        self.world.stopping([v.attempt.id for v in alive if v.attempt.wish is AttemptWish.STOP])

    def _absorb_jobs(self, delta: ShardDelta) -> None:
        gone = [v.pending.id for v in delta.jobs if v.state is not JobState.QUEUED]
        self.world.remove_pending(gone)
        self.large.difference_update(gone)
        queued = [v.pending for v in delta.jobs if v.state is JobState.QUEUED]
        self.world.upsert_pending(queued)
        self.large.update(job.id for job in queued if job.guaranteed or devices_of(job) > 1)


def _offer(node: Node) -> tuple[object, ...]:
    """What of a node bookings depend on."""
    inventory = node.inventory
    broken = tuple(device.index for device in inventory.devices if not device.healthy)
    return node.present, inventory.up, node.cordoned, len(inventory.devices), broken
