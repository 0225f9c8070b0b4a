"""Books: once per request key, all or nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from atoll.core.engine.bookings.answers import Accepted, Placed
from atoll.core.engine.bookings.calendar import Calendar
from atoll.core.engine.bookings.checks import check_reservation
from atoll.core.model.actor import Actor
from atoll.core.model.errors import (
    AlreadyExists,
    DomainError,
    ErrorCode,
    InvalidInput,
    NotFound,
)
from atoll.core.model.ids import ClusterName
from atoll.core.model.reservation import (
    NO_RESERVATION,
    Displaced,
    Occurrence,
    Reservation,
    ReservationId,
    ReservationSpec,
)
from atoll.core.model.reservation_lifecycle import BookingEvent
from atoll.ports.store.bookings import BookingRequest, OccurrenceFilter
from atoll.ports.store.common import UnknownOutcome
from atoll.reservation.usecases import entries
from atoll.reservation.usecases.ground import Ground, Writing
from atoll.reservation.usecases.names import unknown_names
from atoll.reservation.usecases.spans import Planned, plan_spans

OUTCOME_TRIES: Final = 3
START: Final = (0.0, 0)


@dataclass(frozen=True, slots=True)
class Draft:
    """A booking that is asked for."""

    spec: ReservationSpec
    key: str = ""
    """Request key; empty: nobody will repeat it."""
    body_hash: bytes = b""
    uid: str = ""
    """Of the calendar's event that it comes of."""


@dataclass(frozen=True, slots=True)
class Made:
    """A reservation, its first occurrences, and what they displace."""

    reservation: Reservation
    occurrences: tuple[Occurrence, ...]
    displaced: tuple[Displaced, ...] = ()
    planned: int = 0
    """Occurrences in all that are planned."""


class Booker:
    """Takes bookings in. Recurrences are planned for `horizon_s`."""

    def __init__(self, ground: Ground, *, horizon_s: float) -> None:
        self._ground = ground
        self._horizon_s = horizon_s

    async def create(self, actor: Actor, draft: Draft) -> Made:
        """Book, or find what an earlier call of the same key booked."""
        # Always with a key: it tells whether a commit whose reply was lost has happened.
        key = draft.key or self._ground.ids.uuid()
        request = BookingRequest(actor.tenant, key, draft.body_hash)
        if draft.key and (known := await self._replayed(actor, request)) is not None:
            return known
        for last in (False,) * (OUTCOME_TRIES - 1) + (True,):
            try:
                return await self._book(actor, draft, request)
            except UnknownOutcome:
                if last:
                    raise
            except DomainError:
                # What stands in the way may be what an equal call has booked by now.
                if (known := await self._replayed(actor, request)) is None:
                    raise
                return known
        raise AssertionError("the last try returns or raises")

    async def check(self, actor: Actor, draft: Draft) -> Made:
        """All that `create` would check; nothing is written."""

        def ask(calendar: Calendar, now: float) -> Made:
            planned, accepted = self._found(actor, draft.spec, calendar, now=now)
            reservation = _reservation(actor, draft.spec, planned, now=now)
            made = entries.drafts(reservation, accepted.placed)
            return _made(reservation, made, accepted)

        return await self._ground.asked(ask)

    async def _book(self, actor: Actor, draft: Draft, request: BookingRequest) -> Made:
        async def change(writing: Writing, found: tuple[Planned, Accepted]) -> Made:
            standing = await writing.tx.add_request(request)
            if standing is not None:
                return await self._standing(actor, request, standing)
            planned, accepted = found
            wanted = _reservation(actor, draft.spec, planned, now=writing.now)
            reservation = await _named(writing, wanted, uid=draft.uid)
            written = await self._write(writing, reservation, accepted, actor=actor)
            made = BookingRequest(request.tenant, request.key, request.body_hash, reservation.id)
            await writing.tx.set_request(made)
            return _made(reservation, written, accepted)

        return await self._ground.book(
            lambda calendar, now: self._found(actor, draft.spec, calendar, now=now),
            change,
            where=lambda found: _places(found[1]),
        )

    def _found(
        self, actor: Actor, spec: ReservationSpec, calendar: Calendar, *, now: float
    ) -> tuple[Planned, Accepted]:
        fleet = self._ground.replica.fleet
        faults = check_reservation(spec, now=now)
        if faults := faults or unknown_names(spec, fleet, actor.tenant):
            raise InvalidInput(tuple(faults))
        planned = plan_spans(spec.when, now=now, horizon_s=self._horizon_s)
        return planned, entries.require_room(calendar.accept(spec, planned.spans, now=now))

    @staticmethod
    async def _write(
        writing: Writing, reservation: Reservation, accepted: Accepted, *, actor: Actor
    ) -> list[Occurrence]:
        name, principal = reservation.spec.name, actor.principal
        await entries.give_way(writing, accepted.moves, to=name, principal=principal)
        written = await entries.add(writing, reservation, accepted.placed)
        told = _told(accepted.placed)
        entries.tell(writing, reservation, BookingEvent.CREATED, message=told, principal=principal)
        return written

    async def _replayed(self, actor: Actor, request: BookingRequest) -> Made | None:
        standing = await self._ground.store.standing(actor.tenant, request.key)
        return None if standing is None else await self._standing(actor, request, standing)

    async def _standing(
        self, actor: Actor, request: BookingRequest, standing: BookingRequest
    ) -> Made:
        if standing.body_hash != request.body_hash:
            raise AlreadyExists(
                "the request_id was used for another reservation",
                code=ErrorCode.REQUEST_REUSED,
                metadata={"reservation": str(standing.reservation)},
            )
        return await shown(self._ground, actor, standing.reservation)


