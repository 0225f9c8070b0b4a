"""What goes on in clusters, and what is wanted of them, as the broker sees it."""

from contextlib import aclosing
from typing import Final

from atoll.adapters.postgres.sql import Record, Sql
from atoll.adapters.postgres.totals import slice_blocks
from atoll.core.model.burst_demand import demand_of
from atoll.core.model.ids import ClusterName, JobId, QueueName
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.ports.store.burst import Capacity, DemandRow, InstanceUse
from atoll.wire.request import decode_request

USES: Final = """
SELECT i.cluster, s.instance <> '' AND s.inventory_number > 0
        AND EXISTS (SELECT 1 FROM nodes n WHERE n.cluster = i.cluster AND n.present) AS joined,
    (SELECT count(*) FROM attempts a WHERE a.cluster = i.cluster AND a.live) AS live,
    (SELECT count(*) FROM nominations h WHERE h.cluster = i.cluster) AS held
FROM burst_instances i JOIN sessions s ON s.cluster = i.cluster WHERE i.live ORDER BY i.cluster
"""
# Healthy devices one by one; a node without devices has one that is empty.
CAPACITIES: Final = """
SELECT n.cluster, d.kind, count(*) AS devices,
    EXISTS (SELECT 1 FROM burst_instances i WHERE i.cluster = n.cluster) AS rented
FROM clusters c JOIN nodes n ON n.cluster = c.name,
    unnest(CASE WHEN n.kinds = '{}' THEN '{""}'::text[] ELSE n.kinds END)
        WITH ORDINALITY AS d(kind, place)
WHERE c.state = 'ACTIVE' AND NOT c.cordoned AND n.present AND n.up AND NOT n.cordoned
    AND n.inventory_number > n.suspect_since AND d.place - 1 <> ALL (n.broken)
    AND (n.kinds = '{}' OR d.kind <> '')
GROUP BY n.cluster, d.kind ORDER BY n.cluster, d.kind
"""
DEMANDED: Final = """
SELECT j.id, j.queue, j.shape, j.submitted_at, j.started_at, j.ended_at, j.attempt,
    coalesce(j.cluster, '') AS cluster, j.depends_on, j.begin_at,
    j.outcome IS NULL AND j.started_at = 0
        AND (j.depends_on <> '{}' OR j.state = 'HELD' OR j.begin_at > extract(epoch FROM now()))
        AS waits
FROM jobs j
"""
DEMAND: Final = f"""
SELECT * FROM (
    {DEMANDED} WHERE j.outcome IS NULL
    UNION ALL {DEMANDED} WHERE j.outcome IS NOT NULL AND j.ended_at > $1
) AS d ORDER BY id
"""
HELD: Final = """
SELECT l.attempt, n.kinds[l.device + 1] AS kind, sum(l.blocks)::bigint AS blocks,
    sum(bit_count(l.slice_mask::bit(8)))::integer AS slices
FROM allocations l JOIN nodes n ON n.id = l.node WHERE l.device >= 0
GROUP BY 1, 2 ORDER BY 1, 3, 4
"""

Held = dict[int, tuple[str, float]]


async def read_uses(sql: Sql) -> list[InstanceUse]:
    """Of all instances that are not ended, by cluster."""
    return [
        InstanceUse(
            ClusterName(row["cluster"]),
            joined=row["joined"],
            live_attempts=row["live"],
            held=row["held"],
        )
        for row in await sql.rows(USES)
    ]


async def read_capacities(sql: Sql) -> list[Capacity]:
    """By cluster and kind, of nodes that take work."""
    return [
        Capacity(ClusterName(row["cluster"]), row["kind"], row["devices"], rented=row["rented"])
        for row in await sql.rows(CAPACITIES)
    ]


async def read_demand(sql: Sql, since: float) -> list[DemandRow]:
    """Jobs that are not ended, or ended after `since`, by number, of the open snapshot."""
    held = await _held(sql)
    found: list[DemandRow] = []
    async with aclosing(sql.chunks(DEMAND, since)) as chunks:
        async for rows in chunks:
            found += [_demand(row, held) for row in rows]
    return found


async def _held(sql: Sql) -> Held:
    """By attempt: kind and devices of what it runs on, the kind it holds most of."""
    held: Held = {}
    async with aclosing(sql.chunks(HELD)) as chunks:
        async for rows in chunks:
            for row in rows:
                blocks = row["blocks"] + slice_blocks(row["kind"] or "", row["slices"])
                held[row["attempt"]] = (row["kind"] or "", blocks / BLOCKS_PER_DEVICE)
    return held


def _demand(row: Record, held: Held) -> DemandRow:
    request = decode_request(row["shape"])
    kind, devices = held.get(row["attempt"]) or demand_of(request)
    return DemandRow(
        JobId(row["id"]),
        QueueName(row["queue"]),
        kind,
        devices,
        submitted_at=row["submitted_at"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        limit_s=request.terms.time_limit_s,
        waits=row["waits"],
        cluster=ClusterName(row["cluster"]),
        after=tuple(map(JobId, row["depends_on"])),
        begin_at=row["begin_at"],
    )
