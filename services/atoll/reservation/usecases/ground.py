"""Where bookings are written: under the locks of shards, on a calendar that is up to date there.

Protocol: lock the shards in order, catch up under the lock, check again, write, raise
`booking_rev`. A plan that a leader made before it fails at its fence then. Who knows beforehand
which clusters are concerned locks their shards alone, everybody else all of them.

No two wait for each other. All shards that a transaction needs are locked at once; whoever
finds that others are needed begins anew with all. Rows of several reservations are locked by
those who hold all shards, and by the loop, whose transactions pass one fence, one by one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from atoll.core.engine.bookings.calendar import Calendar
from atoll.core.model.booking import OccurrenceId
from atoll.core.model.ids import ClusterName, ShardId
from atoll.core.model.messages import ChangeKind
from atoll.ports.clock import Clock, Ids
from atoll.ports.notify import Notifier
from atoll.ports.store.bookings import BookingRecord
from atoll.ports.store.common import Change, Contended
from atoll.ports.store.reservation import ReservationStore, ReservationTx
from atoll.ports.store.retry import retrying
from atoll.reservation.usecases.replica import Replica

T = TypeVar("T")
P = TypeVar("P")
Fencing = Callable[[ReservationTx], Awaitable[None]]
"""Passes the loop's fence, ahead of the shards' locks."""
Clusters = Collection[ClusterName]
"""Those that a change concerns; none: any of them."""

TRIES: Final = 8
FRESH_S: Final = 0.05
"""So old a look at nodes and runs still does for a question."""
OLD_S: Final = 60.0
"""Older changes are read before anything is locked."""


@dataclass(slots=True)
class Writing:
    """An open transaction that holds shards, and the calendar as of then."""

    tx: ReservationTx
    calendar: Calendar
    now: float
    """Database time, unix seconds."""
    shards: Sequence[ShardId]
    """What is locked, ascending."""
    touched: set[OccurrenceId] = field(default_factory=set)
    """Occurrences whose windows changed."""
    events: list[BookingRecord] = field(default_factory=list)


class Elsewhere(Contended):
    """What is to be written lies in shards that are not locked: with all of them it will do."""

    def __init__(self) -> None:
        super().__init__("more shards are to be locked")


class Ground:
    """One process's way to change bookings."""

    def __init__(
        self,
        store: ReservationStore,
        replica: Replica,
        *,
        notifier: Notifier,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self.store = store
        self.replica = replica
        self.clock = clock
        self.ids = ids
        self._notifier = notifier
        self.fence: Fencing | None = None
        """Passed by every write that brings no fence of its own."""
        self.also: Callable[[Writing], Awaitable[None]] | None = None
        """Done at the end of every write, in its transaction."""

    def under(self, fence: Fencing, also: Callable[["Writing"], Awaitable[None]]) -> "Ground":
        """The same ground, all writes of which pass a fence and do something more."""
        same = Ground(
            self.store, self.replica, notifier=self._notifier, clock=self.clock, ids=self.ids
        )
        same.fence, same.also = fence, also
        return same

    async def book(
        self,
        prepare: Callable[[Calendar, float], P],
        change: Callable[[Writing, P], Awaitable[T]],
        *,
        where: Callable[[P], Clusters] = lambda _: (),
        fence: Fencing | None = None,
    ) -> T:
        """Commit what `change` makes of what `prepare` finds on the calendar.

        `prepare` runs off the event loop before anything is locked, and again under the locks
        when something has changed by then; what either raises undoes all of it. Both may run
        several times. `where`: the clusters that it concerns, none: any.
        """

        async def once(everywhere: bool) -> T:
            await self.replica.refresh()
            now = self.clock.now()
            found = await asyncio.to_thread(prepare, self.replica.look(now), now)
            shards = self.replica.shards if everywhere else self._shards(where(found))
            async with self.store.begin() as tx:
                writing, changed = await self._locked(tx, shards, fence)
                if changed:
                    found = await asyncio.to_thread(prepare, writing.calendar, writing.now)
                result = await change(writing, found)
                await self._finish(writing)
            return result

        return await self._run(once)

    async def write(
        self,
        change: Callable[[Writing], Awaitable[T]],
        *,
        where: Callable[[], Clusters] = lambda: (),
        fence: Fencing | None = None,
    ) -> T:
        """Commit what `change` does under the locks, which may run several times."""

        async def once(everywhere: bool) -> T:
            await self.replica.refresh(at_most_s=OLD_S)
            shards = self.replica.shards if everywhere else self._shards(where())
            async with self.store.begin() as tx:
                writing, _ = await self._locked(tx, shards, fence)
                result = await change(writing)
                await self._finish(writing)
            return result

        return await self._run(once)

    async def small(self, change: Callable[[ReservationTx], Awaitable[T]]) -> T:
        """Commit a change that no placement depends on: no shard is locked."""

        async def once() -> T:
            async with self.store.begin() as tx:
                return await change(tx)

        return await self._retried(once)

    async def asked(self, ask: Callable[[Calendar, float], T]) -> T:
        """What a question finds on the calendar as of now, off the event loop."""
        async with self.replica.lock:
            await self.replica.refresh(at_most_s=FRESH_S)
            now = self.clock.now()
            calendar = self.replica.look(now)
            return await asyncio.to_thread(ask, calendar, now)

    def ring(self) -> None:
        """Let others look."""
        self._notifier.ring()

    async def _run(self, once: Callable[[bool], Awaitable[T]]) -> T:
        everywhere = False

        async def locked() -> T:
            nonlocal everywhere
            async with self.replica.lock:
                try:
                    return await once(everywhere)
                except Elsewhere:
                    everywhere = True
                    raise

        return await self._retried(locked)

    async def _retried(self, once: Callable[[], Awaitable[T]]) -> T:
        try:
            return await retrying(once, clock=self.clock, ids=self.ids, attempts=TRIES)
        finally:
            self.replica.outdated()
            self.ring()

    def _shards(self, clusters: Clusters) -> list[ShardId]:
        """The shards of clusters; all of them when none is named, or one is not known."""
        known = self.replica.fleet.clusters
        if not clusters or any(name not in known for name in clusters):
            return self.replica.shards
        return sorted({known[name].shard for name in clusters})

    async def _locked(
        self, tx: ReservationTx, shards: Sequence[ShardId], fence: Fencing | None
    ) -> tuple[Writing, bool]:
        if passing := fence or self.fence:
            await passing(tx)
        await tx.lock_shards(shards)
        changed = await self.replica.catch_up_in(tx, shards)
        now = await tx.now()
        return Writing(tx, self.replica.look(now), now, shards), changed

    async def _finish(self, writing: Writing) -> None:
        tx = writing.tx
        if self.also is not None:
            await self.also(writing)
        await tx.add_events(writing.events)
        if writing.touched:
            await self._require_locked(writing)
            touched = tuple(sorted(writing.touched))
            await tx.changed([Change(ChangeKind.BOOKINGS, ids=touched)])
            await tx.raise_booking_rev(writing.shards)

    async def _require_locked(self, writing: Writing) -> None:
        """Raises Elsewhere when a window was, or is now, in a shard that is not locked."""
        if writing.shards == self.replica.shards:
            return
        now = await writing.tx.kept(writing.touched)
        before = (self.replica.kept.get(number) for number in writing.touched)
        places = (kept.occurrence.parts for kept in (*now.values(), *before) if kept is not None)
        clusters = {part.cluster for parts in places for part in parts}
        if clusters and not set(self._shards(clusters)) <= set(writing.shards):
            raise Elsewhere
