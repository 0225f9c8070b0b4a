"""What the loop does to single occurrences: rows under their locks, and events."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from atoll.core.engine.bookings.answers import Accepted, Placed, Rebound, Refused
from atoll.core.model.booking import OccurrenceId
from atoll.core.model.reservation import Occurrence, OccurrenceState, Reservation
from atoll.core.model.reservation_lifecycle import TERMINAL_OCCURRENCE, BookingEvent
from atoll.reservation.usecases import entries
from atoll.reservation.usecases.due import Due, over_at_of
from atoll.reservation.usecases.ground import Writing
from atoll.reservation.usecases.spans import Planned

EARLY_S: Final = 0.05
"""By so much may the store's clock be behind ours."""
LOOP: Final = "reservation"
"""Who did what the loop does."""


@dataclass(frozen=True, slots=True)
class Done:
    """Something that the loop did, and how late."""

    event: BookingEvent
    occurrence: OccurrenceId
    late_s: float = 0.0


async def act(
    writing: Writing, reservation: Reservation, row: Occurrence, *, action: Due
) -> list[Done]:
    """One action; nothing when somebody changed the occurrence meanwhile."""
    if row.state in TERMINAL_OCCURRENCE:
        return []
    late_s = writing.now - action.at
    match action.event:
        case BookingEvent.STARTED:
            if row.start_at > writing.now + EARLY_S or row.state is OccurrenceState.RUNNING:
                return []
            row = replace(row, started_at=writing.now)
        case BookingEvent.ENDED:
            if over_at_of(reservation.spec, row) > writing.now + EARLY_S:
                return []
        case _:
            pass
    done = await entries.put(
        writing, reservation, row, event=action.event, message=action.message, principal=LOOP
    )
    return [Done(action.event, row.id, late_s=late_s)] if done is not None else []


async def mend(
    writing: Writing, reservation: Reservation, row: Occurrence, *, rebound: Rebound
) -> list[Done]:
    """Another place for an occurrence; nothing when it is as it was."""
    if row.state in TERMINAL_OCCURRENCE:
        return []
    if (rebound.parts, rebound.missing) == (row.parts, row.missing_devices):
        return []
    event = BookingEvent.SHORT if rebound.missing else BookingEvent.MOVED
    moved = replace(row, parts=rebound.parts, missing_devices=rebound.missing)
    message = rebound.message or ("is complete again" if not rebound.missing else "lacks nodes")
    done = await entries.put(
        writing, reservation, moved, event=event, message=message, principal=LOOP
    )
    return [Done(event, row.id)] if done is not None else []


async def add_planned(
    writing: Writing,
    reservation: Reservation,
    planned: Planned,
    *,
    found: Sequence[Accepted | Refused],
) -> None:
    """Write occurrences of a recurrence; what cannot be had waits for a place until its end."""
    placed: list[Placed] = []
    waiting: list[Occurrence] = []
    for span, answer in zip(planned.spans, found, strict=True):
        if isinstance(answer, Accepted):
            placed += answer.placed
            to = reservation.spec.name
            await entries.give_way(writing, answer.moves, to=to, principal=LOOP)
        else:
            told = "; ".join(obstacle.message for obstacle in answer.obstacles[:2])
            message = f"no room at {span.local}: {told}"
            entries.tell(writing, reservation, BookingEvent.SHORT, message=message, principal=LOOP)
            waiting.append(entries.without_place(reservation, span, message=message))
    await entries.add(writing, reservation, placed, waiting=waiting)
