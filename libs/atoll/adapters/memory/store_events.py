"""Cursors over commits in memory: commits have one order, so a cursor is a number."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TypeVar

from atoll.adapters.memory.booking_rows import LoggedBooking
from atoll.adapters.memory.store_rows import LoggedEvent, MemoryDatabase
from atoll.core.model.errors import ErrorCode, FailedPrecondition
from atoll.ports.store.common import Cursor
from atoll.ports.store.submission import WatchPage

LoggedT = TypeVar("LoggedT", LoggedEvent, LoggedBooking)


def cursor_at(database: MemoryDatabase, seq: int, place: int = 0) -> Cursor:
    """After commit `seq`, and `place` events of the one after it."""
    return Cursor(f"memory/{database.number}/{seq}/{place}")


def position(database: MemoryDatabase, cursor: Cursor) -> tuple[int, int]:
    """Commit and place of a cursor; raises CURSOR_EXPIRED for another database's."""
    name, _, rest = cursor.text.partition("/")
    parts = rest.split("/")
    if name != "memory" or len(parts) != 3 or not all(part.isdigit() for part in parts):
        raise expired("it is no cursor of this store")
    number, seq, place = map(int, parts)
    if number != database.number or seq > database.seq:
        raise expired("it is of another database")
    return seq, place


def expired(why: str) -> FailedPrecondition:
    """Everything must be loaded anew."""
    return FailedPrecondition(f"the cursor is of no use: {why}", code=ErrorCode.CURSOR_EXPIRED)


def events_now(database: MemoryDatabase) -> Cursor:
    """The cursor from which only later events are seen."""
    return cursor_at(database, database.seq)


def events_after(
    database: MemoryDatabase,
    cursor: Cursor,
    wanted: Callable[[LoggedEvent], bool],
    *,
    limit: int,
) -> WatchPage:
    """The next page of wanted events."""
    page, following = page_after(
        database, database.events, cursor, wanted=wanted, lost=database.events_lost, limit=limit
    )
    return WatchPage(tuple(each.event for each in page), following)


def page_after(
    database: MemoryDatabase,
    log: Sequence[LoggedT],
    cursor: Cursor,
    *,
    wanted: Callable[[LoggedT], bool],
    lost: int,
    limit: int,
) -> tuple[list[LoggedT], Cursor]:
    """The next wanted entries of a log, and the cursor after them; up to `lost` some may lack."""
    seq, place = position(database, cursor)
    if seq < lost:
        raise expired("events after it were pruned")
    start = bisect_right(log, seq, key=lambda logged: logged.seq) + place
    later = ((at, log[at]) for at in range(start, len(log)))
    page = list(islice(((at, each) for at, each in later if wanted(each)), limit))
    events = [each for _, each in page]
    if len(page) < limit:
        return events, events_now(database)
    at, last = page[-1]
    first = bisect_right(log, last.seq - 1, key=lambda logged: logged.seq)
    return events, cursor_at(database, last.seq - 1, at + 1 - first)
