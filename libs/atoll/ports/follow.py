"""Follows events from a cursor on: complete, without repeats, for as long as one listens."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sized
from typing import Final, Protocol, TypeVar

from atoll.core.model.errors import ErrorCode, Unavailable
from atoll.ports.clock import Clock
from atoll.ports.store.common import Cursor
from atoll.ports.wake import Wake

EVENTS_PER_PAGE: Final = 1_000
QUIET_S: Final = 15.0
"""After so long without an event the cursor is sent alone, so that it does not grow too old."""


class EventPage(Protocol):
    """Events in commit order, and the cursor after them."""

    @property
    def events(self) -> Sized:
        """At most EVENTS_PER_PAGE."""
        ...

    @property
    def cursor(self) -> Cursor:
        """Where the next page begins."""
        ...


PageT = TypeVar("PageT", bound=EventPage)


async def follow(
    read: Callable[[Cursor], Awaitable[PageT]], start: Cursor, *, wake: Wake, clock: Clock
) -> AsyncIterator[PageT]:
    """Pages of events, for ever; the first one comes at once and may be empty.

    `read` gives the page after a cursor. Raises Unavailable when this process stops: the watch
    goes on elsewhere from its last cursor.
    """
    page = await read(start)
    yield page
    sent = clock.monotonic()
    while not wake.stopped:
        # A full page means that more is waiting.
        if len(page.events) < EVENTS_PER_PAGE:
            await wake.wait()
        page = await read(page.cursor)
        if len(page.events) or clock.monotonic() - sent >= QUIET_S:
            yield page
            sent = clock.monotonic()
    raise Unavailable(
        "this server stops; watch on from the last cursor", code=ErrorCode.UNAVAILABLE
    )
