"""One term of the loop that keeps bookings: starts and ends them, replaces nodes, plans on.

Each step commits under the fence of the term, so that what is done is done once; whoever has
lost the term learns it there.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from atoll.core.engine.bookings.answers import Accepted, Rebound, Refused
from atoll.core.engine.bookings.calendar import Calendar
from atoll.core.engine.bookings.checks import MOST_AHEAD_S
from atoll.core.engine.bookings.recurrence import occurrences
from atoll.core.model.booking import OccurrenceId
from atoll.core.model.ids import ClusterName, NodeId
from atoll.core.model.reservation import (
    Reservation,
    ReservationState,
)
from atoll.core.model.reservation_lifecycle import BookingEvent
from atoll.ports.store.bookings import Kept, LoopFence
from atoll.ports.store.reservation import ReservationTx
from atoll.reservation.usecases import deeds, entries
from atoll.reservation.usecases.deeds import LOOP, Done
from atoll.reservation.usecases.due import Due, due, next_due
from atoll.reservation.usecases.fleet import FleetCopy
from atoll.reservation.usecases.ground import Ground, Writing
from atoll.reservation.usecases.spans import plan_on
from atoll.reservation.usecases.use import busy_now, counted, use_of

MOST_AT_ONCE: Final = 200
"""Occurrences in one transaction."""
AGAIN_S: Final = 5.0
"""Between two looks at bookings that lack nodes."""
FAR_S: Final = 86_400.0
"""What starts later can wait for a place until it comes nearer."""


@dataclass(slots=True)
class Term:
    """One term of leadership. Steps are never run two at a time."""

    ground: Ground
    fence: LoopFence
    horizon_s: float
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held around every step."""
    _again_at: float = 0.0
    """When those that lack something are looked at again; monotonic."""

    @property
    def kept(self) -> dict[OccurrenceId, Kept]:
        """Occurrences that are not over."""
        return self.ground.replica.kept

    @property
    def missing(self) -> int:
        """Devices that bookings lack."""
        return sum(kept.occurrence.missing_devices for kept in self.kept.values())

    def next_due(self, now: float) -> float:
        """When the next thing is to be done, unix seconds."""
        return next_due(self.kept.values(), now)

    async def act(self) -> list[Done]:
        """Start, end, bind and give back what is due; what was done."""
        now = self.ground.clock.now()
        actions = due(self.kept.values(), now)[:MOST_AT_ONCE]
        return await self.fenced_write(actions) if actions else []

    async def fenced_write(self, actions: Sequence[Due]) -> list[Done]:
        """Do what is due, if it still is when its rows are locked."""
        passed: list[LoopFence] = []

        async def change(writing: Writing) -> list[Done]:
            await self._note_use(writing, [action.occurrence for action in actions])
            locked = await writing.tx.lock_reservations({a.reservation for a in actions})
            rows = await writing.tx.occurrences([a.occurrence for a in actions])
            done = []
            for action in actions:
                row, reservation = rows.get(action.occurrence), locked.get(action.reservation)
                if row is not None and reservation is not None:
                    done += await deeds.act(writing, reservation, row, action=action)
            return done

        result = await self.ground.write(
            change,
            where=lambda: self._places(action.occurrence for action in actions),
            fence=lambda tx: self._pass(tx, passed),
        )
        self.fence = passed[-1]
        return result

    async def mend(self) -> list[Done]:
        """Replace what failed of nodes that are booked, as far as anything can."""
        fleet, now = self.ground.replica.fleet, self.ground.clock.monotonic()
        failing, fleet.failing = fleet.failing, set()
        again = now >= self._again_at
        far = self.ground.clock.now() + FAR_S
        hurt = [
            number
            for number, kept in self.kept.items()
            if _is_hurt(kept, fleet, failing, again=again and kept.occurrence.start_at < far)
        ]
        if again:
            self._again_at = now + AGAIN_S
        try:
            return await self._rebind(sorted(hurt)[:MOST_AT_ONCE]) if hurt else []
        except Exception:
            fleet.failing |= failing
            raise
        finally:
            if len(hurt) > MOST_AT_ONCE:
                fleet.failing |= failing

    async def plan_on(self) -> int:
        """Plan recurrences up to the horizon; occurrences that were added."""
        now = self.ground.clock.now()
        until = now + self.horizon_s
        behind = await self.ground.store.to_plan(until - self.horizon_s / 16, limit=MOST_AT_ONCE)
        return sum([await self._plan_on(each, until) for each in behind])

    async def retire(self) -> int:
        """End reservations all of whose occurrences are over; how many."""
        empty = await self.ground.store.live_without_occurrence(limit=MOST_AT_ONCE)
        over = [each.id for each in empty if not _goes_on(each)]
        if not over:
            return 0
        passed: list[LoopFence] = []

        async def change(writing: Writing) -> int:
            ended = 0
            for reservation in (await writing.tx.lock_reservations(over)).values():
                live = await writing.tx.live_occurrences(reservation.id)
                if reservation.state is ReservationState.ACTIVE and not live:
                    gone = replace(reservation, state=ReservationState.ENDED)
                    await writing.tx.update_reservation(gone)
                    entries.tell(writing, gone, BookingEvent.ENDED, principal=LOOP)
                    ended += 1
            return ended

        result = await self.ground.write(change, fence=lambda tx: self._pass(tx, passed))
        self.fence = passed[-1]
        return result

    async def measure(self) -> None:
        """Count what owners use of the windows that run."""
        replica = self.ground.replica
        async with replica.lock:
            holdings = replica.fleet.world.ledger.holdings.values()
            busy = busy_now(self.kept.values(), holdings)
            for kept in counted(self.kept, busy, now=self.ground.clock.now()):
                self.kept[kept.occurrence.id] = kept

    async def save_use(self) -> None:
        """Write what owners used so far."""
        uses = [use_of(kept) for kept in self.kept.values() if kept.used_until]
        if uses:
            await self.small(lambda tx: tx.note_use(uses))

    async def small(self, change: Callable[[ReservationTx], Awaitable[None]]) -> None:
        """Commit under the fence what no placement depends on."""
        passed: list[LoopFence] = []

        async def fenced(tx: ReservationTx) -> None:
            await self._pass(tx, passed)
            await change(tx)

        await self.ground.small(fenced)
        self.fence = passed[-1]

    async def _rebind(self, ids: Sequence[OccurrenceId]) -> list[Done]:
        passed: list[LoopFence] = []

        def prepare(calendar: Calendar, now: float) -> dict[OccurrenceId, Rebound]:
            return {n: calendar.rebind(n, now=now) for n in ids if n in self.kept}

        async def change(writing: Writing, found: dict[OccurrenceId, Rebound]) -> list[Done]:
            locked = await writing.tx.lock_reservations({
                self.kept[n].reservation.id for n in found if n in self.kept
            })
            rows = await writing.tx.occurrences(found)
            done = []
            for number, rebound in found.items():
                row = rows.get(number)
                reservation = locked.get(row.reservation) if row is not None else None
                if row is not None and reservation is not None:
                    done += await deeds.mend(writing, reservation, row, rebound=rebound)
            return done

        result = await self.ground.book(
            prepare,
            change,
            where=lambda found: self._places(found) | _taken(found.values()),
            fence=lambda tx: self._pass(tx, passed),
        )
        self.fence = passed[-1]
        return result

    async def _plan_on(self, reservation: Reservation, until: float) -> int:
        passed: list[LoopFence] = []
        spec = reservation.spec
        planned = plan_on(spec.when, since=reservation.planned_until, until=until)

        def prepare(calendar: Calendar, now: float) -> list[Accepted | Refused]:
            return [calendar.accept(spec, (span,), now=now) for span in planned.spans]

        async def change(writing: Writing, found: list[Accepted | Refused]) -> int:
            standing = (await writing.tx.lock_reservations([reservation.id])).get(reservation.id)
            if standing is None or standing.revision != reservation.revision:
                return 0
            await writing.tx.update_reservation(replace(standing, planned_until=planned.until))
            await deeds.add_planned(writing, standing, planned, found=found)
            return len(found)

        result = await self.ground.book(prepare, change, fence=lambda tx: self._pass(tx, passed))
        self.fence = passed[-1]
        return result

    def _places(self, ids: Iterable[OccurrenceId]) -> set[ClusterName]:
        known = (self.kept[number].occurrence for number in ids if number in self.kept)
        return {part.cluster for occurrence in known for part in occurrence.parts}

    async def _pass(self, tx: ReservationTx, passed: list[LoopFence]) -> None:
        passed.append(await tx.require(self.fence))

    async def _note_use(self, writing: Writing, ids: Sequence[OccurrenceId]) -> None:
        known = (self.kept[number] for number in ids if number in self.kept)
        await writing.tx.note_use([use_of(kept) for kept in known if kept.used_until])


def _is_hurt(kept: Kept, fleet: FleetCopy, failing: Collection[NodeId], *, again: bool) -> bool:
    """Whether an occurrence lost something, or lacks it and it is time to look again."""
    if again and kept.occurrence.missing_devices:
        return True
    shares = (share for part in kept.occurrence.parts for share in part.shares)
    return any(share.node in failing and fleet.lacks(share) for share in shares)


def _taken(found: Iterable[Rebound]) -> set[ClusterName]:
    return {part.cluster for rebound in found for part in rebound.parts}


def _goes_on(reservation: Reservation) -> bool:
    """Whether a recurrence has more to come than is planned."""
    when = reservation.spec.when
    if not when.rrule:
        return False
    since = reservation.planned_until
    return bool(occurrences(when, since, since + MOST_AHEAD_S, most=1).spans)
