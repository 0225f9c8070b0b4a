"""The history that watches show: complete, without repeats, by page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from atoll.adapters.postgres.cursors import HERE, MARGIN_S, Position, expired
from atoll.adapters.postgres.database import Database
from atoll.adapters.postgres.sql import Record, Sql
from atoll.core.model.ids import AttemptId, ClusterName, JobId, QueueName, Tenant
from atoll.core.model.lifecycle import JobEvent, JobState
from atoll.core.model.messages import Event
from atoll.core.model.reason import ReasonCode
from atoll.ports.store.common import Cursor
from atoll.ports.store.submission import WatchPage

# One statement, so one snapshot: what is read, up to where, and whether rows were pruned that
# the cursor had not seen. The first unseen row is found by transaction, the rest go by id, in
# which a job's events are in the order of their commits: its row is locked while they are written.
EVENTS_AFTER: Final = f"""
WITH here AS MATERIALIZED (SELECT {HERE}),
    lost AS MATERIALIZED (
        SELECT xid >= pg_snapshot_xmax($1::text::pg_snapshot) OR $3 < until + {MARGIN_S} AS lost
        FROM horizons WHERE name = 'events' AND until > 0
    ),
    bounds AS MATERIALIZED (
        SELECT CASE WHEN $4::bigint > 0 THEN $4 + 1 ELSE (
            SELECT coalesce(min(id), 9223372036854775807) FROM (
                SELECT id FROM events
                WHERE xid >= pg_snapshot_xmin($1::text::pg_snapshot)
                    AND NOT pg_visible_in_snapshot(xid, $1::text::pg_snapshot)
                OFFSET 0  -- else the planner looks for the least id among all rows
            ) AS unseen
        ) END AS first
    )
SELECT here.*, coalesce((SELECT lost FROM lost), false) AS lost, e.id, e.job, e.queue, e.event,
    e.state, e.at AS event_at, e.attempt, e.cluster, e.reason, e.message, e.principal
FROM here LEFT JOIN LATERAL (
    SELECT e.* FROM events e
    WHERE e.id >= (SELECT first FROM bounds)
        AND NOT pg_visible_in_snapshot(e.xid, $1::text::pg_snapshot)
        AND ($2 = '' OR pg_visible_in_snapshot(e.xid, nullif($2, '')::pg_snapshot))
        AND e.tenant = $5
        AND ($6 = '' OR e.queue = $6 OR e.queue LIKE $7)
        AND ($8::bigint[] = '{{}}' OR e.job = ANY($8::bigint[]))
    ORDER BY e.id LIMIT $9
) AS e ON true
"""


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Whose events are wanted. Empty members do not restrict."""

    tenant: Tenant
    queue: str = ""
    jobs: Sequence[JobId] = ()


async def events_now(database: Database) -> Cursor:
    """The cursor from which only later events are seen."""
    async with database.reading() as sql:
        row = await sql.row(f"SELECT {HERE}")
    assert row is not None
    return Position.of(row).cursor()


async def events_after(
    database: Database, cursor: Cursor, wanted: EventFilter, *, limit: int
) -> WatchPage:
    """The next page; one that is not full has all there is. Raises CURSOR_EXPIRED."""
    place = Position.parse(cursor)
    async with database.reading() as sql:
        events, place = await _read(sql, place, wanted, limit=limit)
        while place.upto and len(events) < limit:
            # The pages of one snapshot are through; what was committed since comes after them.
            more, place = await _read(sql, place.reached(), wanted, limit=limit - len(events))
            events += more
    return WatchPage(tuple(events), place.cursor())


async def _read(
    sql: Sql, start: Position, wanted: EventFilter, *, limit: int
) -> tuple[list[Event], Position]:
    rows = await sql.rows(
        EVENTS_AFTER, start.snapshot, start.upto, start.at, start.after_id, wanted.tenant,
        wanted.queue, _below(wanted.queue), list(wanted.jobs), limit,
    )  # fmt: skip
    here = Position.of(rows[0])
    start.require_same_life(here)
    if rows[0]["lost"]:
        raise expired("events after it were pruned")
    found = [row for row in rows if row["id"] is not None]
    events = [_event_from(row) for row in found]
    if len(found) == limit:
        return events, start.amid(upto=start.upto or here.snapshot, after_id=found[-1]["id"])
    return events, start if start.upto else here


def _below(queue: str) -> str:
    escaped = queue.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"{escaped}.%"


def _event_from(row: Record) -> Event:
    return Event(
        job=JobId(row["job"]),
        queue=QueueName(row["queue"]),
        event=None if row["event"] is None else JobEvent(row["event"]),
        state=JobState(row["state"]),
        at=row["event_at"],
        attempt=None if row["attempt"] is None else AttemptId(row["attempt"]),
        cluster=None if row["cluster"] is None else ClusterName(row["cluster"]),
        reason=None if row["reason"] is None else ReasonCode(row["reason"]),
        message=row["message"],
        principal=row["principal"],
    )
