"""Retention of bookings in memory."""

from collections.abc import Iterable
from itertools import islice
from typing import TypeVar

from atoll.adapters.memory.booking_rows import BookingRows
from atoll.adapters.memory.store_rows import MemoryDatabase
from atoll.core.model.reservation_lifecycle import TERMINAL_OCCURRENCE
from atoll.ports.store.bookings import BookingRetention

T = TypeVar("T")


async def prune_bookings(
    database: MemoryDatabase, now: float, keep: BookingRetention, *, limit: int
) -> int:
    """Delete what is older than `keep`, at most `limit` rows of each kind; how many."""
    async with database.transaction(now) as rows:
        bookings = rows.bookings
        deleted = _prune_occurrences(bookings, now - keep.reservations_s, limit)
        deleted += _prune_reservations(bookings, now - keep.reservations_s, limit)
        old = ((k, at) for k, (_, at) in bookings.requests.items())
        for key in (keys := _first((k for k, at in old if at < now - keep.requests_s), limit)):
            bookings.requests.drop(key)
        done = ((n, action.at) for n, (_, action) in bookings.actions.items())
        for number in (gone := _first((n for n, at in done if at < now - keep.actions_s), limit)):
            bookings.actions.drop(number)
    return deleted + len(keys) + len(gone) + _prune_events(database, now - keep.events_s, limit)


def _prune_occurrences(bookings: BookingRows, before: float, limit: int) -> int:
    over = (o for o in bookings.occurrences.values() if o.state in TERMINAL_OCCURRENCE)
    old = _first((o.id for o in over if o.ended_at < before), limit)
    for number in old:
        bookings.occurrences.drop(number)
        bookings.uses.drop(number)
    return len(old)


def _prune_reservations(bookings: BookingRows, before: float, limit: int) -> int:
    needed = {o.reservation for o in bookings.occurrences.values()}
    ended = ((number, at) for number, at in bookings.ends.items() if number not in needed)
    old = _first((number for number, at in ended if at < before), limit)
    for number in old:
        bookings.reservations.drop(number)
        bookings.uids.drop(number)
        bookings.ends.drop(number)
    return len(old)


def _prune_events(database: MemoryDatabase, before: float, limit: int) -> int:
    oldest = database.booking_events[:limit]
    old = next((i for i, each in enumerate(oldest) if each.event.at >= before), len(oldest))
    if old:
        database.booking_events_lost = oldest[old - 1].seq
        del database.booking_events[:old]
    return old


def _first(found: Iterable[T], limit: int) -> list[T]:
    return list(islice(found, limit))
