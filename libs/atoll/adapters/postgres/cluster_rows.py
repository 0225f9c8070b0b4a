"""Rows of clusters, nodes, queues, allocations and decisions, and back."""

import json
from typing import Final

from atoll.adapters.postgres.sql import Record
from atoll.core.model.burst import CLUSTER_PREFIX
from atoll.core.model.ids import (
    AttemptId,
    ClusterName,
    Epoch,
    NodeId,
    QueueName,
    ShardId,
    Tenant,
)
from atoll.core.model.inventory import Cluster, ClusterState, Node
from atoll.core.model.job import Queue
from atoll.core.model.messages import Decision, DecisionKind
from atoll.core.model.resources import DeviceGrant
from atoll.ports.store.common import Allocation
from atoll.wire.decision import decode_decision, encode_decision
from atoll.wire.inventory import decode_node

CLUSTER_COLUMNS: Final = (
    "c.name, c.shard, c.backend, c.can_guard, c.state, c.cordoned, c.cordon_reason, c.levels,"
    " c.labels, s.session_epoch, s.instance, s.holder, s.lease_until, s.last_seen, c.silent_s,"
    " c.head_seq, s.sent_seq, s.acked_seq, s.report_seq, s.inventory_number, c.revision"
)
CLUSTERS: Final = f"SELECT {CLUSTER_COLUMNS} FROM clusters c JOIN sessions s ON s.cluster = c.name"
# Rented machines come and go every day; who forgot one knows of it.
CLUSTERS_OF_SHARD: Final = f"""
{CLUSTERS} WHERE c.shard = $1 AND NOT (c.state = 'RETIRED' AND c.name LIKE '{CLUSTER_PREFIX}%')
ORDER BY c.name
"""
NODE_COLUMNS: Final = (
    "n.id, n.cluster, n.inventory, n.inventory_number, n.present, n.cordoned, n.cordon_reason,"
    " n.suspect_since, n.revision"
)
QUEUE_INSERTED: Final = (
    "name", "tenant", "description", "max_queued_jobs", "device_limit", "created_at",
    "generation", "revision", "weight", "deserved", "kind_limits", "preempts",
)  # fmt: skip
QUEUE_COLUMNS: Final = ", ".join(f"q.{name}" for name in QUEUE_INSERTED)
DECISION_INSERTED: Final = (
    "cluster", "number", "kind", "attempt", "epoch_generation", "epoch_revision", "payload",
)  # fmt: skip
DECISION_COLUMNS: Final = ", ".join(f"d.{name}" for name in DECISION_INSERTED)
ALLOCATION_INSERTED: Final = (
    "attempt", "rank", "device", "slice_mask", "node", "cpu_milli", "memory_bytes", "blocks",
    "profile",
)  # fmt: skip
ALLOCATION_COLUMNS: Final = ", ".join(f"l.{name}" for name in ALLOCATION_INSERTED)
NO_DEVICE: Final = -1
"""Device of the row that carries CPU and memory."""


def cluster_from(row: Record) -> Cluster:
    """A cluster from CLUSTER_COLUMNS."""
    return Cluster(
        name=ClusterName(row["name"]),
        shard=ShardId(row["shard"]),
        backend=row["backend"],
        can_guard=row["can_guard"],
        state=ClusterState(row["state"]),
        cordoned=row["cordoned"],
        cordon_reason=row["cordon_reason"],
        levels=tuple(row["levels"]),
        labels=tuple(sorted(json.loads(row["labels"]).items())),
        session_epoch=row["session_epoch"],
        agent_instance=row["instance"],
        holder=row["holder"],
        lease_until=row["lease_until"],
        last_seen=row["last_seen"],
        silent_s=row["silent_s"],
        head_seq=row["head_seq"],
        sent_seq=row["sent_seq"],
        acked_seq=row["acked_seq"],
        report_seq=row["report_seq"],
        inventory_number=row["inventory_number"],
        revision=row["revision"],
    )


def node_from(row: Record) -> Node:
    """A node from NODE_COLUMNS."""
    return Node(
        id=NodeId(row["id"]),
        cluster=ClusterName(row["cluster"]),
        inventory=decode_node(row["inventory"]),
        inventory_number=row["inventory_number"],
        present=row["present"],
        cordoned=row["cordoned"],
        cordon_reason=row["cordon_reason"],
        suspect_since=row["suspect_since"],
        revision=row["revision"],
    )


def queue_from(row: Record) -> Queue:
    """A queue from QUEUE_COLUMNS."""
    return Queue(
        name=QueueName(row["name"]),
        tenant=Tenant(row["tenant"]),
        description=row["description"],
        max_queued_jobs=row["max_queued_jobs"],
        device_limit=row["device_limit"],
        created_at=row["created_at"],
        generation=row["generation"],
        revision=row["revision"],
        weight=row["weight"],
        deserved=_amounts(row["deserved"]),
        kind_limits=_amounts(row["kind_limits"]),
        preempts=row["preempts"],
    )


def queue_values(queue: Queue) -> tuple[object, ...]:
    """Values of QUEUE_INSERTED."""
    return (
        queue.name, queue.tenant, queue.description, queue.max_queued_jobs, queue.device_limit,
        queue.created_at, queue.generation, queue.revision, queue.weight,
        json.dumps(dict(queue.deserved)), json.dumps(dict(queue.kind_limits)), queue.preempts,
    )  # fmt: skip


def allocation_values(row: Allocation) -> tuple[object, ...]:
    """Values of ALLOCATION_INSERTED."""
    grant = row.device or DeviceGrant(NO_DEVICE)
    return (
        row.attempt, row.rank, grant.index, grant.slice_mask, row.node, row.cpu_milli,
        row.memory_bytes, grant.blocks, grant.profile,
    )  # fmt: skip


def allocation_from(row: Record) -> Allocation:
    """An allocation from ALLOCATION_COLUMNS."""
    attempt, rank, device, mask, node, cpu_milli, memory_bytes, blocks, profile = row
    return Allocation(
        attempt=AttemptId(attempt),
        rank=rank,
        node=NodeId(node),
        cpu_milli=cpu_milli,
        memory_bytes=memory_bytes,
        device=None if device == NO_DEVICE else DeviceGrant(device, blocks, mask, profile=profile),
    )


def decision_values(decision: Decision) -> tuple[object, ...]:
    """Values of DECISION_INSERTED."""
    return (
        decision.cluster, decision.number, decision.kind.value, decision.attempt,
        decision.epoch.generation, decision.epoch.revision, encode_decision(decision),
    )  # fmt: skip


def decision_from(row: Record) -> Decision:
    """A decision from DECISION_COLUMNS. A voided one has lost its payload."""
    if row["kind"] != DecisionKind.VOID:
        return decode_decision(row["payload"], ClusterName(row["cluster"]))
    return Decision(
        cluster=ClusterName(row["cluster"]),
        number=row["number"],
        epoch=Epoch(row["epoch_generation"], row["epoch_revision"]),
        kind=DecisionKind.VOID,
        attempt=AttemptId(row["attempt"]),
    )


def _amounts(data: str) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(json.loads(data).items()))
