"""The verbs about the calendar, rules and what happens, as values."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from atoll.api.reservation.v1 import reservation_pb2 as pb
from atoll.client.booking_views import (
    BookingEventInfo,
    CalendarInfo,
    CalendarRow,
    FoundWindows,
    ImportedEvent,
)
from atoll.client.calls import RESERVATION, Call, Page
from atoll.client.reading import read
from atoll.core.model.reservation import Preference, What
from atoll.core.model.standing_rule import Rule, RuleAction
from atoll.wire.reservation import (
    obstacle_from_proto,
    occurrence_from_proto,
    window_from_proto,
)
from atoll.wire.reservation_spec import preference_to_proto, what_to_proto
from atoll.wire.standing_rule import action_from_proto, rule_from_proto, rule_to_proto

WATCH: Final = f"/{RESERVATION}/WatchReservations"


def find(
    what: What,
    length_s: float,
    *,
    earliest_at: float,
    latest_end_at: float,
    most: int,
    preference: Preference,
    priority: int,
) -> Call[pb.FindWindowResponse, FoundWindows]:
    """Windows that could be had."""
    return Call(
        RESERVATION,
        "FindWindow",
        pb.FindWindowRequest(
            what=what_to_proto(what),
            length_s=length_s,
            earliest_at=earliest_at,
            latest_end_at=latest_end_at,
            most=most,
            preference=preference_to_proto(preference),
            priority=priority,
        ),
        pb.FindWindowResponse,
        lambda reply: FoundWindows(
            tuple(window_from_proto(each) for each in reply.windows),
            tuple(obstacle_from_proto(each) for each in reply.obstacles),
        ),
    )


def calendar(
    from_at: float,
    until_at: float,
    *,
    step_s: float,
    clusters: Iterable[str],
    kinds: Iterable[str],
) -> Call[pb.GetCalendarResponse, CalendarInfo]:
    """What is free over time."""
    return Call(
        RESERVATION,
        "GetCalendar",
        pb.GetCalendarRequest(
            from_at=from_at, until_at=until_at, step_s=step_s, clusters=clusters, kinds=kinds
        ),
        pb.GetCalendarResponse,
        lambda reply: CalendarInfo(
            reply.from_at,
            reply.step_s,
            tuple(_row(row) for row in reply.rows),
            tuple(occurrence_from_proto(each) for each in reply.occurrences),
        ),
    )


def export_ical(
    *, queue: str, cluster: str, from_at: float, until_at: float
) -> Call[pb.ExportCalendarResponse, str]:
    """Bookings as iCalendar text."""
    return Call(
        RESERVATION,
        "ExportCalendar",
        pb.ExportCalendarRequest(queue=queue, cluster=cluster, from_at=from_at, until_at=until_at),
        pb.ExportCalendarResponse,
        lambda reply: reply.ical,
    )


def import_ical(
    text: str, *, what: What | None, priority: int, validate_only: bool
) -> Call[pb.ImportCalendarResponse, list[ImportedEvent]]:
    """Book the events of a calendar; repeatable, for each has its UID."""
    return Call(
        RESERVATION,
        "ImportCalendar",
        pb.ImportCalendarRequest(
            ical=text,
            what=None if what is None else what_to_proto(what),
            priority=priority,
            validate_only=validate_only,
        ),
        pb.ImportCalendarResponse,
        lambda reply: [read(ImportedEvent, event) for event in reply.events],
    )


def put_rule(rule: Rule, etag: int) -> Call[pb.PutRuleResponse, Rule]:
    """Create or replace a rule."""
    return Call(
        RESERVATION,
        "PutRule",
        pb.PutRuleRequest(rule=rule_to_proto(replace(rule, etag=etag))),
        pb.PutRuleResponse,
        lambda reply: rule_from_proto(reply.rule),
        repeatable=False,
    )


def rules() -> Call[pb.ListRulesResponse, list[Rule]]:
    """All rules, by name."""
    return Call(
        RESERVATION,
        "ListRules",
        pb.ListRulesRequest(),
        pb.ListRulesResponse,
        lambda reply: [rule_from_proto(rule) for rule in reply.rules],
    )


def delete_rule(name: str) -> Call[pb.DeleteRuleResponse, int]:
    """Reservations that were cancelled with it."""
    return Call(
        RESERVATION,
        "DeleteRule",
        pb.DeleteRuleRequest(name=name),
        pb.DeleteRuleResponse,
        lambda reply: reply.cancelled,
        repeatable=False,
    )


def rule_actions(
    name: str, *, page_size: int, token: str
) -> Call[pb.ListRuleActionsResponse, Page[RuleAction]]:
    """What rules did, the latest first."""
    return Call(
        RESERVATION,
        "ListRuleActions",
        pb.ListRuleActionsRequest(name=name, page_size=page_size, page_token=token),
        pb.ListRuleActionsResponse,
        lambda reply: Page(
            [action_from_proto(each) for each in reply.actions], reply.next_page_token
        ),
    )


def events_of(reply: pb.WatchReservationsResponse, before: str) -> list[BookingEventInfo]:
    """Events of a reply; only the last one carries the cursor after it, the others `before`."""
    last = len(reply.events) - 1
    return [
        read(BookingEventInfo, event, cursor=reply.cursor if n == last else before)
        for n, event in enumerate(reply.events)
    ]


def _row(row: pb.CalendarRow) -> CalendarRow:
    return CalendarRow(
        row.cluster,
        row.kind,
        row.total,
        booked=tuple(row.booked),
        running=tuple(row.running),
        free=tuple(row.free),
    )
