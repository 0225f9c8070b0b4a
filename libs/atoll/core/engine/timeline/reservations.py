"""Reservations of a cycle: what the first blocked jobs will need is kept free for them.

A cycle promises at its end; the next one begins by keeping free what promised
jobs will need and what does not come free by then anyhow. Others start beside it, and
those that end by the start also in it. A promised job that fits goes first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.choice.quick import late_s
from atoll.core.engine.gangs import Masks as ByShape
from atoll.core.engine.ground import Ask
from atoll.core.engine.masks import Masks
from atoll.core.engine.score_kernels import Scoring
from atoll.core.engine.timeline.earliest import MOVE_S, NOWHERE, Place, Pool, earliest
from atoll.core.engine.timeline.loads import Loads, loads_of, with_load
from atoll.core.engine.windows.bookings import claimant
from atoll.core.model.ids import JobId
from atoll.core.model.plan import Promise, shape_key
from atoll.core.policies.time_order import MOST_RESERVATIONS
from atoll.core.state.columns import Nodes, scratch_copy
from atoll.core.state.ledger_kernels import give_tasks, take_tasks
from atoll.core.state.snapshot import ClassView, Snapshot
from atoll.core.state.statement import Statement

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Reservation:
    """A promise and its place."""

    promise: Promise
    group: int
    """The class of its job."""
    place: Place


class Reservations:
    """Reservations over a statement; `used` are the limits' amounts, which it changes."""

    def __init__(
        self, masks: Masks, statement: Statement, scoring: Scoring, *, used: Ints, gathers: bool
    ) -> None:
        self.masks = masks
        self.statement = statement
        self.scoring = scoring
        self.used = used
        self.gathers = gathers
        self.held: list[Reservation] = []
        self._loads: Loads | None = None

    def find(self, snapshot: Snapshot, group: int, job: int) -> Reservation | None:
        """The earliest place of a job, or None. `job`: its index in the snapshot's queue."""
        view = snapshot.queue.classes[group]
        if view.request.reservation:
            # Its booking says when it starts.
            return None
        booked = self.masks.bookings.ahead_of(claimant(view.queue, view.request))
        where = masks_of(self.masks, view) if booked is None else self.masks.unbooked_of(view)
        ask = Ask(view, job, where, self.gathers)
        nodes, loads = self._with_reservations(snapshot)
        part = replace(snapshot, nodes=nodes)
        late = late_s(snapshot, self.masks.policies)
        pool = Pool(part, self.scoring, loads, self.used, late, booked)
        number = JobId(int(snapshot.queue.job[job]))
        before = _cluster(snapshot, snapshot.pace.promised.get(number))
        places = list(earliest(pool, ask, now=self.masks.now, stays=before))
        if not places:
            return None
        place = _chosen(places, before)
        promise = Promise(number, snapshot.clusters[place.cluster].name, place.start)
        return Reservation(promise, group, place)

    def hold(self, reservation: Reservation) -> None:
        """Keep its place free."""
        self.held.append(reservation)
        self.take([reservation])

    def open_to(self, view: ClassView, group: int) -> list[Reservation]:
        """Reservations in whose place a class's jobs may run: they end by the start."""
        limit = view.request.terms.time_limit_s
        if not limit:
            return []
        end = self.masks.now + limit
        return [r for r in self.held if r.group != group and end <= r.promise.start]

    def give(self, reservations: Iterable[Reservation]) -> None:
        """Let what is kept be taken."""
        for each in reservations:
            kept = each.place.kept
            give_tasks(self.statement.nodes, kept, 0, len(kept.row))
            self.used -= each.place.quota
        self._take_bits_again()

    def take(self, reservations: Iterable[Reservation]) -> None:
        """Keep it free again, as far as it is not taken."""
        for each in reservations:
            kept = each.place.kept
            take_tasks(self.statement.nodes, kept, 0, len(kept.row))
            self.used += each.place.quota

    def release(self) -> None:
        """Keep nothing free any more; the next `find` looks at everything anew."""
        self.give(self.held)
        self.held.clear()
        self._loads = None

    def _with_reservations(self, snapshot: Snapshot) -> tuple[Nodes, Loads]:
        """Nodes and loads as if those that hold a reservation held their whole place already."""
        if self._loads is None:
            self._loads = loads_of(snapshot, self.statement, now=self.masks.now)
        nodes, loads = scratch_copy(self.statement.nodes), self._loads
        for each in self.held:
            place = each.place
            give_tasks(nodes, place.kept, 0, len(place.kept.row))
            take_tasks(nodes, place.uses, 0, len(place.uses.row))
            limit = snapshot.queue.classes[each.group].request.terms.time_limit_s
            loads = with_load(loads, place.uses, place.start + limit if limit else np.inf)
        return nodes, loads

    def _take_bits_again(self) -> None:
        # Slices of placements that were made in what was kept are not free.
        journal, size = self.statement.journal, self.statement.checkpoint()
        uses, shares = journal.uses, int(journal.uses.first_grant[size])
        rows = np.repeat(uses.row[:size], np.diff(uses.first_grant[: size + 1]))
        bits = uses.bits[:shares].astype(np.int16)
        np.bitwise_or.at(self.statement.nodes.slices, (rows, uses.device[:shares]), bits)


def candidates(
    snapshot: Snapshot, blocked: Sequence[tuple[int, int]], *, cap_s: float
) -> list[tuple[int, int]]:
    """Blocked classes with their next jobs in the order in which they get reservations.

    First those that were promised one, then the oldest that has waited for more than
    `cap_s`, then in the order of the queue (`blocked`). One of a queue and shape.
    """
    queue = snapshot.queue

    def rank(at: int) -> tuple[bool, bool, int]:
        promised = JobId(int(queue.job[blocked[at][1]])) in snapshot.pace.promised
        return not promised, at != oldest, at

    waited = [snapshot.now - float(queue.submitted_at[job]) for _, job in blocked]
    most = max(waited, default=0.0)
    oldest = waited.index(most) if most > cap_s else -1
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for at in sorted(range(len(blocked)), key=rank):
        view = queue.classes[blocked[at][0]]
        found.setdefault((view.queue, shape_key(view.request)), blocked[at])
    return [*found.values()][:MOST_RESERVATIONS]


def masks_of(masks: Masks, view: ClassView) -> ByShape:
    """By shape, where a class's tasks may go at all."""
    return masks.of(view)


def _cluster(snapshot: Snapshot, promise: Promise | None) -> int:
    """The number of the cluster in which a start was promised."""
    names = [cluster.name for cluster in snapshot.clusters]
    return names.index(promise.cluster) if promise and promise.cluster in names else NOWHERE


def _chosen(places: Sequence[Place], before: int) -> Place:
    best = min(places, key=lambda place: (place.runs_at, place.cluster))
    for place in places:
        if place.cluster == before and place.runs_at <= best.runs_at + MOVE_S:
            return place
    return best
