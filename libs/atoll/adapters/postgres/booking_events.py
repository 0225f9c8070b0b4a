"""The history of bookings that watches show."""

from typing import Final

from atoll.adapters.postgres.database import Database
from atoll.adapters.postgres.event_pages import page_after, pages_of
from atoll.adapters.postgres.sql import Record
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

EVENTS_AFTER: Final = pages_of(
    "booking_events",
    "e.reservation, e.tenant, e.name, e.queues, e.occurrence, e.event, e.message, e.principal",
    f"""e.tenant = $6
        AND ($7 = '' OR {RELATED.format(queues="e.queues", wanted="$7")})
        AND ($8::bigint = 0 OR e.reservation = $8)""",
)


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
    events, after = await page_after(
        database,
        EVENTS_AFTER,
        cursor,
        tenant,
        queue,
        reservation,
        build=_event_from,
        limit=limit,
    )
    return BookingPage(tuple(events), after)


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
