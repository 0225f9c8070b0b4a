"""Clusters and nodes as the API shows them."""

from collections.abc import Iterable, Sequence

from atoll.api.submission.v1 import submission_pb2
from atoll.core.model.ids import attempt_name
from atoll.core.model.inventory import Node
from atoll.ports.store.common import Allocation
from atoll.ports.store.submission import ClusterTotals
from atoll.wire.inventory import node_to_proto


def cluster_to_proto(totals: ClusterTotals) -> submission_pb2.Cluster:
    """A cluster with its sums."""
    cluster = totals.cluster
    return submission_pb2.Cluster(
        name=cluster.name,
        backend=cluster.backend,
        state=cluster.state.value,
        cordoned=cluster.cordoned,
        cordon_reason=cluster.cordon_reason,
        nodes_up=totals.nodes_up,
        nodes=totals.nodes,
        devices=dict(totals.devices),
        free_blocks=dict(totals.free_blocks),
        cpu_milli=totals.cpu_milli,
        free_cpu_milli=totals.cpu_milli - totals.used_cpu_milli,
        memory_bytes=totals.memory_bytes,
        free_memory_bytes=totals.memory_bytes - totals.used_memory_bytes,
        last_seen=cluster.last_seen,
        head_seq=cluster.head_seq,
        sent_seq=cluster.sent_seq,
        acked_seq=cluster.acked_seq,
        live_attempts=totals.live_attempts,
        can_guard=cluster.can_guard,
    )


def cluster_node_to_proto(node: Node, allocations: Sequence[Allocation]) -> submission_pb2.Node:
    """A node with what is allocated on it; `allocations` are those of this node."""
    return submission_pb2.Node(
        cluster=node.cluster,
        inventory=node_to_proto(node.inventory),
        cordoned=node.cordoned,
        cordon_reason=node.cordon_reason,
        suspect=node.suspect,
        used_cpu_milli=sum(row.cpu_milli for row in allocations),
        used_memory_bytes=sum(row.memory_bytes for row in allocations),
        device_use=_device_use(allocations),
        id=node.id,
    )


def _device_use(allocations: Iterable[Allocation]) -> list[submission_pb2.DeviceUse]:
    return [
        submission_pb2.DeviceUse(
            index=row.device.index,
            blocks=row.device.blocks,
            slice_mask=row.device.slice_mask,
            attempt=attempt_name(row.attempt),
        )
        for row in allocations
        if row.device is not None
    ]
