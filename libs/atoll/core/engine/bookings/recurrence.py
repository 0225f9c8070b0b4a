"""When a reservation occurs: RFC 5545 recurrence in local time, right over daylight saving.

A local time that does not exist is read with the offset before the gap, of one that exists twice
the first counts (RFC 5545, 3.3.5). Both are remarked upon.
"""

import datetime
import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from zoneinfo import ZoneInfo

from dateutil.rrule import rrule, rrulestr

from atoll.core.engine.bookings.answers import Span
from atoll.core.engine.bookings.rule_text import read_rule, rule_text, until_of
from atoll.core.model.reservation import When

MOST_SPANS: Final = 10_000
MOST_REMARKS: Final = 20
_CYCLE: Final = 400
"""Years after which the calendar repeats itself, to the day of the week."""
_LAST_YEAR: Final = 9_900
_SLACK: Final = datetime.timedelta(days=2)
"""More than clocks are ever put forward or back."""
_UTC: Final = datetime.UTC

Local = datetime.datetime
"""Without an offset."""


@dataclass(frozen=True, slots=True)
class Times:
    """Occurrences in order, and how they were understood."""

    spans: tuple[Span, ...]
    remarks: tuple[str, ...] = ()


class BadTime(ValueError):
    """A zone, a local time or a rule that cannot be read; `field` is that of `When`."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


def occurrences(when: When, start: float, end: float, *, most: int = MOST_SPANS) -> Times:
    """Those that start in [start, end), the first `most` of them; times are unix seconds.

    A flexible window has none. Raises BadTime.
    """
    if when.flexible is not None:
        return Times(())
    zone = zone_of(when)
    if when.start_at is not None and not when.rrule:
        inside = start <= when.start_at < end
        at = Local.fromtimestamp(when.start_at, zone)
        return Times((_span(when, when.start_at, at),) if inside else ())
    spans: dict[float, Span] = {}
    remarks: list[str] = []
    enough: Local | None = None
    for local in _starts(when, zone, until=_local(end, zone) + _SLACK):
        at = local.replace(tzinfo=zone)
        instant = at.timestamp()
        if start <= instant < end and instant not in spans:
            spans[instant] = _span(when, instant, Local.fromtimestamp(instant, zone))
            remarks += _remark(local, zone, name=when.zone or "UTC")
        if len(spans) >= most:
            # Behind a gap the next local time may be an earlier instant.
            enough = enough or local + _SLACK
            if local > enough:
                break
    return Times(
        tuple(spans[at] for at in heapq.nsmallest(most, spans)), tuple(remarks[:MOST_REMARKS])
    )


def first_local(when: When, zone: ZoneInfo) -> Local:
    """The first start as its zone's clocks show it. Raises BadTime."""
    if when.start_at is not None:
        return _local(when.start_at, zone)
    return read_local(when.start_local, "start_local")


def zone_of(when: When) -> ZoneInfo:
    """The zone whose local time counts. Raises BadTime."""
    try:
        return ZoneInfo(when.zone or "UTC")
    except (ValueError, OSError, KeyError) as unknown:
        message = f"{when.zone[:64]!r} is no time zone; they have names such as Europe/Berlin"
        raise BadTime("zone", message) from unknown


def read_local(text: str, field: str) -> Local:
    """A local time such as `2026-12-07T09:00`. Raises BadTime, also when it has an offset."""
    try:
        made = Local.fromisoformat(text)
    except ValueError as bad:
        message = f"{text[:64]!r} is no local time such as 2026-12-07T09:00"
        raise BadTime(field, message) from bad
    if made.tzinfo is not None:
        raise BadTime(field, f"{text[:64]!r} has an offset; that of `zone` counts")
    if not 1970 <= made.year < _LAST_YEAR - _CYCLE:
        raise BadTime(field, f"{text[:64]!r} is too far away")
    return made


def _span(when: When, instant: float, at: Local) -> Span:
    return Span(instant, instant + when.length_s, at.isoformat(timespec="seconds"))


def _local(instant: float, zone: ZoneInfo) -> Local:
    return Local.fromtimestamp(instant, zone).replace(tzinfo=None)


def _starts(when: When, zone: ZoneInfo, *, until: Local) -> Iterator[Local]:
    """Local starts up to `until`, without those that are left out."""
    first = first_local(when, zone)
    if not when.rrule:
        yield first
        return
    left_out = {read_local(text, "exdates") for text in when.exdates}
    for local in _recurring(when, first, zone, until=until):
        if local not in left_out:
            yield local


def _recurring(when: When, first: Local, zone: ZoneInfo, *, until: Local) -> Iterator[Local]:
    try:
        parts = read_rule(when.rrule)
        # A rule that never occurs is followed to the year 9999, so that should not be far away.
        shift = (_LAST_YEAR - until.year) // _CYCLE * _CYCLE
        made = rrulestr(rule_text(parts), dtstart=first.replace(year=first.year + shift))
        last = min(until, until_of(parts, zone) or until)
    except (ValueError, IndexError) as bad:
        raise BadTime("rrule", str(bad)) from bad
    if not isinstance(made, rrule):
        raise BadTime("rrule", "is more than one rule")
    for far in made:
        local = far.replace(year=far.year - shift)
        if local > last:
            return
        yield local


def _remark(local: Local, zone: ZoneInfo, *, name: str) -> list[str]:
    first, second = (local.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() == second.utcoffset():
        return []
    shown = local.isoformat(timespec="minutes")
    taken = Local.fromtimestamp(first.timestamp(), zone).isoformat(timespec="minutes")
    if first.astimezone(_UTC).astimezone(zone).replace(tzinfo=None) != local:
        return [f"{shown} does not exist in {name}: it is taken as {taken}"]
    return [f"{shown} exists twice in {name}: the first is taken, {taken}"]
