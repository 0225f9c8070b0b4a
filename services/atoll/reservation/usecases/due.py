"""What is due of bookings, and when the next is: a start, an end, a binding, a give-back."""

from collections.abc import Iterable
from dataclasses import dataclass

from atoll.core.model.booking import OccurrenceId, OnEnd
from atoll.core.model.reservation import (
    Occurrence,
    OccurrenceState,
    ReservationId,
    ReservationSpec,
)
from atoll.core.model.reservation_lifecycle import TERMINAL_OCCURRENCE, BookingEvent
from atoll.ports.store.bookings import Kept


@dataclass(frozen=True, slots=True)
class Due:
    """One thing that is to be done, and since when. Times are unix seconds."""

    at: float
    occurrence: OccurrenceId
    reservation: ReservationId
    event: BookingEvent
    message: str = ""


def due(every: Iterable[Kept], now: float) -> list[Due]:
    """What is to be done now: what ends comes first, then by time and number."""
    found = [action for kept in every if (action := next_of(kept, now)).at <= now]
    return sorted(found, key=lambda a: (a.event is not BookingEvent.ENDED, a.at, a.occurrence))


def next_due(every: Iterable[Kept], now: float) -> float:
    """When the next thing is to be done; infinite when nothing is."""
    return min((next_of(kept, now).at for kept in every), default=float("inf"))


def next_of(kept: Kept, now: float) -> Due:
    """What is next of one occurrence; of one that is over something that is never due."""
    occurrence, spec = kept.occurrence, kept.reservation.spec
    if occurrence.state in TERMINAL_OCCURRENCE:
        return _due(kept, float("inf"), BookingEvent.ENDED)
    over_at = over_at_of(kept.reservation.spec, occurrence)
    if over_at <= now:
        return _due(kept, over_at, BookingEvent.ENDED)
    if occurrence.state is OccurrenceState.RUNNING:
        idle_s = spec.release_after_idle_s
        given_back = max(occurrence.started_at, kept.busy_at) + idle_s
        if idle_s and given_back < occurrence.end_at:
            told = f"no owner ran anything for {idle_s:,.0f} s"
            return _due(kept, given_back, BookingEvent.RELEASED, message=told)
        return _due(kept, over_at, BookingEvent.ENDED)
    bind_at = 0.0 if spec.pinned else occurrence.start_at - spec.bind_before_s
    if occurrence.state is OccurrenceState.PLANNED and occurrence.start_at > now:
        return _due(kept, bind_at, BookingEvent.BOUND)
    return _due(kept, occurrence.start_at, BookingEvent.STARTED)


def over_at_of(spec: ReservationSpec, occurrence: Occurrence) -> float:
    """When it is over: a grace at its end is told as long as the window is shown."""
    grace_s = spec.end_grace_s if spec.on_end is OnEnd.GRACE else 0.0
    return occurrence.end_at + grace_s


def _due(kept: Kept, at: float, event: BookingEvent, *, message: str = "") -> Due:
    return Due(at, kept.occurrence.id, kept.reservation.id, event=event, message=message)
