"""What goes on in clusters, as the broker sees it."""

from typing import Final

from atoll.adapters.postgres.sql import Sql
from atoll.core.model.ids import ClusterName
from atoll.ports.store.burst import Capacity, InstanceUse

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
