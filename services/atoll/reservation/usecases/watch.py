"""Watches: what happens to bookings after a cursor, complete and without repeats."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from atoll.core.model.actor import Actor
from atoll.core.model.reservation import NO_RESERVATION, ReservationId
from atoll.ports.clock import Clock
from atoll.ports.follow import EVENTS_PER_PAGE, follow
from atoll.ports.store.bookings import BookingPage
from atoll.ports.store.common import Cursor
from atoll.ports.store.reservation import ReservationStore
from atoll.ports.wake import Wake


@dataclass(frozen=True, slots=True)
class Watched:
    """What a watch is about. Empty members do not restrict."""

    queue: str = ""
    reservation: ReservationId = NO_RESERVATION


class BookingWatcher:
    """Follows the store's events."""

    def __init__(self, store: ReservationStore, wake: Wake, clock: Clock) -> None:
        self._store = store
        self._wake = wake
        self._clock = clock

    async def watch(
        self, actor: Actor, watched: Watched, *, cursor: str
    ) -> AsyncIterator[BookingPage]:
        """Pages of events, for ever; the first one comes at once and may be empty.

        `cursor` empty: from now on. Raises CURSOR_EXPIRED when it is too old, and Unavailable when
        this process stops: the watch goes on elsewhere from its last cursor.
        """
        at = Cursor(cursor) if cursor else await self._store.events_now()

        async def read(after: Cursor) -> BookingPage:
            return await self._page(actor, watched, after)

        async for page in follow(read, at, wake=self._wake, clock=self._clock):
            yield page

    async def _page(self, actor: Actor, watched: Watched, cursor: Cursor) -> BookingPage:
        return await self._store.events_after(
            cursor,
            tenant=actor.tenant,
            queue=watched.queue,
            reservation=watched.reservation,
            limit=EVENTS_PER_PAGE,
        )
