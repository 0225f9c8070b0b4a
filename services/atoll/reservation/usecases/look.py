"""What is asked of bookings: lists, windows that could be had, what is free over time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from atoll.core.engine.bookings.answers import AvailabilityRow, Found, Query
from atoll.core.engine.bookings.calendar import Calendar
from atoll.core.model.actor import Actor
from atoll.core.model.errors import FieldViolation, InvalidInput
from atoll.core.model.ids import ClusterName
from atoll.core.model.paging import next_token, page_size, read_token
from atoll.core.model.reservation import Occurrence, Preference, ReservationId, What
from atoll.core.model.standing_rule import RuleAction
from atoll.core.model.validate_faults import Faults
from atoll.core.model.validate_reservation import LONGEST_S, SHORTEST_S, check_what
from atoll.ports.store.bookings import Listed, OccurrenceFilter, ReservationFilter
from atoll.reservation.usecases.create import START, Made, no_such_reservation, shown
from atoll.reservation.usecases.ground import Ground
from atoll.reservation.usecases.names import nearest, unknown_what

DAY_S: Final = 86_400.0
WEEK_S: Final = 7 * DAY_S
YEAR_S: Final = 366 * DAY_S
CELLS: Final = 84
MOST_CELLS: Final = 2_000
MOST_SHOWN: Final = 1_000
DEFAULT_WINDOWS: Final = 3
TOKEN: Final = "page_token"


@dataclass(frozen=True, slots=True)
class ReservationPage:
    """Reservations by next start, and the token of what follows; empty: nothing does."""

    reservations: tuple[Listed, ...]
    next_token: str


@dataclass(frozen=True, slots=True)
class OccurrencePage:
    """Occurrences by start, and the token of what follows; empty: nothing does."""

    occurrences: tuple[Occurrence, ...]
    next_token: str


@dataclass(frozen=True, slots=True)
class ActionPage:
    """What rules did, the latest first, and the token of what follows."""

    actions: tuple[RuleAction, ...]
    next_token: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """Asks for windows; 0 means: not given."""

    what: What
    length_s: float
    earliest_at: float = 0.0
    latest_end_at: float = 0.0
    most: int = 0
    preference: Preference = Preference.EARLY
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Extent:
    """Which part of the calendar; 0 and empty mean: not given."""

    from_at: float = 0.0
    until_at: float = 0.0
    step_s: float = 0.0
    clusters: tuple[ClusterName, ...] = ()
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CalendarView:
    """What is free over time, and the bookings in it."""

    from_at: float
    step_s: float
    rows: tuple[AvailabilityRow, ...]
    occurrences: tuple[Occurrence, ...]


class Looker:
    """Answers questions; writes nothing."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._store = ground.store

    async def get(self, actor: Actor, number: ReservationId, *, name: str = "") -> Made:
        """One reservation, by number or by name; raises NotFound with the nearest names."""
        if number:
            return await shown(self._ground, actor, number)
        found = await self._store.find(actor.tenant, name)
        if found is None:
            raise await self._no_such_name(actor, name)
        return await shown(self._ground, actor, found)

    async def reservations(
        self, wanted: ReservationFilter, *, size: int, token: str
    ) -> ReservationPage:
        """A page of reservations; raises BAD_PAGE_TOKEN."""
        bounded = self._from_now(wanted)
        query, limit = ("reservations", wanted), page_size(size)
        found = await self._store.list_reservations(
            bounded, after=_after(token, query), limit=limit + 1
        )
        page = found[:limit]
        more = len(found) > limit
        return ReservationPage(
            tuple(page), _token(query, page[-1].key, page[-1].reservation.id) if more else ""
        )

    async def occurrences(
        self, wanted: OccurrenceFilter, *, size: int, token: str
    ) -> OccurrencePage:
        """A page of occurrences; raises BAD_PAGE_TOKEN."""
        bounded = wanted
        if not wanted.ends_after and not wanted.over:
            bounded = replace(wanted, ends_after=self._ground.clock.now())
        query, limit = ("occurrences", wanted), page_size(size)
        found = await self._store.list_occurrences(
            bounded, after=_after(token, query), limit=limit + 1
        )
        page = found[:limit]
        more = len(found) > limit
        return OccurrencePage(
            tuple(page), _token(query, page[-1].start_at, page[-1].id) if more else ""
        )

    async def every(self, wanted: OccurrenceFilter, *, most: int) -> list[Occurrence]:
        """All occurrences, by start, at most so many."""
        return await self._store.list_occurrences(wanted, after=START, limit=most)

    async def actions(self, actor: Actor, rule: str, *, size: int, token: str) -> ActionPage:
        """A page of what rules did; raises BAD_PAGE_TOKEN."""
        query, limit = ("actions", actor.tenant, rule), page_size(size)
        before = int(read_token(token, query, shape=[int], field=TOKEN)[0]) if token else 0
        found = await self._store.rule_actions(actor.tenant, rule, before=before, limit=limit + 1)
        page = found[:limit]
        following = next_token(query, [page[-1][0]]) if len(found) > limit else ""
        return ActionPage(tuple(action for _, action in page), following)

    async def find(self, wanted: Wanted) -> Found:
        """The best windows for an amount and a length, over all clusters."""

        def ask(calendar: Calendar, now: float) -> Found:
            self._check(wanted)
            return calendar.find(_query(wanted, now), now=now)

        return await self._ground.asked(ask)

    async def calendar(self, actor: Actor, extent: Extent) -> CalendarView:
        """What is booked, held and free, by cluster and kind."""

        def ask(calendar: Calendar, now: float) -> tuple[float, float, float, Rows]:
            start, end, step = _span(extent, now)
            rows = calendar.availability(
                start, end, step=step, clusters=extent.clusters, kinds=extent.kinds
            )
            return start, end, step, rows

        start, end, step, rows = await self._ground.asked(ask)
        wanted = OccurrenceFilter(actor.tenant, ends_after=start, starts_before=end)
        found = await self._store.list_occurrences(wanted, after=START, limit=MOST_SHOWN)
        if extent.clusters:
            found = [o for o in found if {p.cluster for p in o.parts} & set(extent.clusters)]
        return CalendarView(start, step, rows, tuple(found))

    def _check(self, wanted: Wanted) -> None:
        faults = Faults()
        check_what(faults, "what", wanted.what)
        faults.number("length_s", wanted.length_s, least=SHORTEST_S, most=LONGEST_S, unit="s")
        found = faults.found or list(
            unknown_what(wanted.what, self._ground.replica.fleet, at="what")
        )
        if found:
            raise InvalidInput(tuple(found))

    def _from_now(self, wanted: ReservationFilter) -> ReservationFilter:
        spans = wanted.ends_after or wanted.starts_before
        if not spans or wanted.ends_after or wanted.over:
            return wanted
        return replace(wanted, ends_after=self._ground.clock.now())

    async def _no_such_name(self, actor: Actor, name: str) -> Exception:
        every = await self._store.list_reservations(
            ReservationFilter(actor.tenant), after=START, limit=MOST_SHOWN
        )
        close = nearest(name, {each.reservation.spec.name for each in every})
        hint = f"; the nearest: {', '.join(close)}" if close else ""
        return no_such_reservation(f"{name!r}{hint}")


