"""Deletes what is over of bookings, some rows at a time."""

from typing import Final

from atoll.adapters.postgres.database import Database
from atoll.ports.store.bookings import BookingRetention

NOW: Final = "extract(epoch FROM now())"

# Occurrences of a reservation that lasts go, too.
OCCURRENCES: Final = f"""
WITH old AS (
    DELETE FROM occurrences WHERE id = ANY (ARRAY(
        SELECT id FROM occurrences WHERE NOT live AND ended_at < {NOW} - $1::double precision
        ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED
    )) RETURNING id
), places AS (DELETE FROM occurrence_parts p USING old WHERE p.occurrence = old.id)
SELECT count(*) FROM old
"""
RESERVATIONS: Final = f"""
WITH old AS (
    DELETE FROM reservations WHERE id = ANY (ARRAY(
        SELECT r.id FROM reservations r
        WHERE r.state <> 'ACTIVE' AND r.ended_at < {NOW} - $1::double precision
            AND NOT EXISTS (SELECT FROM occurrences o WHERE o.reservation = r.id)
        ORDER BY r.ended_at LIMIT $2 FOR UPDATE SKIP LOCKED
    )) RETURNING id
) SELECT count(*) FROM old
"""
REQUESTS: Final = f"""
WITH old AS (
    DELETE FROM reservation_requests WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM reservation_requests WHERE created_at < {NOW} - $1::double precision
        ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED
    )) RETURNING key
) SELECT count(*) FROM old
"""
ACTIONS: Final = f"""
WITH old AS (
    DELETE FROM booking_rule_actions
    WHERE id = ANY (ARRAY(SELECT id FROM booking_rule_actions ORDER BY id LIMIT $2))
        AND at < {NOW} - $1::double precision
    RETURNING id
) SELECT count(*) FROM old
"""
EVENTS: Final = f"""
WITH gone AS (
    DELETE FROM booking_events
    WHERE id = ANY (ARRAY(SELECT id FROM booking_events ORDER BY id LIMIT $2))
        AND at < {NOW} - $1::double precision
    RETURNING xid, at
), counted AS (SELECT count(*) AS rows, max(xid) AS xid, max(at) AS until FROM gone),
raised AS (
    UPDATE horizons h SET xid = greatest(h.xid, c.xid), until = greatest(h.until, c.until)
    FROM counted c WHERE h.name = 'booking_events' AND c.rows > 0
)
SELECT rows FROM counted
"""


async def prune_bookings(database: Database, keep: BookingRetention, *, limit: int) -> int:
    """Each kind in a transaction of its own; how many rows in all."""
    deleted = 0
    for statement, seconds in (
        (OCCURRENCES, keep.reservations_s),
        (RESERVATIONS, keep.reservations_s),
        (REQUESTS, keep.requests_s),
        (ACTIONS, keep.actions_s),
        (EVENTS, keep.events_s),
    ):
        async with database.transaction() as sql:
            deleted += int(await sql.value(statement, seconds, limit))
    return deleted
