"""What the reservation service measures of itself."""

import contextlib
from collections.abc import Iterator
from typing import Final

from atoll.core.model.errors import DomainError
from atoll.core.model.reservation_lifecycle import BookingEvent
from atoll.runtime import logs, metrics

log = logs.logger(__name__)

LEADING: Final = metrics.gauge(
    "reservation_leading_info", "1 while this replica leads the loop of bookings."
)
BOOKING_SECONDS: Final = metrics.histogram(
    "reservation_booking_seconds", "Calls that book or change bookings, refusals included."
)
REFUSED: Final = metrics.counter(
    "reservation_refused_total", "Bookings and changes that were refused.", ("reason",)
)
EVENTS: Final = metrics.counter(
    "reservation_occurrence_events_total", "What the loop did to occurrences.", ("event",)
)
LATE_SECONDS: Final = metrics.histogram(
    "reservation_start_late_seconds",
    "From the start of a window as booked to its start by the loop.",
    buckets=(0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 60, 300),
)
SHORT: Final = metrics.gauge(
    "reservation_missing_devices", "Devices that bookings lack because nodes failed."
)
LIVE: Final = metrics.gauge("reservation_live_occurrences", "Occurrences that are to come, or run.")
STEP_SECONDS: Final = metrics.histogram(
    "reservation_step_seconds", "One look of the loop, from catching up to the commit."
)
RULE_FAILURES: Final = metrics.counter(
    "reservation_rule_failures_total", "Evaluations of standing rules that failed."
)


@contextlib.contextmanager
def booking() -> Iterator[None]:
    """Around a call that books."""
    with BOOKING_SECONDS.time():
        try:
            yield
        except DomainError as refusal:
            REFUSED.labels(refusal.code.value).inc()
            raise


def leads() -> None:
    """This replica leads the loop from now on."""
    LEADING.set(1)


def stands_by() -> None:
    """This replica leads no more."""
    LEADING.set(0)
    LIVE.set(0)
    SHORT.set(0)


def happened(event: BookingEvent, *, late_s: float = 0.0) -> None:
    """The loop did something; `late_s`: of a start."""
    EVENTS.labels(event.value).inc()
    if event is BookingEvent.STARTED:
        LATE_SECONDS.observe(max(0.0, late_s))
