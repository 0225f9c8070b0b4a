"""Whether work may go on rows where windows are, and what must be kept free of these meanwhile."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.windows.bookings import Bookings, Claimant
from atoll.core.engine.windows.kept import Kept, Parts
from atoll.core.model.plan import TaskPlacement
from atoll.core.state.columns import Nodes
from atoll.core.state.statement import Statement

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


class Entrance(NamedTuple):
    """Rows that a job may go on while something is kept free."""

    rows: Bools
    """(N)."""
    kept: Sequence[Kept]


class Admission:
    """Lets jobs onto rows with windows: exactly, by what these take of a node."""

    def __init__(self, bookings: Bookings, statement: Statement | None) -> None:
        self._bookings = bookings
        self._statement = statement
        self._parts: Parts | None = None

    @property
    def now(self) -> float:
        """Wall time of the cycle."""
        return self._bookings.now

    def forget(self) -> None:
        """Something was placed: look anew."""
        self._parts = None

    def owners(
        self, who: Claimant, nodes: Nodes, *, at: float, held_until: float | None = None
    ) -> Entrance | None:
        """Into the windows that are open at a time to their owners' job; None: there are none.

        `held_until`: from now until then a place is held for it, in nobody else's window.
        """
        bookings = self._bookings
        inside = bookings.inside(who, at)
        if not inside.any():
            return None
        rows = bookings.rows_of(inside)
        last = float(bookings.view.lasts[inside].max())
        if who.reservation and last < at + who.holds_s:
            # It is stopped with its window, so what comes later is not in its way.
            who = who._replace(holds_s=last - at)
        strange = None if held_until is None else bookings.strangers(who, held_until)
        found = self._entrance(who, nodes, rows=rows, inside=inside, at=at)
        return found if strange is None else self._without(found, nodes, strange)

    def _without(self, entrance: Entrance, nodes: Nodes, windows: Bools) -> Entrance:
        """The same without what some windows have, whoever is there just now."""
        allowed = entrance.rows & ~self._bookings.wholly(windows) & ~self._bookings.sliced(windows)
        rows = np.flatnonzero(allowed)
        with taken(nodes, entrance.kept):
            kept = self.parts.kept(nodes, windows, rows, all_of_it=True)
        return Entrance(allowed, (*entrance.kept, kept))

    def holds(self, who: Claimant, tasks: Sequence[TaskPlacement], *, at: float) -> bool:
        """Whether tasks are inside the windows that are open at a time to who asks for one."""
        inside = self._bookings.inside(who, at)
        rows = self._bookings.snapshot.row_of
        return all(self.parts.holds(inside, rows[task.node], task) for task in tasks)

    def to(self, who: Claimant, nodes: Nodes) -> Entrance:
        """Wherever a job may go now."""
        if who.reservation:
            found = self.owners(who, nodes, at=self.now)
            return found or Entrance(np.zeros(len(nodes.id), np.bool_), ())
        closed = self._bookings.closed(who)
        beside = self.others(who, nodes, np.flatnonzero(closed))
        return beside._replace(rows=beside.rows | ~closed)

    def others(self, who: Claimant, nodes: Nodes, rows: Ints) -> Entrance:
        """Beside windows that are in the way of a job."""
        nothing = np.zeros(len(self._bookings.view), np.bool_)
        return self._entrance(who, nodes, rows=rows, inside=nothing, at=self._bookings.now)

    def _entrance(
        self, who: Claimant, nodes: Nodes, *, rows: Ints, inside: Bools, at: float
    ) -> Entrance:
        bookings = self._bookings
        meets = bookings.conflicts(who, at)
        if who.reservation:
            meets &= ~inside
        rows = rows[~bookings.wholly(meets)[rows]]
        allowed = np.zeros(len(nodes.id), np.bool_)
        allowed[rows] = True
        kept = []
        if meets.any():
            kept.append(self.parts.kept(nodes, meets, rows))
        if who.reservation:
            # What is kept for others is not free inside either.
            with taken(nodes, tuple(kept)):
                outside = self.parts.outside(nodes, inside, rows)
            kept.append(outside)
        return Entrance(allowed, tuple(kept))

    @property
    def parts(self) -> Parts:
        """Who uses which parts of nodes."""
        if self._parts is None:
            self._parts = Parts(self._bookings, self._statement)
        return self._parts


@contextmanager
def taken(nodes: Nodes, kept: Sequence[Kept]) -> Iterator[None]:
    """Take what is kept for so long."""
    for each in kept:
        each.take(nodes)
    yield
    for each in reversed(kept):
        each.give(nodes)
