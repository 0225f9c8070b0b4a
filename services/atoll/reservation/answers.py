"""What the use cases found, as messages of the API."""

from collections.abc import Iterable

from atoll.api.reservation.v1 import reservation_pb2 as pb
from atoll.core.engine.bookings.answers import AvailabilityRow, Found
from atoll.core.model.reservation import Displaced, Occurrence
from atoll.core.model.reservation_lifecycle import TERMINAL_OCCURRENCE
from atoll.ports.store.bookings import BookingRecord, Listed
from atoll.reservation.usecases.calendars import Imported
from atoll.reservation.usecases.create import Made
from atoll.reservation.usecases.look import CalendarView
from atoll.wire.reservation import (
    displaced_to_proto,
    obstacle_to_proto,
    occurrence_to_proto,
    reservation_to_proto,
    window_to_proto,
)


def reservation(made: Made) -> pb.Reservation:
    """A reservation with its next occurrence."""
    live = (each for each in made.occurrences if each.state not in TERMINAL_OCCURRENCE)
    return reservation_to_proto(made.reservation, next(live, None), planned=made.planned)


def listed(row: Listed) -> pb.Reservation:
    """A reservation of a list."""
    return reservation_to_proto(row.reservation, row.following, planned=row.planned)


def occurrences(found: Iterable[Occurrence]) -> list[pb.Occurrence]:
    """Occurrences in their order."""
    return [occurrence_to_proto(each) for each in found]


def displaced(found: Iterable[Displaced]) -> list[pb.Displaced]:
    """What gives way."""
    return [displaced_to_proto(each) for each in found]


def windows(found: Found) -> pb.FindWindowResponse:
    """Windows, or what is in the way of any."""
    return pb.FindWindowResponse(
        windows=[window_to_proto(window) for window in found.windows],
        obstacles=[obstacle_to_proto(each) for each in found.obstacles],
    )


def calendar(view: CalendarView) -> pb.GetCalendarResponse:
    """What is free over time."""
    return pb.GetCalendarResponse(
        from_at=view.from_at,
        step_s=view.step_s,
        rows=[_row(row) for row in view.rows],
        occurrences=occurrences(view.occurrences),
    )


def imported(found: Iterable[Imported]) -> pb.ImportCalendarResponse:
    """What came of each event."""
    return pb.ImportCalendarResponse(events=[_imported(each) for each in found])


def event(record: BookingRecord) -> pb.ReservationEvent:
    """One thing that happened."""
    return pb.ReservationEvent(
        reservation_id=record.reservation,
        name=record.name,
        occurrence_id=record.occurrence,
        event=record.event.value,
        at=record.at,
        message=record.message,
        principal=record.principal,
    )


def _row(row: AvailabilityRow) -> pb.CalendarRow:
    return pb.CalendarRow(
        cluster=row.cluster,
        kind=row.kind,
        total=row.total,
        booked=row.booked,
        running=row.running,
        free=row.free,
    )


def _imported(each: Imported) -> pb.ImportedEvent:
    return pb.ImportedEvent(
        uid=each.uid,
        outcome=each.outcome,
        reservation_id=each.reservation,
        message=each.message,
        name=each.name,
    )
