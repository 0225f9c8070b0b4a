"""The history of bookings that watches show: complete, without repeats, by page."""

from typing import Final

from atoll.adapters.postgres.cursors import HERE, MARGIN_S, Position, expired
from atoll.adapters.postgres.database import Database
from atoll.adapters.postgres.sql import Record, Sql
from atoll.core.model.booking import OccurrenceId
from atoll.core.model.ids import QueueName, Tenant
from atoll.core.model.reservation import ReservationId
from atoll.core.model.reservation_lifecycle import BookingEvent
from atoll.ports.store.bookings import BookingPage, BookingRecord
from atoll.ports.store.common import Cursor

EVENT_INSERTED: Final = (
    "reservation", "tenant", "name", "queues", "occurrence", "event", "at", "message", "principal",
)  # fmt: skip
RELATED: Final = """EXISTS (
    SELECT FROM unnest({queues}) AS q(name)
    WHERE q.name = {wanted} OR starts_with(q.name, {wanted} || '.')
        OR starts_with({wanted}, q.name || '.')
)"""
"""Whether one of some queues is the wanted one, or below or above it."""

# As of `events`: one statement, so one snapshot. A reservation's events are in the order of their
# commits by id, for its row is locked while they are written.
EVENTS_AFTER: Final = f"""
WITH here AS MATERIALIZED (SELECT {HERE}),
    lost AS MATERIALIZED (
        SELECT xid >= pg_snapshot_xmax($1::text::pg_snapshot) OR $3 < until + {MARGIN_S} AS lost
        FROM horizons WHERE name = 'booking_events' AND until > 0
    ),
    bounds AS MATERIALIZED (
        SELECT CASE WHEN $4::bigint > 0 THEN $4 + 1 ELSE (
            SELECT coalesce(min(id), 9223372036854775807) FROM (
                SELECT id FROM booking_events
                WHERE xid >= pg_snapshot_xmin($1::text::pg_snapshot)
                    AND NOT pg_visible_in_snapshot(xid, $1::text::pg_snapshot)
                OFFSET 0  -- else the planner looks for the least id among all rows
            ) AS unseen
        ) END AS first
    )
SELECT here.*, coalesce((SELECT lost FROM lost), false) AS lost, e.id, e.reservation, e.tenant,
    e.name, e.queues, e.occurrence, e.event, e.at AS event_at, e.message, e.principal
FROM here LEFT JOIN LATERAL (
    SELECT e.* FROM booking_events e
    WHERE e.id >= (SELECT first FROM bounds)
        AND NOT pg_visible_in_snapshot(e.xid, $1::text::pg_snapshot)
        AND ($2 = '' OR pg_visible_in_snapshot(e.xid, nullif($2, '')::pg_snapshot))
        AND e.tenant = $5
        AND ($6 = '' OR {RELATED.format(queues="e.queues", wanted="$6")})
        AND ($7::bigint = 0 OR e.reservation = $7)
    ORDER BY e.id LIMIT $8
) AS e ON true
"""


def event_values(event: BookingRecord) -> tuple[object, ...]:
    """Values of EVENT_INSERTED."""
    return (
        event.reservation, event.tenant, event.name, list(event.queues), event.occurrence,
        event.event.value, event.at, event.message, event.principal,
    )  # fmt: skip


async def booking_events_after(
    database: Database,
    cursor: Cursor,
    *,
    tenant: Tenant,
    queue: str,
    reservation: ReservationId,
    limit: int,
) -> BookingPage:
    """The next page; one that is not full has all there is. Raises CURSOR_EXPIRED."""
    place = Position.parse(cursor)
    wanted = (tenant, queue, reservation)
    async with database.reading() as sql:
        events, place = await _read(sql, place, wanted, limit=limit)
        while place.upto and len(events) < limit:
            # The pages of one snapshot are through; what was committed since comes after them.
            more, place = await _read(sql, place.reached(), wanted, limit=limit - len(events))
            events += more
    return BookingPage(tuple(events), place.cursor())


async def _read(
    sql: Sql, start: Position, wanted: tuple[object, ...], *, limit: int
) -> tuple[list[BookingRecord], Position]:
    rows = await sql.rows(
        EVENTS_AFTER, start.snapshot, start.upto, start.at, start.after_id, *wanted, limit
    )
    here = Position.of(rows[0])
    start.require_same_life(here)
    if rows[0]["lost"]:
        raise expired("events after it were pruned")
    found = [row for row in rows if row["id"] is not None]
    events = [_event_from(row) for row in found]
    if len(found) == limit:
        return events, start.amid(upto=start.upto or here.snapshot, after_id=found[-1]["id"])
    return events, start if start.upto else here


def _event_from(row: Record) -> BookingRecord:
    return BookingRecord(
        reservation=ReservationId(row["reservation"]),
        tenant=Tenant(row["tenant"]),
        name=row["name"],
        event=BookingEvent(row["event"]),
        at=row["event_at"],
        occurrence=OccurrenceId(row["occurrence"]),
        queues=tuple(QueueName(queue) for queue in row["queues"]),
        message=row["message"],
        principal=row["principal"],
    )
