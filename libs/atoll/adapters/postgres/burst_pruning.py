"""Deletes what is over of renting, some rows at a time."""

from typing import Final

from atoll.adapters.postgres.database import Database
from atoll.adapters.postgres.sql import Sql
from atoll.ports.store.burst import LEDGER_KEPT_S

# An instance is kept until placement has forgotten its cluster: then nothing there is alive.
OLD: Final = """
SELECT i.id, i.cluster FROM burst_instances i
WHERE NOT i.live AND i.ended_at < $1
    AND NOT EXISTS (SELECT 1 FROM clusters c WHERE c.name = i.cluster AND c.state <> 'RETIRED')
    AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.cluster = i.cluster AND a.live)
ORDER BY i.ended_at LIMIT $2 FOR UPDATE OF i SKIP LOCKED
"""
# Whoever forgets a cluster locks it first, too.
LOCK_CLUSTERS: Final = """
SELECT 1 FROM clusters WHERE name = ANY($1::text[]) ORDER BY name FOR UPDATE
"""
WITH_CLUSTERS: Final = (
    "DELETE FROM decisions WHERE cluster = ANY($1::text[])",
    "DELETE FROM avoidances WHERE cluster = ANY($1::text[])",
    "DELETE FROM nodes WHERE cluster = ANY($1::text[])",
    "DELETE FROM sessions WHERE cluster = ANY($1::text[])",
    "DELETE FROM clusters WHERE name = ANY($1::text[])",
    "DELETE FROM burst_instances WHERE cluster = ANY($1::text[])",
)
DECISIONS: Final = """
DELETE FROM burst_decisions WHERE id = ANY (ARRAY(
    SELECT id FROM burst_decisions WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED
))
"""
REQUESTS: Final = """
DELETE FROM burst_requests WHERE key = ANY (ARRAY(
    SELECT key FROM burst_requests WHERE created_at < $1
    ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED
))
"""
LEDGER: Final = """
DELETE FROM burst_ledger WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM burst_ledger WHERE hour < $1::double precision
    ORDER BY hour LIMIT $2 FOR UPDATE SKIP LOCKED
))
"""


async def prune_burst(database: Database, *, before: float, limit: int) -> int:
    """Each kind in a transaction of its own; how many rows in all."""
    async with database.transaction() as sql:
        deleted = await _prune_instances(sql, before, limit)
    for statement, until in (
        (DECISIONS, before),
        (REQUESTS, before),
        (LEDGER, before - LEDGER_KEPT_S),
    ):
        async with database.transaction() as sql:
            deleted += await sql.run(statement, until, limit)
    return deleted


async def _prune_instances(sql: Sql, before: float, limit: int) -> int:
    clusters = [row["cluster"] for row in await sql.rows(OLD, before, limit)]
    for statement in (LOCK_CLUSTERS, *WITH_CLUSTERS) if clusters else ():
        await sql.run(statement, clusters)
    return len(clusters)
