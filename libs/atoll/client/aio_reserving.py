"""Bookings: the same verbs for programs on an event loop."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing
from typing import Any, TypeVar

from atoll.adapters.system import SystemIds
from atoll.api.reservation.v1 import reservation_pb2 as pb
from atoll.client import booking_calls as calls
from atoll.client import calendar_calls as asking
from atoll.client.aio_transport import AsyncTransport
from atoll.client.booking_views import (
    BookingEventInfo,
    BookingFilter,
    BookingInfo,
    CalendarInfo,
    FoundWindows,
    ImportedEvent,
)
from atoll.client.calendar_calls import events_of
from atoll.client.calls import Call, Page
from atoll.client.operating import PAGE_SIZE
from atoll.client.retry import worth_another_try
from atoll.core.model.errors import ErrorCode, Unavailable
from atoll.core.model.reservation import Occurrence, Preference, ReservationSpec, What
from atoll.core.model.standing_rule import Rule, RuleAction

ItemT = TypeVar("ItemT")


class AsyncReservations:
    """What is booked. A booking that cannot be had raises BookingRefused, which tells why."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport
        self._ids = SystemIds()

    async def create(self, spec: ReservationSpec, *, request_id: str | None = None) -> BookingInfo:
        """Book; with the same request_id again it finds the same reservation."""
        call = calls.create(spec, request_id=request_id or self._ids.uuid(), validate_only=False)
        return await self._transport.run(call)

    async def check(self, spec: ReservationSpec) -> BookingInfo:
        """What would be booked; nothing is."""
        return await self._transport.run(calls.create(spec, request_id="", validate_only=True))

    async def get(self, id_or_name: int | str) -> BookingInfo:
        """One reservation with its next occurrences; NotFound when there is none."""
        return await self._transport.run(calls.get(id_or_name))

    def list(
        self, wanted: BookingFilter | None = None, *, page_size: int = PAGE_SIZE
    ) -> AsyncIterator[BookingInfo]:
        """Reservations by their next start; pages are read as they are needed."""
        chosen = wanted or BookingFilter()
        return self._pages(
            lambda token: calls.list_reservations(chosen, page_size=page_size, token=token)
        )

    async def update(
        self,
        number: int,
        spec: ReservationSpec,
        fields: Iterable[str],
        *,
        etag: int = 0,
        validate_only: bool = False,
    ) -> BookingInfo:
        """Change what `fields` name, such as `when.length_s`, to the values of `spec`."""
        call = calls.update(number, spec, fields, etag=etag, validate_only=validate_only)
        return await self._transport.run(call)

    async def cancel(
        self, number: int, *, occurrence_id: int = 0, etag: int = 0, reason: str = ""
    ) -> BookingInfo:
        """End a reservation, or one occurrence of it."""
        call = calls.cancel(number, occurrence_id=occurrence_id, etag=etag, reason=reason)
        return await self._transport.run(call)

    async def extend(
        self, number: int, end_at: float, *, occurrence_id: int = 0, etag: int = 0
    ) -> Occurrence:
        """Move the end of the occurrence that runs, of the next, or of the numbered one."""
        call = calls.extend(number, end_at, occurrence_id=occurrence_id, etag=etag)
        return await self._transport.run(call)

    async def release(
        self, number: int, *, occurrence_id: int = 0, nodes: Iterable[str] = ()
    ) -> Occurrence:
        """Give back the occurrence that runs, or only some `cluster/node` of it."""
        call = calls.release(number, occurrence_id=occurrence_id, nodes=nodes)
        return await self._transport.run(call)

    def occurrences(
        self,
        wanted: BookingFilter | None = None,
        *,
        reservation_id: int = 0,
        page_size: int = PAGE_SIZE,
    ) -> AsyncIterator[Occurrence]:
        """Occurrences by start, of one reservation or of all."""
        chosen = wanted or BookingFilter()
        return self._pages(
            lambda token: calls.list_occurrences(
                chosen, reservation_id=reservation_id, page_size=page_size, token=token
            )
        )

    async def find(
        self,
        what: What,
        length_s: float,
        *,
        earliest_at: float = 0.0,
        latest_end_at: float = 0.0,
        most: int = 3,
        preference: Preference = Preference.EARLY,
        priority: int = 0,
    ) -> FoundWindows:
        """The best windows for an amount and a length, each with what it displaces."""
        call = asking.find(
            what,
            length_s,
            earliest_at=earliest_at,
            latest_end_at=latest_end_at,
            most=most,
            preference=preference,
            priority=priority,
        )
        return await self._transport.run(call)

    async def calendar(
        self,
        from_at: float = 0.0,
        until_at: float = 0.0,
        *,
        step_s: float = 0.0,
        clusters: Iterable[str] = (),
        kinds: Iterable[str] = (),
    ) -> CalendarInfo:
        """What is booked, held and free over time, by cluster and kind; a week from now."""
        call = asking.calendar(from_at, until_at, step_s=step_s, clusters=clusters, kinds=kinds)
        return await self._transport.run(call)

    async def export_ical(
        self, *, queue: str = "", cluster: str = "", from_at: float = 0.0, until_at: float = 0.0
    ) -> str:
        """Bookings as iCalendar text."""
        call = asking.export_ical(queue=queue, cluster=cluster, from_at=from_at, until_at=until_at)
        return await self._transport.run(call)

    async def import_ical(
        self,
        text: str,
        *,
        what: What | None = None,
        priority: int = 0,
        validate_only: bool = False,
    ) -> "EventList":
        """Book the events of a calendar as maintenance; `what` for those that do not say."""
        call = asking.import_ical(text, what=what, priority=priority, validate_only=validate_only)
        return await self._transport.run(call)

    async def put_rule(self, rule: Rule, *, etag: int = 0) -> Rule:
        """Create or replace a standing rule; with an etag only if nobody changed it since."""
        return await self._transport.run(asking.put_rule(rule, etag))

    async def rules(self) -> "RuleList":
        """All standing rules, by name."""
        return await self._transport.run(asking.rules())

    async def delete_rule(self, name: str) -> int:
        """Delete a rule; how many of its bookings were cancelled with it."""
        return await self._transport.run(asking.delete_rule(name))

    def rule_actions(
        self, name: str = "", *, page_size: int = PAGE_SIZE
    ) -> AsyncIterator[RuleAction]:
        """What a rule did and why, the latest first; without a name: what all did."""
        return self._pages(
            lambda token: asking.rule_actions(name, page_size=page_size, token=token)
        )

    async def watch(
        self, cursor: str = "", *, queue: str = "", reservation_id: int = 0
    ) -> AsyncIterator[BookingEventInfo]:
        """What happens from now on, or after `cursor`, over reconnects, without an end."""
        request = pb.WatchReservationsRequest(
            cursor=cursor, queue=queue, reservation_id=reservation_id
        )
        tries = 0
        while True:
            try:
                reply_kind = pb.WatchReservationsResponse
                async with aclosing(
                    self._transport.stream(calls.WATCH, request, reply_kind)
                ) as replies:
                    async for reply in replies:
                        tries = 0
                        for event in events_of(reply, request.cursor):
                            yield event
                        request.cursor = reply.cursor
                raise Unavailable("the server ended the watch", code=ErrorCode.UNAVAILABLE)
            except Unavailable as error:
                tries += 1
                if not worth_another_try(error, repeatable=True, tries=tries):
                    raise
            await self._transport.pause(tries)

    async def _pages(self, ask: Callable[[str], Call[Any, Page[ItemT]]]) -> AsyncIterator[ItemT]:
        token = ""
        while True:
            page = await self._transport.run(ask(token))
            for item in page.items:
                yield item
            if not (token := page.next_token):
                return


EventList = list[ImportedEvent]
RuleList = list[Rule]
