"""When a reservation occurs, as far as it is planned."""

from dataclasses import dataclass
from typing import Final

from atoll.core.engine.bookings.answers import Span
from atoll.core.engine.bookings.checks import LATE_S, MOST_AHEAD_S
from atoll.core.engine.bookings.recurrence import occurrences
from atoll.core.model.reservation import When

MOST_PLANNED: Final = 1_000
"""Occurrences of one reservation that are planned at once."""


@dataclass(frozen=True, slots=True)
class Planned:
    """Spans to be booked, and until when a recurrence is planned by them."""

    spans: tuple[Span, ...]
    until: float
    """0: it does not recur."""
    remarks: tuple[str, ...] = ()


def plan_spans(when: When, *, now: float, horizon_s: float) -> Planned:
    """Every occurrence of the next `horizon_s`, the first one however far away it is.

    Raises BadTime.
    """
    if not when.rrule:
        times = occurrences(when, now - LATE_S, now + 2 * MOST_AHEAD_S, most=1)
        return Planned(times.spans, 0.0, times.remarks)
    until = now + horizon_s
    planned = plan_on(when, since=now - LATE_S, until=until)
    if planned.spans:
        return planned
    times = occurrences(when, now - LATE_S, now + 2 * MOST_AHEAD_S, most=1)
    return Planned(times.spans, _after(times.spans), times.remarks)


def plan_on(when: When, *, since: float, until: float) -> Planned:
    """Occurrences that start in [since, until), or the first of them and how far they go."""
    times = occurrences(when, since, until, most=MOST_PLANNED + 1)
    cut = times.spans[:MOST_PLANNED]
    return Planned(cut, _after(cut) if len(cut) < len(times.spans) else until, times.remarks)


def _after(spans: tuple[Span, ...]) -> float:
    # The next one starts later than the last that is planned, by a second at least.
    return spans[-1].start + 1.0
