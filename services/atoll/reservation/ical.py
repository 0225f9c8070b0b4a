"""iCalendar (RFC 5545): bookings as text that calendars show, and maintenance read from theirs."""

import datetime
from collections.abc import Iterable, Iterator
from typing import Any, Final
from zoneinfo import ZoneInfo

from icalendar import Calendar, Component, Event

from atoll.core.model.errors import FieldViolation, InvalidInput
from atoll.core.model.reservation import Occurrence, OccurrenceState, When
from atoll.reservation.usecases.calendars import CalendarEvent

PRODUCT: Final = "-//Atoll//reservations//EN"
MOST_EVENTS: Final = 1_000
MOST_NOTE: Final = 4_000
NODES: Final = "X-ATOLL-NODES"
_UTC: Final = datetime.UTC
_STATUS: Final = {OccurrenceState.PLANNED: "TENTATIVE", OccurrenceState.CANCELLED: "CANCELLED"}


def export(occurrences: Iterable[Occurrence], *, now: float) -> str:
    """One event for each occurrence; `now` in unix seconds."""
    calendar = Calendar()
    calendar.add("prodid", PRODUCT)
    calendar.add("version", "2.0")
    for occurrence in occurrences:
        calendar.add_component(_event(occurrence, now))
    text: bytes = calendar.to_ical()
    return text.decode()


def read(text: str) -> list[CalendarEvent]:
    """The events of a calendar; raises InvalidInput for text that is none."""
    try:
        calendars = Calendar.from_ical(text, multiple=True)
        events = [event for each in calendars for event in each.walk("VEVENT")]
    except (ValueError, IndexError, KeyError, TypeError) as error:
        raise _invalid(f"is no iCalendar text: {str(error)[:200]}") from None
    if not events:
        raise _invalid("has no events")
    if len(events) > MOST_EVENTS:
        raise _invalid(f"has {len(events):,} events; {MOST_EVENTS:,} at most")
    return [_read(event) for event in events]


def _event(occurrence: Occurrence, now: float) -> Event:
    event = Event()
    event.add("uid", f"{occurrence.reservation}-{occurrence.id}@atoll")
    event.add("dtstamp", _instant(now))
    event.add("dtstart", _instant(occurrence.start_at))
    event.add("dtend", _instant(occurrence.end_at))
    event.add("summary", occurrence.name)
    event.add("status", _STATUS.get(occurrence.state, "CONFIRMED"))
    event.add("location", ", ".join(part.cluster for part in occurrence.parts))
    if occurrence.message:
        event.add("description", occurrence.message)
    nodes = [f"{p.cluster}/{s.node_name}" for p in occurrence.parts for s in p.shares]
    event.add(NODES, ",".join(nodes))
    return event


def _read(event: Component) -> CalendarEvent:
    uid, summary = str(event.get("UID", "")), str(event.get("SUMMARY", ""))
    if not uid:
        return CalendarEvent("", summary, fault="has no UID")
    if event.get("RECURRENCE-ID") is not None:
        return CalendarEvent(uid, summary, fault="changes a single occurrence; add an EXDATE")
    cancelled = str(event.get("STATUS", "")).upper() == "CANCELLED"
    try:
        when = _when(event)
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        return CalendarEvent(uid, summary, cancelled=cancelled, fault=str(error)[:200])
    return CalendarEvent(
        uid,
        summary,
        when=when,
        places=tuple(_places(event)),
        note=str(event.get("DESCRIPTION", ""))[:MOST_NOTE],
        cancelled=cancelled,
    )


def _when(event: Component) -> When:
    start = _property(event, "DTSTART").dt
    zone = _zone(start)
    length = _length_s(event, start)
    local = _local(start)
    rule = _property(event, "RRULE")
    return When(
        length_s=length,
        start_local=local,
        zone=zone,
        rrule="" if rule is None else rule.to_ical().decode(),
        exdates=tuple(_local(each, zone) for each in _exdates(event)),
    )


def _property(event: Component, name: str) -> Any:
    """A property by name; what it is depends on the text."""
    return event.get(name)


def _length_s(event: Component, start: Any) -> float:
    if (end := _property(event, "DTEND")) is not None:
        return float((_aware(end.dt) - _aware(start)).total_seconds())
    if (duration := _property(event, "DURATION")) is not None:
        return float(duration.dt.total_seconds())
    if isinstance(start, datetime.datetime):
        raise ValueError("has neither DTEND nor DURATION")
    return 86_400.0  # a whole day


def _exdates(event: Component) -> Iterator[Any]:
    found = _property(event, "EXDATE")
    for each in found if isinstance(found, list) else [found] if found is not None else []:
        yield from (date.dt for date in each.dts)


def _places(event: Component) -> Iterator[str]:
    named = event.get(NODES)
    text = str(named) if named is not None else str(event.get("LOCATION", ""))
    yield from (place for part in text.split(",") if (place := part.strip()))


def _zone(start: Any) -> str:
    zone = getattr(start, "tzinfo", None)
    if zone is None:
        return ""
    return str(getattr(zone, "key", "")) or ("" if start.utcoffset() else "UTC")


def _local(at: Any, zone: str = "") -> str:
    if not isinstance(at, datetime.datetime):
        return f"{at.isoformat()}T00:00:00"
    if zone and at.tzinfo is not None:
        at = at.astimezone(ZoneInfo(zone))
    return str(at.replace(tzinfo=None).isoformat())


def _aware(at: Any) -> datetime.datetime:
    if not isinstance(at, datetime.datetime):
        return datetime.datetime(at.year, at.month, at.day, tzinfo=_UTC)
    return at if at.tzinfo is not None else at.replace(tzinfo=_UTC)


def _instant(at: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(at, _UTC).replace(microsecond=0)


def _invalid(message: str) -> InvalidInput:
    return InvalidInput((FieldViolation("ical", message),))
