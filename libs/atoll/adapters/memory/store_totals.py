"""Sums over clusters in memory."""

from collections import Counter
from collections.abc import Iterable

from atoll.adapters.memory.store_rows import Tables
from atoll.core.model.ids import ClusterName
from atoll.core.model.inventory import Cluster, Device, Node
from atoll.core.model.lifecycle import TERMINAL_ATTEMPT
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.core.state.mig import table_for
from atoll.ports.store.common import Allocation
from atoll.ports.store.submission import ClusterTotals


def totals(tables: Tables) -> list[ClusterTotals]:
    """All clusters with sums, by name."""
    return [_total(tables, cluster) for _, cluster in sorted(tables.clusters.items())]


def _total(tables: Tables, cluster: Cluster) -> ClusterTotals:
    nodes = {n.id: n for n in tables.nodes.values() if n.cluster == cluster.name and n.present}
    held = [row for rows in tables.allocations.values() for row in rows if row.node in nodes]
    return ClusterTotals(
        cluster=cluster,
        nodes=len(nodes),
        nodes_up=sum(n.inventory.up for n in nodes.values()),
        cpu_milli=sum(n.inventory.cpu_milli for n in nodes.values()),
        memory_bytes=sum(n.inventory.memory_bytes for n in nodes.values()),
        used_cpu_milli=sum(row.cpu_milli for row in held),
        used_memory_bytes=sum(row.memory_bytes for row in held),
        devices=Counter(d.kind for n in nodes.values() for d in n.inventory.devices),
        free_blocks=_offered(cluster, _free_blocks(nodes.values(), held)),
        live_attempts=_live_on(tables, cluster.name),
    )


def _live_on(tables: Tables, name: ClusterName) -> int:
    return sum(
        a.cluster == name and a.state not in TERMINAL_ATTEMPT for a in tables.attempts.values()
    )


def _free_blocks(nodes: Iterable[Node], held: Iterable[Allocation]) -> dict[str, int]:
    free: Counter[str] = Counter()
    slices: Counter[str] = Counter()
    usable: dict[tuple[int, int], Device] = {}
    for node in nodes:
        local = dict(node.inventory.local_use.blocks)
        for device in node.inventory.devices:
            free[device.kind] += 0
            if device.healthy and node.schedulable:
                usable[node.id, device.index] = device
                free[device.kind] += BLOCKS_PER_DEVICE - local.get(device.index, 0)
    for row in held:
        if row.device is not None and (row.node, row.device.index) in usable:
            kind = usable[row.node, row.device.index].kind
            free[kind] -= row.device.blocks
            slices[kind] += (row.device.slice_mask & 0xFF).bit_count()
    return {kind: blocks - slice_blocks(kind, slices[kind]) for kind, blocks in free.items()}


def _offered(cluster: Cluster, free: dict[str, int]) -> dict[str, int]:
    return free if cluster.schedulable else dict.fromkeys(free, 0)


def slice_blocks(kind: str, slices: int) -> int:
    """Memory slices of devices as blocks: MIG devices count by them."""
    table = table_for(kind, 0)
    return BLOCKS_PER_DEVICE * slices // (table.slices if table else 8)