async def shown(ground: Ground, actor: Actor, number: ReservationId) -> Made:
    """A reservation with its next occurrences; raises NotFound."""
    listed = await ground.store.get(actor.tenant, number)
    if listed is None:
        raise no_such_reservation(str(number))
    wanted = OccurrenceFilter(actor.tenant, reservation=number)
    following = await ground.store.list_occurrences(wanted, after=START, limit=entries.MOST_SHOWN)
    return Made(listed.reservation, tuple(following), planned=listed.planned)


def no_such_reservation(name: str) -> NotFound:
    """Nothing of that name or number."""
    return NotFound(
        f"there is no reservation {name}",
        code=ErrorCode.RESERVATION_NOT_FOUND,
        metadata={"reservation": name},
    )


def _reservation(
    actor: Actor, spec: ReservationSpec, planned: Planned, *, now: float
) -> Reservation:
    return Reservation(
        NO_RESERVATION,
        spec,
        actor.tenant,
        created_by=actor.principal,
        created_at=now,
        planned_until=planned.until,
        remarks=planned.remarks,
    )


async def _named(writing: Writing, wanted: Reservation, *, uid: str) -> Reservation:
    made = await writing.tx.add_reservation(wanted, uid=uid)
    if made is None:
        name = wanted.spec.name
        raise AlreadyExists(
            f"there is a reservation {name!r} already",
            code=ErrorCode.RESERVATION_EXISTS,
            metadata={"reservation": name},
        )
    return made


def _places(accepted: Accepted) -> set[ClusterName]:
    """The clusters that it takes; none when others move for it, wherever they go."""
    if accepted.moves:
        return set()
    return {part.cluster for each in accepted.placed for part in each.parts}


def _made(reservation: Reservation, occurrences: Sequence[Occurrence], accepted: Accepted) -> Made:
    first = tuple(occurrences[: entries.MOST_SHOWN])
    return Made(reservation, first, accepted.displaced, planned=len(occurrences))


def _told(placed: Sequence[Placed]) -> str:
    clusters = sorted({part.cluster for each in placed for part in each.parts})
    count = len(placed)
    return f"{count:,} occurrence{'s' if count != 1 else ''} in {', '.join(clusters) or 'nowhere'}"
