"""ReservationService over gRPC: wire -> use case -> wire."""

# Methods have the API's names.
# ruff: noqa: N802

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import grpc

from atoll.api.reservation.v1 import reservation_pb2 as pb
from atoll.api.reservation.v1 import reservation_pb2_grpc
from atoll.core.model.actor import Actor
from atoll.core.model.ids import Tenant
from atoll.core.model.reservation import ReservationId
from atoll.ports.clock import Clock
from atoll.ports.store.bookings import OccurrenceFilter
from atoll.reservation import answers, ical, intake, telemetry
from atoll.reservation.usecases.calendars import Importer
from atoll.reservation.usecases.change import Changer
from atoll.reservation.usecases.create import Booker
from atoll.reservation.usecases.give_back import Ender, Which
from atoll.reservation.usecases.look import YEAR_S, Looker
from atoll.reservation.usecases.rule_book import RuleBook
from atoll.reservation.usecases.watch import BookingWatcher, Watched
from atoll.runtime.rpc.caller import current
from atoll.wire.reservation import occurrence_to_proto
from atoll.wire.standing_rule import action_to_proto, rule_from_proto, rule_to_proto

Context = grpc.aio.ServicerContext[Any, Any]
MOST_EXPORTED = 10_000


@dataclass(frozen=True, slots=True)
class UseCases:
    """What the servicer calls."""

    booker: Booker
    changer: Changer
    ender: Ender
    looker: Looker
    watcher: BookingWatcher
    importer: Importer
    rules: RuleBook
    clock: Clock


