"""The federation as this process knows it: nodes, runs, guarantees and bookings of all shards.

It follows the same changes as the shards' leaders do, and never writes. Whoever reads or moves it
holds its lock.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from atoll.core.engine.bookings.answers import Booked, booked_of
from atoll.core.engine.bookings.calendar import Calendar
from atoll.core.engine.deadlines.promise import kept as kept_promises
from atoll.core.engine.deadlines.wishes import Ask
from atoll.core.model.booking import OccurrenceId
from atoll.core.model.errors import DomainError, ErrorCode
from atoll.core.model.ids import ShardId
from atoll.core.model.plan import Claim, PendingJob
from atoll.core.model.reservation import OccurrenceState
from atoll.core.model.reservation_lifecycle import TERMINAL_OCCURRENCE
from atoll.core.state.snapshot import Snapshot
from atoll.ports.clock import Clock
from atoll.ports.store.bookings import Kept
from atoll.ports.store.common import Contended, Cursor
from atoll.ports.store.placement import PlacementStore, ShardDelta
from atoll.ports.store.reservation import ReservationStore, ReservationTx
from atoll.reservation.usecases.fleet import FleetCopy

LOAD_ANEW: Final = (ErrorCode.CURSOR_EXPIRED, ErrorCode.PLAN_INVALID)
"""The changes since are not all known, or do not fit to what is."""

LOOK_S: Final = 1.0
"""So long runs may have gone on by then, without any that began or ended."""

ReadDelta = Callable[[ShardId, Cursor], Awaitable[ShardDelta]]
ReadKept = Callable[[Iterable[OccurrenceId]], Awaitable[Mapping[OccurrenceId, Kept]]]


class Replica:
    """Nodes, runs and bookings, brought up to date by changes."""

    def __init__(self, placement: PlacementStore, store: ReservationStore, clock: Clock) -> None:
        self._placement = placement
        self._store = store
        self._clock = clock
        self._cursors: dict[ShardId, Cursor] = {}
        self._looked_at = float("-inf")
        self._fresh_at = float("-inf")
        self.fleet = FleetCopy()
        self.kept: dict[OccurrenceId, Kept] = {}
        """Occurrences that are not over."""
        self.snapshot: Snapshot = self.fleet.world.look(0.0)
        self.calendar = Calendar(self.snapshot)
        self.lock = asyncio.Lock()
        self.ready = False

    @property
    def shards(self) -> list[ShardId]:
        """All shards, ascending."""
        return sorted(self._cursors)

    async def follow(self) -> None:
        """Catch up, or load everything when nothing is known yet or the cursor is too old."""
        shards = await self._store.shards()
        async with self.lock:
            if shards != self.shards:
                self.ready = False
            await self.refresh()

    async def refresh(self, *, at_most_s: float = 0.0) -> None:
        """The same under the lock; what is younger than `at_most_s` will do."""
        if self.ready and self._clock.monotonic() - self._fresh_at < at_most_s:
            return
        if not self.ready:
            await self._load()
        else:
            await self._caught_up()
        self._fresh_at = self._clock.monotonic()

    def outdated(self) -> None:
        """This process has written something: the next look is a fresh one."""
        self._fresh_at = float("-inf")

    async def catch_up_in(self, tx: ReservationTx, shards: Iterable[ShardId]) -> bool:
        """Catch up inside a transaction that holds shards; whether anything had changed there."""
        try:
            return await self._catch_up(tx.catch_up, tx.kept, shards)
        except DomainError as error:
            if error.code not in LOAD_ANEW:
                raise
            # Loaded before the next try: a transaction must not take that long.
            self.ready = False
            raise Contended(f"everything is to be loaded anew: {error}") from error

    def look(self, now: float, *, at_most_s: float = LOOK_S) -> Calendar:
        """The calendar over nodes and runs as they are now; unchanged ones as of a moment ago."""
        if self._clock.monotonic() - self._looked_at >= at_most_s:
            self.snapshot = self.fleet.world.look(now)
            self.calendar.look(self.snapshot, self.claims(now))
            self._looked_at = self._clock.monotonic()
        return self.calendar

    def claims(self, now: float) -> tuple[Claim, ...]:
        """What queued jobs were guaranteed."""
        standing = [_ask(job) for job in self.fleet.world.guaranteed()]
        return kept_promises(self.snapshot, standing, now=now) if standing else ()

    async def _caught_up(self) -> None:
        try:
            await self._catch_up(self._placement.catch_up, self._store.kept, self.shards)
        except DomainError as error:
            if error.code not in LOAD_ANEW:
                raise
            await self._load()

    async def _catch_up(
        self, read_delta: ReadDelta, read_kept: ReadKept, shards: Iterable[ShardId]
    ) -> bool:
        deltas = {shard: await read_delta(shard, self._cursors[shard]) for shard in shards}
        ids = {each for delta in deltas.values() for each in _booked(delta)}
        kept = await read_kept(ids) if ids else {}
        # Nothing is awaited from here on: it is taken in whole or not at all.
        changed = [self.fleet.absorb(delta) for delta in deltas.values()]
        self._cursors |= {shard: delta.cursor for shard, delta in deltas.items()}
        self._enter(ids, kept)
        if any(changed):
            self._looked_at = float("-inf")
        return any(changed) or bool(ids)

    async def _load(self) -> None:
        self.ready = False
        self.fleet = FleetCopy()
        self._cursors = {}
        for shard in await self._store.shards():
            delta = await self._placement.load(shard)
            await asyncio.to_thread(self.fleet.absorb, delta)
            self._cursors[shard] = delta.cursor
        live = await self._store.live()
        self.kept = {each.occurrence.id: each for each in live}
        now = self._clock.now()
        self.snapshot = self.fleet.world.look(now)
        booked = [_calendar_entry(each) for each in live]
        self.calendar = await asyncio.to_thread(Calendar, self.snapshot, booked, self.claims(now))
        self._looked_at = self._clock.monotonic()
        self._fresh_at = self._looked_at
        self.ready = True

    def _enter(self, ids: Iterable[OccurrenceId], kept: Mapping[OccurrenceId, Kept]) -> None:
        for number in sorted(ids):
            found = kept.get(number)
            if found is None or found.occurrence.state in TERMINAL_OCCURRENCE:
                self.kept.pop(number, None)
                self.calendar.remove(number)
            else:
                self.kept[number] = _with_use(found, self.kept.get(number))
                self.calendar.add(_calendar_entry(found))


def _with_use(found: Kept, known: Kept | None) -> Kept:
    """A row with what was counted since it was written."""
    if known is None or known.used_until <= found.used_until:
        return found
    hours = known.occurrence.used_device_hours
    return replace(
        found,
        occurrence=replace(found.occurrence, used_device_hours=hours),
        busy_at=known.busy_at,
        used_until=known.used_until,
    )


def _calendar_entry(kept: Kept) -> Booked:
    running = kept.occurrence.state is OccurrenceState.RUNNING
    return booked_of(kept.reservation, kept.occurrence, running=running)


def _booked(delta: ShardDelta) -> set[OccurrenceId]:
    return {window.id for window in delta.windows} | set(delta.windows_gone)


def _ask(job: PendingJob) -> Ask:
    return Ask(
        job.queue, job.request, job.deadline_at, begin_at=job.begin_at, waits=bool(job.depends_on)
    )
