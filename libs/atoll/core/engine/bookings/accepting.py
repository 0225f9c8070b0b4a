"""Whether a booking can be kept, where, and who gives way to it."""

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from atoll.core.engine.bookings.answers import (
    Accepted,
    Booked,
    Move,
    Placed,
    Query,
    Refused,
    Span,
)
from atoll.core.engine.bookings.diary import Diary, Trial
from atoll.core.engine.bookings.displacing import Beside, Losers, displaced
from atoll.core.engine.bookings.fitting import Fit, Fitter, views
from atoll.core.engine.bookings.obstacles import obstacles
from atoll.core.engine.bookings.overriding import Yielding
from atoll.core.engine.bookings.search import Hit, Range, Search
from atoll.core.engine.bookings.segment_kernels import View
from atoll.core.engine.bookings.wanted import Pool, pools_of
from atoll.core.model.booking import OccurrenceId, Owners
from atoll.core.model.reservation import (
    NO_OCCURRENCE,
    NO_RESERVATION,
    CandidateWindow,
    Obstacle,
    Preference,
    ReservationSpec,
    What,
)

ALTERNATIVES: Final = 3
AROUND_S: Final = 90 * 86_400.0
"""How far from what was asked for other windows are looked for."""
MOST_COMPARED: Final = 64
"""Windows that are compared by what they displace."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A booking that is asked for, as far as it matters where and when it lies."""

    name: str
    what: What
    owners: Owners
    nobody: bool
    priority: int
    allowed: tuple[View, ...]


def asked_by(spec: ReservationSpec) -> Asked:
    """What a spec asks for."""
    owners = spec.owners
    floor = spec.priority if spec.override else None
    return Asked(spec.name, spec.what, owners, owners.nobody, spec.priority, views(floor))


@dataclass(frozen=True, slots=True)
class Desk:
    """Answers one question, inside a trial."""

    diary: Diary
    trial: Trial
    asked: Asked
    now: float

    @property
    def pools(self) -> tuple[Pool, ...]:
        """Where it may lie."""
        return pools_of(self.diary.terrain, self.asked.what, nobody=self.asked.nobody)

    def spans(self, spans: Sequence[Span]) -> Accepted | Refused:
        """Places for fixed spans."""
        pools, times = self.pools, [(span.start, span.end) for span in spans]
        found = Fitter(self.diary.chooser, pools).all(times, self.asked.allowed) if pools else []
        if len(found) < len(spans):
            return self.refused(pools, times[len(found)])
        return self.accepted(spans, found)

    def flexible(self, query: Query) -> Accepted | Refused:
        """A place in the best window of a span."""
        hits = self.windows(query)
        if not hits:
            start = max(self.now, query.earliest_at)
            return self.refused(self.pools, (start, start + query.length_s))
        best = hits[0]
        return self.accepted([Span(best.start, best.end)], [best.fit])

    def windows(self, query: Query) -> list[Hit]:
        """The best windows first."""
        earliest = max(self.now, query.earliest_at)
        asked = Range(earliest, query.latest_end_at - query.length_s, query.length_s)
        search = Search(self.diary, self.pools, self.asked.allowed, asked)
        match query.preference:
            case Preference.EARLY:
                return list(itertools.islice(search.early(), query.most))
            case Preference.LATE:
                return list(itertools.islice(search.late(), query.most))
            case Preference.CHEAPEST:
                return self._cheapest(search, query.most)

    def accepted(self, spans: Sequence[Span], fits: Sequence[Fit]) -> Accepted:
        """Places that are free by their views, with all that gives way."""
        losers = Losers()
        for span, fit in zip(spans, fits, strict=True):
            beside = Beside(self.diary, (span.start, span.end), fit.view)
            beside.losers(fit.parts, self.asked.owners, losers)
        placed = tuple(
            Placed(s.start, s.end, f.parts, s.local) for s, f in zip(spans, fits, strict=True)
        )
        moves: tuple[Move, ...] = ()
        if losers.bookings:
            for each in placed:
                self.trial.enter(self._booked(each))
            moves = Yielding(self.diary, self.trial, losers, self.asked.name, self.now).moves()
        return Accepted(placed, displaced(self.diary, losers), moves)

    def refused(self, pools: Sequence[Pool], span: tuple[float, float]) -> Refused:
        """What is in the way of a span, and the nearest windows that could be had."""
        found = tuple(self._alternatives(pools, span))
        return Refused(span[0], self.in_the_way(span), found)

    def in_the_way(self, span: tuple[float, float]) -> tuple[Obstacle, ...]:
        """What holds in a span what is needed."""
        what, view = self.asked.what, self.asked.allowed[-1]
        return obstacles(self.diary, self.pools, what, span=span, view=view)

    def candidate(self, hit: Hit) -> CandidateWindow:
        """A window with what it displaces."""
        losers = Losers()
        beside = Beside(self.diary, (hit.start, hit.end), hit.fit.view)
        beside.losers(hit.fit.parts, self.asked.owners, losers)
        return CandidateWindow(hit.start, hit.end, hit.fit.parts, displaced(self.diary, losers))

    def _alternatives(
        self, pools: Sequence[Pool], span: tuple[float, float]
    ) -> Iterator[CandidateWindow]:
        start, length = span[0], span[1] - span[0]
        after = Range(max(start, self.now), start + AROUND_S, length)
        before = Range(max(self.now, start - AROUND_S), start, length)
        search = (Search(self.diary, pools, self.asked.allowed, each) for each in (after, before))
        later, earlier = (next(search).early(), next(search).late())
        hits = [*itertools.islice(later, ALTERNATIVES), *itertools.islice(earlier, ALTERNATIVES)]
        by_start = {(hit.start, hit.fit.parts[0].cluster): hit for hit in reversed(hits)}
        nearest = sorted(by_start.values(), key=lambda hit: (abs(hit.start - start), hit.start))
        for hit in nearest[:ALTERNATIVES]:
            yield self.candidate(hit)

    def _cheapest(self, search: Search, most: int) -> list[Hit]:
        free = Search(self.diary, search.pools, search.allowed[:1], search.asked)
        found = list(itertools.islice(free.early(), most))
        if len(found) < most:
            every = itertools.islice(search.near(search.asked.earliest), MOST_COMPARED)
            seen = {(hit.start, hit.fit.parts) for hit in found}
            dear = [hit for hit in every if (hit.start, hit.fit.parts) not in seen]
            dear.sort(key=lambda hit: (self.candidate(hit).cost, hit.start))
            found += dear
        return found[:most]

    def _booked(self, placed: Placed) -> Booked:
        asked = self.asked
        return Booked(
            NO_OCCURRENCE, NO_RESERVATION, asked.name, placed.start, placed.end, placed.parts,
            asked.what, asked.owners, asked.priority,
        )  # fmt: skip


def accept(
    diary: Diary,
    spec: ReservationSpec,
    spans: Sequence[Span],
    *,
    now: float,
    own: Collection[OccurrenceId],
) -> Accepted | Refused:
    """Places for a spec's spans, or for the window of a flexible one."""
    wish = spec.when.flexible
    with diary.trial(own) as trial:
        desk = Desk(diary, trial, asked_by(spec), now)
        if wish is None:
            return desk.spans(spans)
        query = Query(
            spec.what, spec.when.length_s, wish.earliest_at, wish.latest_end_at, 1, wish.preference
        )
        return desk.flexible(query)
