"""Searches the time for windows: starts at which counting says that there is room, tried exactly.

Of all starts only those matter at which something comes free (or, from behind, those from which
on nothing is in the way until the window's end).
"""

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.bookings.diary import Diary
from atoll.core.engine.bookings.fitting import Fit, Fitter
from atoll.core.engine.bookings.segment_kernels import View, pieces
from atoll.core.engine.bookings.start_kernels import Counted, Starts, starts
from atoll.core.engine.bookings.wanted import Need, Pool

Floats = NDArray[np.float64]
Ranges = list[tuple[float, float]]
MOST_TRIES: Final = 2_000
"""Exact tries in one search; what is not found by then is not found."""
_NOTHING_COUNTS: Final = View(1 << 62, False)


@dataclass(frozen=True, slots=True)
class Range:
    """Starts that are asked for, and how long the windows are."""

    earliest: float
    latest: float
    """The last start."""
    length: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A window with its place."""

    start: float
    end: float
    fit: Fit


@dataclass(slots=True)
class Search:
    """Windows in some pools, by views from displacing nothing to all that may be displaced."""

    diary: Diary
    pools: Sequence[Pool]
    allowed: Sequence[View]
    asked: Range
    tries: int = 0
    _frees: dict[int, Floats] = field(default_factory=dict)

    def early(self) -> Iterator[Hit]:
        """The earliest first; in one pool they do not overlap."""
        ranges = self._ranges()
        heap = [(spans[0][0], at) for at, spans in enumerate(ranges) if spans]
        heapq.heapify(heap)
        while heap and self.tries < MOST_TRIES:
            start, at = heapq.heappop(heap)
            hit = self._try(at, start)
            if hit is not None:
                yield hit
            again = self._after(at, start) if hit is None else hit.end
            following = next((max(a, again) for a, b in ranges[at] if b >= again), None)
            if following is not None:
                heapq.heappush(heap, (following, at))

    def late(self) -> Iterator[Hit]:
        """The latest first; in one pool they do not overlap."""
        ranges = self._ranges()
        heap = [(-_whole(*spans[-1]), at) for at, spans in enumerate(ranges) if spans]
        heapq.heapify(heap)
        while heap and self.tries < MOST_TRIES:
            start, at = heapq.heappop(heap)
            hit = self._try(at, -start)
            if hit is not None:
                yield hit
            again = self._before(at, -start) if hit is None else hit.start - self.asked.length
            found = (_whole(a, min(b, again)) for a, b in reversed(ranges[at]) if a <= again)
            following = next(found, None)
            if following is not None:
                heapq.heappush(heap, (-following, at))

    def near(self, start: float) -> Iterator[Hit]:
        """Those that start where something comes free, as they come; for the cheapest of them."""
        for at, spans in enumerate(self._ranges()):
            for first, last in spans:
                free = self._free_at(at)
                inside = free[(free > first) & (free <= last)].tolist()
                for time in (first, *inside):
                    if self.tries >= MOST_TRIES:
                        return
                    hit = self._try(at, max(time, start))
                    if hit is not None:
                        yield hit

    def _try(self, at: int, start: float) -> Hit | None:
        self.tries += 1
        end = start + self.asked.length
        fit = Fitter(self.diary.chooser, [self.pools[at]]).one((start, end), self.allowed)
        return None if fit is None else Hit(start, end, fit)

    def _after(self, at: int, start: float) -> float:
        free = self._free_at(at)
        later = free[np.searchsorted(free, start, side="right") :]
        return float(later[0]) if len(later) else math.inf

    def _before(self, at: int, start: float) -> float:
        """The next start before one that failed from which a window ends where a piece begins."""
        rows, book = self.pools[at].rows, self.diary.book
        end = self.asked.latest + self.asked.length
        found = pieces(
            book.columns, book.head, rows, self.asked.earliest, end, self.allowed[-1],
            _NOTHING_COUNTS,
        )  # fmt: skip
        begins = np.floor(book.columns.start[found] - self.asked.length)
        earlier = begins[begins < start]
        return float(earlier.max()) if len(earlier) else -math.inf

    def _free_at(self, at: int) -> Floats:
        """When something comes free in a pool, in order; of runs also when they end anyway."""
        known = self._frees.get(at)
        if known is None:
            rows, book = self.pools[at].rows, self.diary.book
            end = self.asked.latest + self.asked.length
            found = pieces(
                book.columns, book.head, rows, self.asked.earliest, end, self.allowed[0],
                _NOTHING_COUNTS,
            )  # fmt: skip
            both = np.concatenate([book.columns.end[found], book.columns.soft[found]])
            known = self._frees[at] = np.unique(both[np.isfinite(both)])
        return known

    def _ranges(self) -> list[Ranges]:
        """By pool: starts at which counting says that everything has room."""
        asked = self.asked
        if asked.latest < asked.earliest:
            return [[] for _ in self.pools]
        ranges: list[Ranges] = [[(asked.earliest, asked.latest)] for _ in self.pools]
        by_form: dict[Counted, list[tuple[int, Need]]] = {}
        for at, pool in enumerate(self.pools):
            for need in pool.needs:
                if need.counted is not None:
                    by_form.setdefault(need.counted, []).append((at, need))
        for counted, needs in by_form.items():
            found = self._starts(counted, [need for _, need in needs])
            for number, (at, _) in enumerate(needs):
                mine = found.group == number
                times = zip(found.first[mine].tolist(), found.last[mine].tolist(), strict=True)
                ranges[at] = _both(ranges[at], list(times))
        return ranges

    def _starts(self, counted: Counted, needs: Sequence[Need]) -> Starts:
        sizes = np.array([0, *(len(need.rows) for need in needs)], np.int64)
        snapshot, book, asked = self.diary.terrain.snapshot, self.diary.book, self.asked
        found: Starts = starts(
            book.columns, book.head, snapshot.nodes, snapshot.hardware.models,
            np.concatenate([need.rows for need in needs]), np.cumsum(sizes), counted,
            asked.length, asked.earliest, asked.latest, self.allowed[-1],
        )  # fmt: skip
        return found


def _both(ones: Ranges, others: Ranges) -> Ranges:
    """Where two lists of ranges overlap."""
    found = ((max(a, c), min(b, d)) for a, b in ones for c, d in others)
    return sorted((first, last) for first, last in found if first <= last)


def _whole(first: float, last: float) -> float:
    """The last start in a range, on a whole second if there is one: ends are sums of floats."""
    return max(first, float(math.floor(last)))
