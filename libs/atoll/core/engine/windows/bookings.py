"""Which windows stand in whose way, and which are whose.

A window stands in a job's way when it is not the job's owners', and the job would still hold the
place when it begins; one that lends is in nobody's way who may be stopped. Who owns a window
that stops its owners' jobs at its end has to be through by then, or is stopped, but not at once.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.booking import STOP_MARGIN_S, held_for_s
from atoll.core.model.ids import QueueName
from atoll.core.model.plan import GangRequest
from atoll.core.state.queue_tree import ancestry
from atoll.core.state.ragged import spans
from atoll.core.state.snapshot import Snapshot

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
MOST_ENDS: Final = 64
OPEN: Final = 0
"""Number of the mask that closes nothing."""


class Claimant(NamedTuple):
    """What of a job decides which windows it meets."""

    queue: QueueName
    reservation: str
    marks: tuple[str, ...]
    holds_s: float
    preemptible: bool
    grace_s: float


def claimant(queue: QueueName, request: GangRequest) -> Claimant:
    """Jobs of a queue with a request."""
    terms = request.terms
    holds_s = held_for_s(terms.time_limit_s, preemptible=terms.preemptible)
    return Claimant(
        queue, request.reservation, request.marks, holds_s, terms.preemptible, terms.grace_s
    )


class Booked(Protocol):
    """Where and when windows are in the way of one job."""

    def closed_at(self, time: float) -> Bools:
        """(N) rows that are closed to it if it starts then."""
        ...

    def ends_after(self, time: float) -> list[float]:
        """When windows that are in its way end, after a time."""
        ...


class Bookings:
    """Windows of a snapshot at wall time `now`, as the jobs of a cycle meet them."""

    def __init__(self, snapshot: Snapshot, now: float, *, ahead: float | None = None) -> None:
        """`ahead`: what starts does so later by so much, and is not lent to."""
        self.snapshot = snapshot
        self._ahead = ahead or 0.0
        self._lending = ahead is None
        self.now = now
        self.view = snapshot.windows
        self.layout = self.view.on(snapshot.nodes.id, snapshot.nodes.model.shape[1])
        begun = (self.view.start <= now) | self.view.is_open
        self._open = np.flatnonzero(begun & (self.view.end > now))
        self._owned: dict[tuple[QueueName, tuple[str, ...]], Bools] = {}
        self._numbers: dict[Claimant, int] = {}
        self._masks: list[Bools] = [np.zeros(len(snapshot.nodes.id), np.bool_)]
        self._known: dict[bytes, int] = {}

    def __bool__(self) -> bool:
        return len(self.view) > 0

    def closed(self, who: Claimant) -> Bools:
        """(N) rows on which a window stands in the way of a job that starts now.

        A job that asks for a booking has no place outside it: all rows are closed to it.
        """
        return self._masks[self.number(who)]

    def number(self, who: Claimant) -> int:
        """Equal for those to whom the same rows are closed; OPEN when none is."""
        if not self and not who.reservation:
            return OPEN
        known = self._numbers.get(who)
        if known is None:
            known = self._numbers[who] = self._numbered(self._closed(who))
        return known

    def closed_at(self, who: Claimant, at: float) -> Bools:
        """(N) the same for a job that starts at a later time."""
        if who.reservation:
            return ~self._rows(self.inside(who, at))
        return self._rows(self.conflicts(who, at))

    def conflicts(self, who: Claimant, at: float) -> Bools:
        """(W) windows in the way of a job that starts at a time."""
        view, end = self.view, at + self._ahead + who.holds_s
        meets = (view.start < end) & (view.end > at) & ~self._welcome(who, at, end)
        return meets & ~view.lends if who.preemptible and self._lending else meets

    def strangers(self, who: Claimant, until: float) -> Bools:
        """(W) others' windows that are open before a time: nothing is held there until then."""
        view = self.view
        meets: Bools = (view.start < until) & (view.end > self.now)
        return meets & ~self.owned(who.queue, who.marks)

    def inside(self, who: Claimant, at: float) -> Bools:
        """(W) windows that are open at a time to a job that owns them."""
        view = self.view
        begun = (view.start <= at) | (view.is_open & (at <= self.now))
        found: Bools = begun & (view.end > at) & self._welcome(who, at, at + who.holds_s)
        if who.reservation:
            found &= self._named(who.reservation)
        return found

    def ahead_of(self, who: Claimant) -> Booked | None:
        """What is in the way of a job now or later; None: nothing ever is."""
        if not self or not self.conflicts(who._replace(holds_s=np.inf), self.now).any():
            return None
        return _Ahead(self, who)

    def owns_open(self, who: Claimant) -> bool:
        """Whether some window is open now that is the owner's."""
        return len(self._open) > 0 and bool(self.owned(who.queue, who.marks)[self._open].any())

    def owned(self, queue: QueueName, marks: tuple[str, ...]) -> Bools:
        """(W) windows whose owners' jobs of a queue with these marks are."""
        known = self._owned.get((queue, marks))
        if known is None:
            known = np.zeros(len(self.view), np.bool_)
            for name in ancestry(queue):
                known[list(self.view.by_queue.get(name, ()))] = True
            for mark in marks:
                known[list(self.view.by_mark.get(mark, ()))] = True
            self._owned[queue, marks] = known
        return known

    def rows_of(self, windows: Bools) -> Ints:
        """Rows with a share of some windows."""
        return self.layout.rows_of(windows)

    def wholly(self, windows: Bools) -> Bools:
        """(N) rows of which some window takes everything."""
        shares = self.layout.shares
        rows = np.zeros(len(self.layout.ids), np.bool_)
        rows[shares.node[shares.whole & windows[shares.window]]] = True
        return rows

    def sliced(self, windows: Bools) -> Bools:
        """(N) rows of which some window takes slices."""
        shares = self.layout.shares
        share = np.repeat(np.arange(len(shares.node)), np.diff(shares.first_grant))
        rows = np.zeros(len(self.layout.ids), np.bool_)
        rows[shares.node[share[(shares.bits > 0) & windows[shares.window[share]]]]] = True
        return rows

    def _welcome(self, who: Claimant, at: float, end: float) -> Bools:
        """(W) windows in which a job may run from `at` to `end`, for they are its owners'."""
        owned = self.owned(who.queue, who.marks)
        if not owned.any():
            return owned
        # Who may be stopped may stay until then, but for those that would be told at once.
        told = self.view.lasts - who.grace_s - STOP_MARGIN_S
        too_late = told <= at if who.preemptible else self.view.stops
        return owned & ~((self.view.lasts < end) & too_late)

    def _named(self, booking: str) -> Bools:
        named = np.zeros(len(self.view), np.bool_)
        named[list(self.view.by_name.get(booking, ()))] = True
        return named

    def _closed(self, who: Claimant) -> Bools:
        layout, end = self.layout, self.now + self._ahead + who.holds_s
        if who.reservation:
            return np.ones(len(layout.ids), np.bool_)
        closed = layout.firm < end
        if not (who.preemptible and self._lending):
            closed |= layout.lent < end
        own = self.owned(who.queue, who.marks)
        if own.any():
            rows = self.rows_of(own)
            closed[rows] = self._met(rows, self.conflicts(who, self.now))
        return closed

    def _met(self, rows: Ints, windows: Bools) -> Bools:
        """(rows) whether some of the windows has a share there."""
        layout = self.layout
        met = windows[layout.shares.window[spans(layout.first, rows)]]
        of = np.repeat(np.arange(len(rows)), np.diff(layout.first)[rows])
        return np.bincount(of[met], minlength=len(rows)) > 0

    def _rows(self, windows: Bools) -> Bools:
        rows = np.zeros(len(self.layout.ids), np.bool_)
        rows[self.rows_of(windows)] = True
        return rows

    def _numbered(self, closed: Bools) -> int:
        if not closed.any():
            return OPEN
        number = self._known.setdefault(closed.tobytes(), len(self._masks))
        if number == len(self._masks):
            self._masks.append(closed)
        return number


@dataclass(slots=True)
class _Ahead:
    """Windows that a job may meet."""

    bookings: Bookings
    who: Claimant
    _closed: dict[float, Bools] = field(default_factory=dict)

    def closed_at(self, time: float) -> Bools:
        """(N) rows that are closed to it if it starts then."""
        if time not in self._closed:
            self._closed[time] = self.bookings.closed_at(self.who, time)
        return self._closed[time]

    def ends_after(self, time: float) -> list[float]:
        """When windows that are in its way end, after a time, the first of them."""
        bookings = self.bookings
        meets = bookings.conflicts(self.who._replace(holds_s=np.inf), bookings.now)
        ends = np.unique(bookings.view.end[meets])
        found: list[float] = ends[ends > time][:MOST_ENDS].tolist()
        return found