Rows = tuple[AvailabilityRow, ...]


def _query(wanted: Wanted, now: float) -> Query:
    earliest = wanted.earliest_at or now
    return Query(
        what=wanted.what,
        length_s=wanted.length_s,
        earliest_at=max(now, earliest),
        latest_end_at=wanted.latest_end_at or max(now, earliest) + YEAR_S,
        most=wanted.most or DEFAULT_WINDOWS,
        preference=wanted.preference,
        priority=wanted.priority or None,
    )


def _span(extent: Extent, now: float) -> tuple[float, float, float]:
    start = extent.from_at or now
    end = extent.until_at or start + WEEK_S
    if end <= start:
        raise _invalid("until_at", "is not after from_at")
    step = extent.step_s or (end - start) / CELLS
    if not step > 0 or (end - start) / step > MOST_CELLS:
        raise _invalid("step_s", f"makes more than {MOST_CELLS:,} cells of the span")
    return start, end, step


def _after(token: str, query: Sequence[object]) -> tuple[float, int]:
    if not token:
        return START
    key, number = read_token(token, query, shape=[str, int], field=TOKEN)
    try:
        return float.fromhex(str(key)), int(number)
    except ValueError:
        raise _invalid(TOKEN, "is no token of such a list") from None


def _token(query: Sequence[object], key: float, number: int) -> str:
    # In full: a rounded time would show a row twice, or not at all.
    return next_token(query, [key.hex(), number])


def _invalid(field: str, message: str) -> InvalidInput:
    return InvalidInput((FieldViolation(field, message),))
