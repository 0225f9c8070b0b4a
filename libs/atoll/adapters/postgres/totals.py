"""Sums over clusters."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from atoll.adapters.postgres.cluster_rows import CLUSTERS, cluster_from
from atoll.adapters.postgres.sql import Sql
from atoll.core.model.inventory import Cluster
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.core.state.mig import table_for
from atoll.ports.store.submission import ClusterTotals

NODES: Final = """
SELECT cluster, count(*) AS nodes, count(*) FILTER (WHERE up) AS up, sum(cpu_milli)::bigint AS cpu,
    sum(memory_bytes)::bigint AS memory
FROM nodes WHERE present GROUP BY cluster
"""
DEVICES: Final = """
SELECT n.cluster, d.key AS kind, sum((d.value->>0)::integer)::bigint AS devices,
    sum((d.value->>1)::bigint) FILTER (
        WHERE n.up AND NOT n.cordoned AND n.inventory_number > n.suspect_since
    )::bigint AS blocks
FROM nodes n, jsonb_each(n.devices) AS d WHERE n.present GROUP BY n.cluster, d.key
"""
USED: Final = """
SELECT n.cluster, sum(l.cpu_milli)::bigint AS cpu, sum(l.memory_bytes)::bigint AS memory
FROM allocations l JOIN nodes n ON n.id = l.node WHERE n.present GROUP BY n.cluster
"""
USED_DEVICES: Final = """
SELECT n.cluster, n.kinds[l.device + 1] AS kind, sum(l.blocks)::bigint AS blocks,
    sum(bit_count(l.slice_mask::bit(8)))::integer AS slices
FROM allocations l JOIN nodes n ON n.id = l.node
WHERE l.device >= 0 AND n.present AND n.up AND NOT n.cordoned
    AND n.inventory_number > n.suspect_since AND l.device <> ALL (n.broken)
GROUP BY 1, 2
"""
LIVE: Final = "SELECT cluster, count(*) AS live FROM attempts WHERE live GROUP BY cluster"


async def read_totals(sql: Sql) -> list[ClusterTotals]:
    """All clusters with sums, by name, as of the open snapshot."""
    clusters = [cluster_from(row) for row in await sql.rows(f"{CLUSTERS} ORDER BY c.name")]
    nodes = {row["cluster"]: row for row in await sql.rows(NODES)}
    used = {row["cluster"]: row for row in await sql.rows(USED)}
    live = {row["cluster"]: row["live"] for row in await sql.rows(LIVE)}
    devices, free = await _read_devices(sql)
    return [
        ClusterTotals(
            cluster=cluster,
            nodes=nodes[cluster.name]["nodes"] if cluster.name in nodes else 0,
            nodes_up=nodes[cluster.name]["up"] if cluster.name in nodes else 0,
            cpu_milli=nodes[cluster.name]["cpu"] if cluster.name in nodes else 0,
            memory_bytes=nodes[cluster.name]["memory"] if cluster.name in nodes else 0,
            used_cpu_milli=used[cluster.name]["cpu"] if cluster.name in used else 0,
            used_memory_bytes=used[cluster.name]["memory"] if cluster.name in used else 0,
            devices=devices[cluster.name],
            free_blocks=offered(cluster, free[cluster.name]),
            live_attempts=live.get(cluster.name, 0),
        )
        for cluster in clusters
    ]


Amounts = dict[str, dict[str, int]]


async def _read_devices(sql: Sql) -> tuple[Amounts, Amounts]:
    devices: Amounts = defaultdict(dict)
    free: Amounts = defaultdict(dict)
    for row in await sql.rows(DEVICES):
        devices[row["cluster"]][row["kind"]] = row["devices"]
        free[row["cluster"]][row["kind"]] = row["blocks"] or 0
    for row in await sql.rows(USED_DEVICES):
        taken = row["blocks"] + slice_blocks(row["kind"], row["slices"])
        if row["kind"] in free[row["cluster"]]:
            free[row["cluster"]][row["kind"]] -= taken
    return devices, free


def offered(cluster: Cluster, free: Mapping[str, int]) -> Mapping[str, int]:
    """What is free where new work may go: nothing in a cluster that takes none."""
    return free if cluster.schedulable else dict.fromkeys(free, 0)


def slice_blocks(kind: str, slices: int) -> int:
    """Memory slices of a device as blocks: MIG devices count by them."""
    table = table_for(kind, 0)
    return BLOCKS_PER_DEVICE * slices // (table.slices if table else 8)