class ReservationServicer(reservation_pb2_grpc.ReservationServiceServicer):
    """Every replica answers everything."""

    def __init__(self, use_cases: UseCases) -> None:
        self._use = use_cases

    async def CreateReservation(
        self, request: pb.CreateReservationRequest, context: Context
    ) -> pb.CreateReservationResponse:
        """Book, or say what would happen."""
        draft = intake.draft_of(request)
        with telemetry.booking():
            if request.validate_only:
                made = await self._use.booker.check(_actor(), draft)
            else:
                made = await self._use.booker.create(_actor(), draft)
        return pb.CreateReservationResponse(
            reservation=answers.reservation(made),
            occurrences=answers.occurrences(made.occurrences),
            displaced=answers.displaced(made.displaced),
        )

    async def GetReservation(
        self, request: pb.GetReservationRequest, context: Context
    ) -> pb.GetReservationResponse:
        """One reservation."""
        number = ReservationId(request.id)
        made = await self._use.looker.get(_actor(), number, name=request.name)
        return pb.GetReservationResponse(
            reservation=answers.reservation(made),
            occurrences=answers.occurrences(made.occurrences),
        )

    async def ListReservations(
        self, request: pb.ListReservationsRequest, context: Context
    ) -> pb.ListReservationsResponse:
        """A page of reservations."""
        page = await self._use.looker.reservations(
            intake.reservations_of(request, _actor()),
            size=request.page_size,
            token=request.page_token,
        )
        return pb.ListReservationsResponse(
            reservations=[answers.listed(row) for row in page.reservations],
            next_page_token=page.next_token,
        )

    async def UpdateReservation(
        self, request: pb.UpdateReservationRequest, context: Context
    ) -> pb.UpdateReservationResponse:
        """Change a reservation."""
        which = Which(ReservationId(request.id), etag=request.etag)
        with telemetry.booking():
            made = await self._use.changer.update(_actor(), which, intake.update_of(request))
        return pb.UpdateReservationResponse(
            reservation=answers.reservation(made),
            occurrences=answers.occurrences(made.occurrences),
        )

    async def CancelReservation(
        self, request: pb.CancelReservationRequest, context: Context
    ) -> pb.CancelReservationResponse:
        """End a reservation, or one occurrence."""
        which = intake.which_of(request)
        made = await self._use.ender.cancel(_actor(), which, reason=request.reason)
        return pb.CancelReservationResponse(reservation=answers.reservation(made))

    async def ExtendReservation(
        self, request: pb.ExtendReservationRequest, context: Context
    ) -> pb.ExtendReservationResponse:
        """Move an end."""
        which = intake.which_of(request)
        with telemetry.booking():
            done, etag = await self._use.changer.extend(_actor(), which, request.end_at)
        return pb.ExtendReservationResponse(occurrence=occurrence_to_proto(done), etag=etag)

    async def ReleaseReservation(
        self, request: pb.ReleaseReservationRequest, context: Context
    ) -> pb.ReleaseReservationResponse:
        """Give back what runs, or a part of it."""
        which = intake.which_of(request)
        done = await self._use.ender.release(_actor(), which, list(request.nodes))
        return pb.ReleaseReservationResponse(occurrence=occurrence_to_proto(done))

    async def ListOccurrences(
        self, request: pb.ListOccurrencesRequest, context: Context
    ) -> pb.ListOccurrencesResponse:
        """A page of occurrences."""
        page = await self._use.looker.occurrences(
            intake.occurrences_of(request, _actor()),
            size=request.page_size,
            token=request.page_token,
        )
        return pb.ListOccurrencesResponse(
            occurrences=answers.occurrences(page.occurrences), next_page_token=page.next_token
        )

    async def FindWindow(
        self, request: pb.FindWindowRequest, context: Context
    ) -> pb.FindWindowResponse:
        """Windows that could be had."""
        return answers.windows(await self._use.looker.find(intake.wanted_of(request)))

    async def GetCalendar(
        self, request: pb.GetCalendarRequest, context: Context
    ) -> pb.GetCalendarResponse:
        """What is free over time."""
        extent = intake.extent_of(request)
        return answers.calendar(await self._use.looker.calendar(_actor(), extent))

    async def ExportCalendar(
        self, request: pb.ExportCalendarRequest, context: Context
    ) -> pb.ExportCalendarResponse:
        """Bookings as iCalendar text."""
        now = self._use.clock.now()
        start = request.from_at or now
        wanted = OccurrenceFilter(
            _actor().tenant,
            ends_after=start,
            starts_before=request.until_at or start + YEAR_S,
            queue=request.queue,
            cluster=request.cluster,
        )
        found = await self._use.looker.every(wanted, most=MOST_EXPORTED)
        return pb.ExportCalendarResponse(ical=ical.export(found, now=now))

    async def ImportCalendar(
        self, request: pb.ImportCalendarRequest, context: Context
    ) -> pb.ImportCalendarResponse:
        """Book the events of a calendar."""
        events = ical.read(request.ical)
        defaults = intake.defaults_of(request)
        return answers.imported(await self._use.importer.take(_actor(), events, defaults))

    async def PutRule(self, request: pb.PutRuleRequest, context: Context) -> pb.PutRuleResponse:
        """Create or replace a rule."""
        rule = rule_from_proto(request.rule)
        return pb.PutRuleResponse(rule=rule_to_proto(await self._use.rules.put(_actor(), rule)))

    async def ListRules(
        self, request: pb.ListRulesRequest, context: Context
    ) -> pb.ListRulesResponse:
        """All rules."""
        found = await self._use.rules.all(_actor())
        return pb.ListRulesResponse(rules=[rule_to_proto(rule) for rule in found])

    async def DeleteRule(
        self, request: pb.DeleteRuleRequest, context: Context
    ) -> pb.DeleteRuleResponse:
        """Delete a rule and what it booked."""
        cancelled = await self._use.rules.delete(_actor(), request.name)
        return pb.DeleteRuleResponse(cancelled=cancelled)

    async def ListRuleActions(
        self, request: pb.ListRuleActionsRequest, context: Context
    ) -> pb.ListRuleActionsResponse:
        """What rules did."""
        page = await self._use.looker.actions(
            _actor(), request.name, size=request.page_size, token=request.page_token
        )
        return pb.ListRuleActionsResponse(
            actions=[action_to_proto(action) for action in page.actions],
            next_page_token=page.next_token,
        )

    async def WatchReservations(
        self, request: pb.WatchReservationsRequest, context: Context
    ) -> AsyncIterator[pb.WatchReservationsResponse]:
        """Stream events."""
        watched = Watched(request.queue, ReservationId(request.reservation_id))
        pages = self._use.watcher.watch(_actor(), watched, cursor=request.cursor)
        async for page in pages:
            events = [answers.event(record) for record in page.events]
            yield pb.WatchReservationsResponse(events=events, cursor=page.cursor.text)


def _actor() -> Actor:
    caller = current.get()
    return Actor(caller.principal, Tenant(caller.tenant))
