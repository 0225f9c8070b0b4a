"""The lifecycles of a reservation and of its occurrences, as tables."""

import enum
from typing import Final

from atoll.core.model.reservation import OccurrenceState, ReservationState


class BookingEvent(enum.StrEnum):
    """What happens to a booking, as watchers see it."""

    CREATED = "created"
    UPDATED = "updated"
    """Its spec or its end was changed."""
    MOVED = "moved"
    """Other nodes, or another time."""
    BOUND = "bound"
    STARTED = "started"
    ENDED = "ended"
    RELEASED = "released"
    CANCELLED = "cancelled"
    SHORT = "short"
    """Nodes failed, and nothing could replace them."""


TERMINAL_OCCURRENCE: Final = frozenset({
    OccurrenceState.ENDED,
    OccurrenceState.RELEASED,
    OccurrenceState.CANCELLED,
})

_PLANNED, _BOUND, _RUNNING = (
    OccurrenceState.PLANNED,
    OccurrenceState.BOUND,
    OccurrenceState.RUNNING,
)

OCCURRENCE_MOVES: Final[dict[tuple[OccurrenceState, BookingEvent], OccurrenceState]] = {
    (_PLANNED, BookingEvent.UPDATED): _PLANNED,
    (_PLANNED, BookingEvent.MOVED): _PLANNED,
    (_PLANNED, BookingEvent.SHORT): _PLANNED,
    (_PLANNED, BookingEvent.BOUND): _BOUND,
    # The loop may have been away when it should have settled the nodes.
    (_PLANNED, BookingEvent.STARTED): _RUNNING,
    (_PLANNED, BookingEvent.ENDED): OccurrenceState.ENDED,
    (_PLANNED, BookingEvent.RELEASED): OccurrenceState.RELEASED,
    (_PLANNED, BookingEvent.CANCELLED): OccurrenceState.CANCELLED,
    (_BOUND, BookingEvent.UPDATED): _BOUND,
    (_BOUND, BookingEvent.MOVED): _BOUND,
    (_BOUND, BookingEvent.SHORT): _BOUND,
    (_BOUND, BookingEvent.STARTED): _RUNNING,
    (_BOUND, BookingEvent.ENDED): OccurrenceState.ENDED,
    (_BOUND, BookingEvent.RELEASED): OccurrenceState.RELEASED,
    (_BOUND, BookingEvent.CANCELLED): OccurrenceState.CANCELLED,
    (_RUNNING, BookingEvent.UPDATED): _RUNNING,
    (_RUNNING, BookingEvent.MOVED): _RUNNING,
    (_RUNNING, BookingEvent.SHORT): _RUNNING,
    (_RUNNING, BookingEvent.ENDED): OccurrenceState.ENDED,
    (_RUNNING, BookingEvent.RELEASED): OccurrenceState.RELEASED,
    (_RUNNING, BookingEvent.CANCELLED): OccurrenceState.CANCELLED,
}

RESERVATION_MOVES: Final[dict[tuple[ReservationState, BookingEvent], ReservationState]] = {
    (ReservationState.ACTIVE, BookingEvent.UPDATED): ReservationState.ACTIVE,
    (ReservationState.ACTIVE, BookingEvent.ENDED): ReservationState.ENDED,
    (ReservationState.ACTIVE, BookingEvent.CANCELLED): ReservationState.CANCELLED,
}


def next_occurrence_state(state: OccurrenceState, event: BookingEvent) -> OccurrenceState | None:
    """Where `event` takes an occurrence in `state`; None when the table does not allow it."""
    return OCCURRENCE_MOVES.get((state, event))


def next_reservation_state(state: ReservationState, event: BookingEvent) -> ReservationState | None:
    """Where `event` takes a reservation in `state`; None when the table does not allow it."""
    return RESERVATION_MOVES.get((state, event))
