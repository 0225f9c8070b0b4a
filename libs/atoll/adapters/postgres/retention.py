"""Deletes what is over, some rows at a time."""

from typing import Final

from atoll.adapters.postgres.database import Database
from atoll.adapters.postgres.sql import Sql
from atoll.ports.store.upkeep import Pruned, Retention

# Rows are picked first and then deleted one by one: a join with a LIMIT whose value is not known
# when the plan is made would scan the table.
NOW: Final = "extract(epoch FROM now())"

# A job that a live one still waits for is kept: its state decides about that one.
JOBS: Final = f"""
WITH needed AS MATERIALIZED (
    SELECT DISTINCT unnest(depends_on) AS id FROM jobs
    WHERE outcome IS NULL AND depends_on <> '{{}}'
), old AS MATERIALIZED (
    SELECT id, attempts FROM jobs
    WHERE outcome IS NOT NULL AND ended_at < {NOW} - $1::double precision
        AND id NOT IN (SELECT id FROM needed)
    ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED
), tries AS (
    DELETE FROM attempts a USING old
    WHERE a.id BETWEEN old.id << 16 AND (old.id << 16 | 65535)
)
DELETE FROM jobs WHERE id = ANY (ARRAY(SELECT id FROM old))
"""
REQUESTS: Final = f"""
DELETE FROM requests WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM requests WHERE created_at < {NOW} - $1::double precision
    ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED
))
"""
# A START of a live attempt is kept, however old: another instance of the agent begins from it.
DECISIONS: Final = f"""
DELETE FROM decisions WHERE ctid = ANY (ARRAY(
    SELECT d.ctid FROM sessions s JOIN decisions d ON d.cluster = s.cluster
    WHERE d.number <= s.acked_seq AND d.created_at < {NOW} - $1::double precision
        AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.id = d.attempt AND a.live)
    ORDER BY d.cluster, d.number LIMIT $2 FOR UPDATE OF d SKIP LOCKED
))
"""
# Ids rise with time but for the few that commit late, so the oldest rows are the first ones.
EVENTS: Final = f"""
WITH gone AS (
    DELETE FROM events WHERE id = ANY (ARRAY(SELECT id FROM events ORDER BY id LIMIT $2))
        AND at < {NOW} - $1::double precision
    RETURNING xid, at
), counted AS (SELECT count(*) AS rows, max(xid) AS xid, max(at) AS until FROM gone),
raised AS (
    UPDATE horizons h SET xid = greatest(h.xid, c.xid), until = greatest(h.until, c.until)
    FROM counted c WHERE h.name = 'events' AND c.rows > 0
)
SELECT rows FROM counted
"""


async def prune(database: Database, keep: Retention, *, limit: int) -> Pruned:
    """Each kind in a transaction of its own."""
    async with database.transaction() as sql:
        jobs = await sql.run(JOBS, keep.jobs_s, limit)
    async with database.transaction() as sql:
        requests = await sql.run(REQUESTS, keep.requests_s, limit)
    async with database.transaction() as sql:
        decisions = await sql.run(DECISIONS, keep.decisions_s, limit)
    async with database.transaction() as sql:
        events = await _prune_events(sql, keep, limit)
    return Pruned(jobs, requests, decisions, events)


async def _prune_events(sql: Sql, keep: Retention, limit: int) -> int:
    return int(await sql.value(EVENTS, keep.events_s, limit))
