"""Ends bookings before their time: all of one, one occurrence, or some of its nodes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from atoll.core.model.actor import Actor
from atoll.core.model.booking import OccurrenceId
from atoll.core.model.errors import (
    Aborted,
    ErrorCode,
    FailedPrecondition,
    FieldViolation,
    InvalidInput,
    NotFound,
)
from atoll.core.model.reservation import (
    NO_OCCURRENCE,
    Occurrence,
    OccurrenceState,
    Part,
    Parts,
    Reservation,
    ReservationId,
    ReservationState,
)
from atoll.core.model.reservation_lifecycle import TERMINAL_OCCURRENCE, BookingEvent
from atoll.reservation.usecases import entries
from atoll.reservation.usecases.create import Made, no_such_reservation, shown
from atoll.reservation.usecases.ground import Ground, Writing


@dataclass(frozen=True, slots=True)
class Which:
    """A reservation, perhaps one occurrence of it, and the etag that was read."""

    reservation: ReservationId
    occurrence: OccurrenceId = NO_OCCURRENCE
    etag: int = 0
    """0: whatever it is."""


class Ender:
    """Cancels and releases."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    async def cancel(self, actor: Actor, which: Which, *, reason: str) -> Made:
        """End a reservation, or one occurrence; one that is over already is left as it is."""

        async def change(writing: Writing) -> None:
            reservation = await locked(writing, actor, which)
            if which.occurrence != NO_OCCURRENCE:
                await _cancel_one(writing, reservation, which, actor=actor, reason=reason)
            elif reservation.state is ReservationState.ACTIVE:
                await cancel_all(writing, reservation, actor.principal, reason=reason)

        await self._ground.write(change)
        return await shown(self._ground, actor, which.reservation)

    async def release(self, actor: Actor, which: Which, nodes: Sequence[str]) -> Occurrence:
        """Give an occurrence that runs back, or some `cluster/node` of it."""

        async def change(writing: Writing) -> Occurrence:
            reservation = await locked(writing, actor, which)
            found = await chosen(writing, reservation, which, running=True)
            left = _without(found.parts, nodes)
            kept, told, event = found, "given back by its owner", BookingEvent.RELEASED
            if left:
                told, event = f"gave back {', '.join(nodes)}", BookingEvent.UPDATED
                # Nothing is to take the place of what was given back.
                kept = replace(found, parts=left, what=writing.calendar.without(found.id, left))
            done = await entries.put(
                writing, reservation, kept, event=event, message=told, principal=actor.principal
            )
            await entries.end_when_empty(writing, reservation, told, principal=actor.principal)
            return done or found

        return await self._ground.write(change)


async def locked(writing: Writing, actor: Actor, which: Which) -> Reservation:
    """The reservation, locked; raises NotFound, ETAG_MISMATCH."""
    found = (await writing.tx.lock_reservations([which.reservation])).get(which.reservation)
    if found is None or found.tenant != actor.tenant:
        raise no_such_reservation(str(which.reservation))
    if which.etag and which.etag != found.etag:
        raise Aborted(
            f"reservation {found.spec.name} has changed: its etag is {found.etag},"
            f" not {which.etag}",
            code=ErrorCode.ETAG_MISMATCH,
            metadata={"reservation": str(found.id), "etag": str(found.etag)},
        )
    return found


async def chosen(
    writing: Writing, reservation: Reservation, which: Which, *, running: bool = False
) -> Occurrence:
    """The occurrence that is meant; without a number the one that runs, or the next.

    `running`: the next one will not do. Raises NotFound, WRONG_STATE when it is over.
    """
    if which.occurrence != NO_OCCURRENCE:
        return await _numbered(writing, reservation, which.occurrence)
    live = await writing.tx.live_occurrences(reservation.id)
    now = [each for each in live if each.state is OccurrenceState.RUNNING]
    coming = now if running else [*now, *live]
    if not coming:
        raise FailedPrecondition(
            f"no occurrence of {reservation.spec.name} {'runs' if running else 'is to come'}",
            code=ErrorCode.WRONG_STATE,
        )
    return coming[0]


async def cancel_all(
    writing: Writing, reservation: Reservation, principal: str, *, reason: str
) -> None:
    """End a live reservation with all that it has."""
    told = reason or f"cancelled by {principal}"
    for each in await writing.tx.live_occurrences(reservation.id):
        await entries.put(
            writing,
            reservation,
            each,
            event=BookingEvent.CANCELLED,
            message=told,
            principal=principal,
        )
    gone = replace(
        reservation, state=ReservationState.CANCELLED, message=told, etag=reservation.etag + 1
    )
    await writing.tx.update_reservation(gone)
    entries.tell(writing, gone, BookingEvent.CANCELLED, message=told, principal=principal)


async def _cancel_one(
    writing: Writing, reservation: Reservation, which: Which, *, actor: Actor, reason: str
) -> None:
    found = (await writing.tx.occurrences([which.occurrence])).get(which.occurrence)
    if found is None or found.reservation != reservation.id:
        raise _no_such_occurrence(reservation, which.occurrence)
    if found.state in TERMINAL_OCCURRENCE:
        return
    told = reason or f"cancelled by {actor.principal}"
    await entries.put(
        writing,
        reservation,
        found,
        event=BookingEvent.CANCELLED,
        message=told,
        principal=actor.principal,
    )
    await entries.end_when_empty(writing, reservation, told, principal=actor.principal)


async def _numbered(writing: Writing, reservation: Reservation, number: OccurrenceId) -> Occurrence:
    found = (await writing.tx.occurrences([number])).get(number)
    if found is None or found.reservation != reservation.id:
        raise _no_such_occurrence(reservation, number)
    if found.state in TERMINAL_OCCURRENCE:
        raise FailedPrecondition(
            f"occurrence {number} of {reservation.spec.name} is {found.state.value.lower()}",
            code=ErrorCode.WRONG_STATE,
            metadata={"state": found.state.value},
        )
    return found


def _no_such_occurrence(reservation: Reservation, number: OccurrenceId) -> NotFound:
    return NotFound(
        f"reservation {reservation.spec.name} has no occurrence {number}",
        code=ErrorCode.OCCURRENCE_NOT_FOUND,
        metadata={"occurrence": str(number)},
    )


def _without(parts: Parts, nodes: Collection[str]) -> Parts:
    """What is left without some nodes; without any named, nothing."""
    if not nodes:
        return ()
    here = {f"{part.cluster}/{share.node_name}" for part in parts for share in part.shares}
    for i, name in enumerate(nodes):
        if name not in here:
            told = f"{name[:64]!r} is not booked; these are: {', '.join(sorted(here)[:8])}"
            raise InvalidInput((FieldViolation(f"nodes[{i}]", told, ErrorCode.NODE_NOT_FOUND),))
    left = (_part_without(part, nodes) for part in parts)
    return tuple(part for part in left if part.shares)


def _part_without(part: Part, nodes: Collection[str]) -> Part:
    kept = (s for s in part.shares if f"{part.cluster}/{s.node_name}" not in nodes)
    return Part(part.cluster, tuple(kept))
