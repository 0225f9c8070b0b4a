"""Everything that is wrong with a reservation or a rule before anybody looks at a cluster."""

import itertools
from collections.abc import Collection, Sequence
from typing import Final

from atoll.core.engine.bookings.answers import Span
from atoll.core.engine.bookings.recurrence import BadTime, first_local, occurrences, zone_of
from atoll.core.model.errors import FieldViolation
from atoll.core.model.mig import ALL_PROFILES
from atoll.core.model.reservation import ReservationSpec, When
from atoll.core.model.validate_faults import Faults
from atoll.core.model.validate_reservation import check_booking
from atoll.core.model.validate_wishes import YEAR_S

LATE_S: Final = 60.0
"""A start that is over for no longer than this is taken as now."""
MOST_AHEAD_S: Final = 10.0 * YEAR_S
SEARCHED_S: Final = 9.0 * YEAR_S
"""A rule that does not occur within this never does: a leap day may be eight years away."""
MOST_A_YEAR: Final = 4_000


def check_reservation(
    spec: ReservationSpec,
    *,
    now: float,
    at: str = "spec",
    profiles: Collection[str] = ALL_PROFILES,
) -> list[FieldViolation]:
    """Every rule that a spec breaks at wall time `now`; `at` is its path."""
    faults = Faults()
    check_booking(faults, at, spec, profiles=profiles)
    # What is no time at all is not worth a second remark.
    if not any(fault.field.startswith(f"{at}.when") for fault in faults.found):
        check_times(faults, f"{at}.when", spec.when, now=now)
    return faults.found


def check_times(faults: Faults, at: str, when: When, *, now: float) -> None:
    """Zone, start and recurrence: they can be read, occur, not too often, and not in the past."""
    try:
        zone = zone_of(when)
        if when.flexible is not None:
            _check_flexible(faults, at, when, now=now)
            return
        first = first_local(when, zone).replace(tzinfo=zone).timestamp()
        if first > now + MOST_AHEAD_S:
            field = "start_local" if when.start_local else "start_at"
            faults.add(f"{at}.{field}", "is more than ten years away")
            return
        _check_occurrences(faults, at, when, now=now)
    except BadTime as bad:
        faults.add(f"{at}.{bad.field}", bad.message)


def _check_flexible(faults: Faults, at: str, when: When, *, now: float) -> None:
    span = when.flexible
    if span is None:
        return
    if span.latest_end_at - when.length_s < now - LATE_S:
        faults.add(f"{at}.flexible.latest_end_at", "is too early: it would start in the past")
    if span.latest_end_at > now + MOST_AHEAD_S:
        faults.add(f"{at}.flexible.latest_end_at", "is more than ten years away")


def _check_occurrences(faults: Faults, at: str, when: When, *, now: float) -> None:
    horizon = now + SEARCHED_S + MOST_AHEAD_S
    if not occurrences(when, 0.0, horizon, most=1).spans:
        faults.add(f"{at}.rrule", "never occurs")
        return
    coming = occurrences(when, now - LATE_S, horizon, most=1).spans
    if coming and when.rrule:
        _check_year(faults, at, when, start=coming[0].start)
    elif not coming and when.rrule:
        faults.add(f"{at}.rrule", "is over: all its occurrences are in the past")
    elif not coming:
        faults.add(f"{at}.{'start_local' if when.start_local else 'start_at'}", "is in the past")


def _check_year(faults: Faults, at: str, when: When, *, start: float) -> None:
    spans = occurrences(when, start, start + YEAR_S, most=MOST_A_YEAR + 1).spans
    if len(spans) > MOST_A_YEAR:
        faults.add(f"{at}.rrule", f"occurs more than {MOST_A_YEAR:,} times a year")
    _check_apart(faults, at, spans)


def _check_apart(faults: Faults, at: str, spans: Sequence[Span]) -> None:
    for one, other in itertools.pairwise(spans):
        if other.start < one.end:
            faults.add(
                f"{at}.length_s",
                f"{one.end - one.start:,.0f} s are too long: one occurrence starts {one.local}, "
                f"the next {other.local}",
            )
            return
