"""Jobs as demand for devices: by pages, by number, and which of them have changed.

Every read is a statement of its own, short however many jobs there are.
"""

from collections.abc import AsyncIterator, Iterable
from functools import lru_cache
from typing import Final

from atoll.adapters.postgres.cursors import CHANGES_KEPT_S, HERE, MARGIN_S, Position, expired
from atoll.adapters.postgres.database import Database
from atoll.adapters.postgres.sql import Record, Sql
from atoll.adapters.postgres.totals import slice_blocks
from atoll.core.model.burst_demand import cores_of, demand_of
from atoll.core.model.ids import ClusterName, JobId, NodeId, QueueName
from atoll.core.model.messages import ChangeKind
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.ports.store.demand import ChangedDemand, DemandRow, NodeParts
from atoll.wire.request import decode_request

# What a job holds: the kind of devices that it has most of.
DEMANDED: Final = """
SELECT j.id, j.queue, j.shape, j.submitted_at, j.ended_at, j.shard,
    CASE WHEN j.state IN ('QUEUED', 'HELD') THEN 0 ELSE j.started_at END AS started_at,
    coalesce(j.cluster, '') AS cluster, j.depends_on, j.begin_at,
    j.state = 'HELD' OR j.depends_on <> '{{}}' AND j.started_at = 0 AND j.outcome IS NULL
        AS waits, h.kind, h.blocks, h.slices
FROM (SELECT * FROM jobs WHERE {which}) AS j LEFT JOIN LATERAL (
    SELECT n.kinds[l.device + 1] AS kind, sum(l.blocks)::bigint AS blocks,
        sum(bit_count(l.slice_mask::bit(8)))::integer AS slices
    FROM allocations l JOIN nodes n ON n.id = l.node
    WHERE l.attempt = j.attempt AND l.device >= 0
    GROUP BY 1 ORDER BY 2 DESC, 3 DESC, 1 LIMIT 1
) AS h ON true ORDER BY {order}
"""
LIVE: Final = DEMANDED.format(
    which="outcome IS NULL AND (shard, id) > ($1, $2) ORDER BY shard, id LIMIT $3",
    order="j.shard, j.id",
)
ENDED: Final = DEMANDED.format(
    which="""outcome IS NOT NULL AND ended_at >= $1 AND (ended_at, id) > ($1, $2)
    ORDER BY ended_at, id LIMIT $3""",
    order="j.ended_at, j.id",
)
NUMBERED: Final = DEMANDED.format(which="id = ANY($1::bigint[])", order="j.id")
# The number of an attempt begins with that of its job.
CHANGED: Final = f"""
WITH here AS MATERIALIZED (SELECT {HERE}),
    lost AS MATERIALIZED (
        SELECT xid >= pg_snapshot_xmax($1::text::pg_snapshot) AS lost
        FROM horizons WHERE name = 'changes' AND until > 0
    )
SELECT here.*, coalesce((SELECT lost FROM lost), false) AS lost, ARRAY(
    SELECT DISTINCT CASE c.kind WHEN {ChangeKind.ATTEMPTS.value} THEN u.id >> 16 ELSE u.id END
    FROM changes c, unnest(c.ids) AS u(id)
    WHERE c.kind IN ({ChangeKind.JOBS.value}, {ChangeKind.ATTEMPTS.value})
        AND c.xid >= pg_snapshot_xmin($1::text::pg_snapshot)
        AND NOT pg_visible_in_snapshot(c.xid, $1::text::pg_snapshot)
    ORDER BY 1
) AS jobs
FROM here
"""
CORES: Final = """
SELECT coalesce(sum(n.cpu_milli), 0)::bigint / 1000.0::double precision AS cores
FROM clusters c JOIN nodes n ON n.cluster = c.name
WHERE c.state = 'ACTIVE' AND NOT c.cordoned AND n.present AND n.up AND NOT n.cordoned
    AND n.inventory_number > n.suspect_since
    AND NOT EXISTS (SELECT 1 FROM burst_instances i WHERE i.cluster = n.cluster)
"""
PARTS: Final = "SELECT id, kinds, broken, cpu_milli FROM nodes WHERE id = ANY($1::bigint[])"
FIRST: Final = -1


async def read_pages(
    database: Database, *, since: float, page: int
) -> AsyncIterator[list[DemandRow]]:
    """Jobs that are not ended, by shard and number; then those that ended after `since`."""
    for statement, column, start in ((LIVE, "shard", FIRST), (ENDED, "ended_at", since)):
        # All that ended just then are past the last number.
        place: tuple[float, int] = (start, FIRST if statement is LIVE else 2**63 - 1)
        while True:
            async with database.reading() as sql:
                rows = await sql.rows(statement, *place, page)
            if rows:
                yield [_demand(row) for row in rows]
                place = rows[-1][column], rows[-1]["id"]
            if len(rows) < page:
                break


async def read_numbered(sql: Sql, jobs: Iterable[JobId]) -> list[DemandRow]:
    """Jobs as they are, by number; those that do not exist are left out."""
    wanted = list(jobs)
    return [_demand(row) for row in await sql.rows(NUMBERED, wanted)] if wanted else []


async def read_changed(sql: Sql, start: Position) -> ChangedDemand:
    """Jobs that were written since `start`. Raises CURSOR_EXPIRED."""
    row = await sql.row(CHANGED, start.snapshot)
    assert row is not None
    here = Position.of(row)
    start.require_same_life(here)
    if row["lost"] or here.at - start.at > CHANGES_KEPT_S - MARGIN_S:
        raise expired("changes after it were dropped")
    return ChangedDemand(here.cursor(), tuple(map(JobId, row["jobs"])))


async def read_cores(sql: Sql) -> float:
    """Processors of all nodes that take work and are not rented."""
    return float(await sql.value(CORES))


async def read_parts(sql: Sql, nodes: Iterable[NodeId]) -> dict[NodeId, NodeParts]:
    """By number; those that do not exist are left out."""
    wanted = list(nodes)
    rows = await sql.rows(PARTS, wanted) if wanted else []
    return {NodeId(row["id"]): _parts(row) for row in rows}


def _parts(row: Record) -> NodeParts:
    broken = set(row["broken"])
    kinds = ("" if at in broken else kind for at, kind in enumerate(row["kinds"]))
    return NodeParts(tuple(kinds), row["cpu_milli"] / 1000)


def _demand(row: Record) -> DemandRow:
    kind, devices, limit_s, cores = _wanted(row["shape"])
    if row["kind"] is not None:
        blocks = row["blocks"] + slice_blocks(row["kind"], row["slices"])
        kind, devices = row["kind"], blocks / BLOCKS_PER_DEVICE
    return DemandRow(
        JobId(row["id"]),
        QueueName(row["queue"]),
        kind,
        devices,
        submitted_at=row["submitted_at"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        limit_s=limit_s,
        waits=row["waits"],
        cluster=ClusterName(row["cluster"]),
        after=tuple(map(JobId, row["depends_on"])),
        begin_at=row["begin_at"],
        cores=cores,
    )


@lru_cache(maxsize=1 << 14)
def _wanted(shape: bytes) -> tuple[str, float, float, float]:
    """Kind, devices, time limit and processors. Jobs have few different ones."""
    request = decode_request(shape)
    return *demand_of(request), request.terms.time_limit_s, cores_of(request)
