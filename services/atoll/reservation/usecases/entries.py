"""How what was decided about bookings is written: rows, their events, and who gave way."""

import datetime
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from atoll.core.engine.bookings.answers import Accepted, Move, Placed, Refused, Span
from atoll.core.model.refusal import BookingRefused
from atoll.core.model.reservation import (
    NO_OCCURRENCE,
    Occurrence,
    OccurrenceState,
    Reservation,
    ReservationState,
)
from atoll.core.model.reservation_lifecycle import (
    TERMINAL_OCCURRENCE,
    BookingEvent,
    next_occurrence_state,
)
from atoll.ports.store.bookings import BookingRecord
from atoll.reservation.usecases.ground import Writing

MOST_SHOWN: Final = 100
"""Occurrences that an answer shows."""


def require_room(found: Accepted | Refused) -> Accepted:
    """What was accepted; raises BookingRefused."""
    if isinstance(found, Accepted):
        return found
    told = f"it cannot be had at {shown(found.start)}"
    raise BookingRefused(
        told if found.obstacles else f"{told}: there is no such capacity",
        start_at=found.start,
        obstacles=found.obstacles,
        alternatives=found.alternatives,
    )


def shown(at: float) -> str:
    """A time for people, such as `2026-12-07T09:00:00+00:00`."""
    return datetime.datetime.fromtimestamp(at, datetime.UTC).isoformat(timespec="seconds")


def drafts(reservation: Reservation, placed: Iterable[Placed]) -> list[Occurrence]:
    """Occurrences as they will be written."""
    return [
        Occurrence(
            NO_OCCURRENCE,
            reservation.id,
            reservation.spec.name,
            each.start,
            each.end,
            parts=each.parts,
            start_local=each.local,
        )
        for each in placed
    ]


def without_place(reservation: Reservation, span: Span, *, message: str) -> Occurrence:
    """An occurrence for which there is no room yet: all of it is missing."""
    what = reservation.spec.what
    wanted = sum(amount.count for amount in what.amounts)
    wanted += sum(each.count for each in (what.nodes, what.domains) if each is not None)
    return Occurrence(
        NO_OCCURRENCE,
        reservation.id,
        reservation.spec.name,
        span.start,
        span.end,
        start_local=span.local,
        message=message,
        missing_devices=max(1, wanted),
    )


async def add(
    writing: Writing,
    reservation: Reservation,
    placed: Sequence[Placed],
    *,
    waiting: Sequence[Occurrence] = (),
) -> list[Occurrence]:
    """Write new occurrences; `waiting`: those that have no place yet."""
    written = await writing.tx.add_occurrences([*drafts(reservation, placed), *waiting])
    writing.touched.update(each.id for each in written)
    return written


async def put(
    writing: Writing,
    reservation: Reservation,
    occurrence: Occurrence,
    *,
    event: BookingEvent,
    message: str = "",
    principal: str = "",
) -> Occurrence | None:
    """Take an occurrence where an event takes it, and write it; None when nothing allows it."""
    state = next_occurrence_state(occurrence.state, event)
    if state is None:
        return None
    over = state in TERMINAL_OCCURRENCE
    moved = replace(
        occurrence,
        state=state,
        message=message or occurrence.message,
        ended_at=writing.now if over else occurrence.ended_at,
    )
    await writing.tx.update_occurrences([moved])
    writing.touched.add(occurrence.id)
    tell(writing, reservation, event, occurrence=moved, message=message, principal=principal)
    return moved


def tell(
    writing: Writing,
    reservation: Reservation,
    event: BookingEvent,
    *,
    occurrence: Occurrence | None = None,
    message: str = "",
    principal: str = "",
) -> None:
    """Note what happened, for those who watch."""
    writing.events.append(
        BookingRecord(
            reservation.id,
            reservation.tenant,
            reservation.spec.name,
            event,
            writing.now,
            occurrence=occurrence.id if occurrence is not None else NO_OCCURRENCE,
            queues=reservation.spec.owners.queues,
            message=message,
            principal=principal,
        )
    )


async def give_way(writing: Writing, moves: Sequence[Move], *, to: str, principal: str) -> None:
    """Move or cancel bookings for one of higher priority, each with notice."""
    by_reservation: dict[int, list[Move]] = defaultdict(list)
    for move in moves:
        by_reservation[move.reservation].append(move)
    locked = await writing.tx.lock_reservations({move.reservation for move in moves})
    rows = await writing.tx.occurrences([move.id for move in moves])
    for reservation in locked.values():
        for move in by_reservation[reservation.id]:
            if (row := rows.get(move.id)) is not None:
                await _give_way(writing, reservation, row, move=move, principal=principal)
        await end_when_empty(writing, reservation, f"gave way to {to}", principal=principal)


async def end_when_empty(
    writing: Writing, reservation: Reservation, why: str, *, principal: str
) -> Reservation:
    """Cancel a reservation that does not recur and has nothing left."""
    active = reservation.state is ReservationState.ACTIVE
    if not active or reservation.spec.when.rrule:
        return reservation
    if await writing.tx.live_occurrences(reservation.id):
        return reservation
    gone = replace(
        reservation,
        state=ReservationState.CANCELLED,
        message=why,
        etag=reservation.etag + 1,
    )
    await writing.tx.update_reservation(gone)
    tell(writing, gone, BookingEvent.CANCELLED, message=why, principal=principal)
    return gone


async def _give_way(
    writing: Writing, reservation: Reservation, row: Occurrence, *, move: Move, principal: str
) -> None:
    if row.state in TERMINAL_OCCURRENCE:
        return
    event = BookingEvent.CANCELLED if move.cancelled else BookingEvent.MOVED
    placed = replace(row, start_at=move.start, end_at=move.end, parts=move.parts)
    await put(
        writing,
        reservation,
        row if move.cancelled else placed,
        event=event,
        message=move.message,
        principal=principal,
    )


def is_running(occurrence: Occurrence) -> bool:
    """Whether the loop has started it and it is not over."""
    return occurrence.state is OccurrenceState.RUNNING
