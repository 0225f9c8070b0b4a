"""Places jobs where windows are, before and after everybody else gets a turn.

First owners' jobs in their open windows. At last those that found no place, beside windows
that take a part of a node: the kernel takes no such node for them.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.gangs import GangPlacer, Outcome, gang_placer
from atoll.core.engine.limits import units_left
from atoll.core.engine.line import Lineup, in_order
from atoll.core.engine.masks import ByShape, Masks
from atoll.core.engine.room_kernels import count_room
from atoll.core.engine.run_kernels import NO_PLACE, WAITING
from atoll.core.engine.score_kernels import Scoring
from atoll.core.engine.windows.admission import Admission, Entrance, taken
from atoll.core.engine.windows.bookings import Claimant, claimant
from atoll.core.state.queue_tree import ancestry
from atoll.core.state.snapshot import ClassView
from atoll.core.state.statement import Statement

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
MOST_SLIPPED: Final = 64
"""Classes that are tried beside windows in one cycle."""

Charge = Callable[[int, int], bool]
"""Takes a class's placement since a mark from its limits, or refuses."""


@dataclass(slots=True)
class Passes:
    """Jobs in and beside windows, in one cycle."""

    lineup: Lineup
    masks: Masks
    statement: Statement
    scoring: Scoring
    gathers: bool
    admission: Admission = field(init=False)
    _unused: dict[int, Ints] = field(default_factory=dict)
    """(limits) what is left of each charge."""

    def __post_init__(self) -> None:
        self.admission = Admission(self.masks.bookings, self.statement)

    def let_in(self, charge: Charge, most: int) -> int:
        """Place up to `most` jobs in windows that are open to them; how many."""
        bookings, nodes, placed = self.masks.bookings, self.statement.nodes, 0
        if not bookings:
            return placed
        line = self.lineup.line
        for group in in_order(line, line.next < line.end):
            if not self._waits(group):
                continue
            who = self._who(group)
            entrance = None
            if bookings.owns_open(who):
                entrance = self.admission.owners(who, nodes, at=bookings.now)
            if entrance is not None:
                with self._charged(who):
                    found = self._place_all(group, entrance, charge, most=most - placed)
                placed += found
                if found:
                    self.admission.forget()
            if who.reservation and self._waits(group):
                self.lineup.line.state[group] = NO_PLACE
        return placed

    def slip_in(self, blocked: Iterable[int], charge: Charge) -> None:
        """Start jobs that found no place beside windows that take a part of a node."""
        bookings, line = self.masks.bookings, self.lineup.line
        if not bookings or bookings.layout.shares.whole.all():
            return
        for group in [*blocked][:MOST_SLIPPED]:
            who = self._who(group)
            if line.state[group] != NO_PLACE or who.reservation:
                continue
            beside = self._beside(group, who)
            if beside is None:
                continue
            most = int(line.end[group] - line.next[group])
            if self._place_all(group, beside, charge, most=most):
                self.admission.forget()
            if line.next[group] == line.end[group]:
                line.state[group] = WAITING

    @contextmanager
    def _charged(self, who: Claimant) -> Iterator[None]:
        """What windows charge is not charged again to who uses it."""
        used, snapshot = self.lineup.quota.used, self.lineup.snapshot
        owned = self.masks.bookings.owned(who.queue, who.marks)
        mine = [
            self._unused.setdefault(at, charge.by_limit(snapshot.limits))
            for at, charge in enumerate(snapshot.charges)
            if owned[charge.window] and charge.queue in ancestry(who.queue)
        ]
        before = used.copy()
        for each in mine:
            used -= each
        yield
        spent = used + sum(mine, np.zeros_like(used)) - before
        for each in mine:
            part = np.minimum(each, spent)
            spent -= part
            each -= part
            used += each

    def _waits(self, group: int) -> bool:
        line = self.lineup.line
        return bool(line.state[group] == WAITING and line.next[group] < line.end[group])

    def _who(self, group: int) -> Claimant:
        view = self.lineup.snapshot.queue.classes[group]
        return claimant(view.queue, view.request)

    def _beside(self, group: int, who: Claimant) -> Entrance | None:
        bookings, nodes = self.masks.bookings, self.statement.nodes
        closed = bookings.closed(who)
        if not closed.any():
            return None
        closed = closed & ~bookings.wholly(bookings.conflicts(who, bookings.now))
        view = self.lineup.snapshot.queue.classes[group]
        rows = np.flatnonzero(closed & self._roomy(view, closed))
        if not len(rows):
            return None
        entrance = self.admission.others(who, nodes, rows)
        return entrance._replace(rows=entrance.rows | ~bookings.closed(who))

    def _roomy(self, view: ClassView, rows: Bools) -> Bools:
        """(N) rows with room for a task if nothing was kept for windows."""
        nodes, found = self.statement.nodes, np.zeros(len(rows), np.bool_)
        for shape, mask in self.masks.unbooked_of(view, rows).items():
            counts = np.zeros(len(rows), np.int64)
            count_room(nodes, self.scoring, shape, mask, 1, np.flatnonzero(mask), counts)
            found |= counts > 0
        return found

    def _place_all(self, group: int, entrance: Entrance, charge: Charge, *, most: int) -> int:
        line, nodes, placed = self.lineup.line, self.statement.nodes, 0
        with taken(nodes, entrance.kept):
            # What is kept comes and goes beside the statement, so nothing is known of rooms.
            gangs = gang_placer(
                self.lineup.snapshot, self.statement, self.scoring, gathers=self.gathers
            )
            view = self.lineup.snapshot.queue.classes[group]
            where = self.masks.unbooked_of(view, entrance.rows)
            while placed < most and line.next[group] < line.end[group]:
                if view.request.anti_affinity is not None:
                    where = self.masks.unbooked_of(view, entrance.rows)
                if not self._place(group, gangs, charge, where=where):
                    break
                line.next[group] += 1
                placed += 1
        return placed

    def _place(self, group: int, gangs: GangPlacer, charge: Charge, *, where: ByShape) -> bool:
        snapshot, lineup = self.lineup.snapshot, self.lineup
        view, job = snapshot.queue.classes[group], int(lineup.line.next[group])
        mark = self.statement.checkpoint()
        left = units_left(view, snapshot, used=lineup.quota.used)
        if gangs.place(view, where, job=job, units_left=left) is not Outcome.PLACED:
            return False
        if not charge(group, mark):
            self.statement.rollback(mark)
            return False
        self._hold(group)
        self.masks.note(view.request, self.statement.rows_since(mark))
        return True

    def _hold(self, group: int) -> None:
        """The class's queue, and those above it, hold so much more."""
        forest = self.lineup.forest
        vertex = int(forest.vertex[group])
        while vertex >= 0:
            forest.held[vertex, : len(forest.amount)] += forest.amount
            vertex = int(forest.parent[vertex])
