"""Changes bookings: what they are, and when they end. Refused whole when it cannot be kept."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from atoll.core.engine.bookings.answers import Accepted, Placed
from atoll.core.engine.bookings.checks import check_reservation
from atoll.core.model.actor import Actor
from atoll.core.model.errors import (
    AlreadyExists,
    ErrorCode,
    FailedPrecondition,
    FieldViolation,
    InvalidInput,
)
from atoll.core.model.reservation import (
    Displaced,
    Occurrence,
    OccurrenceState,
    Reservation,
    ReservationSpec,
    ReservationState,
)
from atoll.core.model.reservation_lifecycle import BookingEvent
from atoll.core.model.validate_faults import Faults
from atoll.core.model.validate_reservation import check_booking
from atoll.reservation.usecases import entries
from atoll.reservation.usecases.create import Made, shown
from atoll.reservation.usecases.give_back import Which, chosen, locked
from atoll.reservation.usecases.ground import Ground, Writing
from atoll.reservation.usecases.masks import changed_by, places_anew
from atoll.reservation.usecases.names import unknown_names
from atoll.reservation.usecases.spans import Planned, plan_spans


class Undone(Exception):
    """Everything was well, and nothing is to be written."""

    def __init__(self, made: Made) -> None:
        super().__init__("only checked")
        self.made = made


@dataclass(frozen=True, slots=True)
class Update:
    """New values of a spec, where the paths name them."""

    spec: ReservationSpec
    paths: Sequence[str]
    only_check: bool = False


class Changer:
    """Updates and extends."""

    def __init__(self, ground: Ground, *, horizon_s: float) -> None:
        self._ground = ground
        self._horizon_s = horizon_s

    async def update(self, actor: Actor, which: Which, update: Update) -> Made:
        """Change what the paths name; what runs keeps its place and its end."""

        async def change(writing: Writing) -> None:
            reservation = await locked(writing, actor, which)
            _require_active(reservation)
            spec = changed_by(reservation.spec, update.spec, update.paths)
            self._check(actor, spec, now=writing.now, anew=places_anew(update.paths))
            changed = replace(reservation, spec=spec, etag=reservation.etag + 1)
            if places_anew(update.paths):
                made = await self._place_anew(writing, changed, before=reservation, actor=actor)
            else:
                made = await _keep_places(writing, changed)
            if update.only_check:
                raise Undone(made)
            told = f"changed {', '.join(update.paths)}"
            entries.tell(
                writing, changed, BookingEvent.UPDATED, message=told, principal=actor.principal
            )

        try:
            await self._ground.write(change)
        except Undone as checked:
            return checked.made
        return await shown(self._ground, actor, which.reservation)

    async def extend(self, actor: Actor, which: Which, end_at: float) -> tuple[Occurrence, int]:
        """Move the end of an occurrence; it and the etag after it."""

        async def change(writing: Writing) -> tuple[Occurrence, int]:
            reservation = await locked(writing, actor, which)
            found = await chosen(writing, reservation, which)
            _require_end(found, end_at, now=writing.now)
            answer = await asyncio.to_thread(
                writing.calendar.extend, found.id, end_at, now=writing.now
            )
            accepted = entries.require_room(answer)
            await entries.give_way(
                writing, accepted.moves, to=reservation.spec.name, principal=actor.principal
            )
            done = await _extended(writing, reservation, found, to=accepted.placed[0], actor=actor)
            changed = replace(reservation, etag=reservation.etag + 1)
            await writing.tx.update_reservation(changed)
            return done, changed.etag

        return await self._ground.write(change)

    def _check(self, actor: Actor, spec: ReservationSpec, *, now: float, anew: bool) -> None:
        if anew:
            faults = check_reservation(spec, now=now)
        else:
            found = Faults()
            check_booking(found, "spec", spec)
            faults = found.found
        if faults := faults or unknown_names(spec, self._ground.replica.fleet, actor.tenant):
            raise InvalidInput(tuple(faults))

    async def _place_anew(
        self, writing: Writing, changed: Reservation, *, before: Reservation, actor: Actor
    ) -> Made:
        live = await writing.tx.live_occurrences(changed.id)
        coming = [each for each in live if not entries.is_running(each)]
        running = [each for each in live if entries.is_running(each)]
        busy_until = max((each.end_at for each in running), default=0.0)
        planned = _later(
            plan_spans(changed.spec.when, now=writing.now, horizon_s=self._horizon_s), busy_until
        )
        accepted = await _accepted(writing, changed, planned, coming=coming)
        await entries.give_way(
            writing, accepted.moves, to=changed.spec.name, principal=actor.principal
        )
        kept = replace(changed, planned_until=planned.until, remarks=planned.remarks)
        await _write(writing, kept)
        written = await _replace(writing, kept, coming, placed=accepted.placed)
        # What runs stays what it was, also when something of it is replaced.
        as_before = [replace(each, what=each.what or before.spec.what) for each in running]
        await writing.tx.update_occurrences(as_before)
        writing.touched.update(each.id for each in running)
        shown_now = tuple(written[: entries.MOST_SHOWN])
        return Made(kept, shown_now, accepted.displaced, planned=len(written))


async def _accepted(
    writing: Writing, changed: Reservation, planned: Planned, *, coming: Sequence[Occurrence]
) -> Accepted:
    if not planned.spans and changed.spec.when.flexible is None:
        return Accepted(())
    nodes = {s.node for each in coming for part in each.parts for s in part.shares}
    found = await asyncio.to_thread(
        writing.calendar.accept,
        changed.spec,
        planned.spans,
        now=writing.now,
        own=[each.id for each in coming],
        prefer=nodes,
    )
    return entries.require_room(found)


async def _keep_places(writing: Writing, changed: Reservation) -> Made:
    await _write(writing, changed)
    live = await writing.tx.live_occurrences(changed.id)
    writing.touched.update(each.id for each in live)
    none: tuple[Displaced, ...] = ()
    return Made(changed, tuple(live[: entries.MOST_SHOWN]), none, planned=len(live))


async def _write(writing: Writing, changed: Reservation) -> None:
    if not await writing.tx.update_reservation(changed):
        raise AlreadyExists(
            f"there is a reservation {changed.spec.name!r} already",
            code=ErrorCode.RESERVATION_EXISTS,
            metadata={"reservation": changed.spec.name},
        )


async def _replace(
    writing: Writing,
    reservation: Reservation,
    coming: Sequence[Occurrence],
    *,
    placed: Sequence[Placed],
) -> list[Occurrence]:
    """Occurrences that start when one did before stay the same; the others go, or are new."""
    before = {each.start_at: each for each in coming}
    kept = [
        replace(
            before.pop(each.start),
            end_at=each.end,
            parts=each.parts,
            start_local=each.local,
            state=OccurrenceState.PLANNED,
            what=None,
        )
        for each in placed
        if each.start in before
    ]
    await writing.tx.update_occurrences(kept)
    for gone in before.values():
        await entries.put(
            writing,
            reservation,
            gone,
            event=BookingEvent.CANCELLED,
            message="the reservation was changed",
        )
    starts = {each.start_at for each in kept}
    new = await entries.add(writing, reservation, [p for p in placed if p.start not in starts])
    writing.touched.update(each.id for each in kept)
    return sorted([*kept, *new], key=lambda each: each.start_at)


async def _extended(
    writing: Writing,
    reservation: Reservation,
    found: Occurrence,
    *,
    to: Placed,
    actor: Actor,
) -> Occurrence:
    longer = replace(found, end_at=to.end, parts=to.parts)
    done = await entries.put(
        writing,
        reservation,
        longer,
        event=BookingEvent.UPDATED,
        message=f"its end was moved by {to.end - found.end_at:+,.0f} s",
        principal=actor.principal,
    )
    return done or longer


def _later(planned: Planned, busy_until: float) -> Planned:
    spans = tuple(span for span in planned.spans if span.start >= busy_until)
    return replace(planned, spans=spans)


def _require_active(reservation: Reservation) -> None:
    if reservation.state is not ReservationState.ACTIVE:
        raise FailedPrecondition(
            f"reservation {reservation.spec.name} is {reservation.state.value.lower()}",
            code=ErrorCode.WRONG_STATE,
            metadata={"state": reservation.state.value},
        )


def _require_end(occurrence: Occurrence, end_at: float, *, now: float) -> None:
    if end_at <= occurrence.start_at:
        told = "is not after the start of the occurrence"
    elif end_at <= now:
        told = "is in the past; to end it now, release it"
    else:
        return
    raise InvalidInput((FieldViolation("end_at", told),))
