"""The calendar: what is booked, what fits beside it, and at whose cost.

It holds every window that is accepted and not over, bound to nodes, and what runs by a snapshot.
Questions change nothing; what was committed is entered by `add` and `remove`.
"""

from collections.abc import Collection, Iterable, Sequence

from atoll.core.engine.bookings.accepting import Asked, Desk, accept
from atoll.core.engine.bookings.answers import (
    Accepted,
    AvailabilityRow,
    Booked,
    Found,
    Query,
    Rebound,
    Refused,
    Span,
)
from atoll.core.engine.bookings.availability import availability
from atoll.core.engine.bookings.diary import Diary
from atoll.core.engine.bookings.extending import extend
from atoll.core.engine.bookings.fitting import views
from atoll.core.engine.bookings.giving_back import what_is_left
from atoll.core.engine.bookings.rebinding import rebind
from atoll.core.model.booking import OccurrenceId, Owners
from atoll.core.model.ids import ClusterName, NodeId
from atoll.core.model.plan import Claim
from atoll.core.model.reservation import Parts, ReservationSpec, What
from atoll.core.state.snapshot import Snapshot


class Calendar:
    """Windows over the nodes and runs of a snapshot. Not safe for threads."""

    def __init__(
        self, snapshot: Snapshot, booked: Iterable[Booked] = (), claims: Iterable[Claim] = ()
    ) -> None:
        self._diary = Diary(snapshot, booked, claims)

    def look(self, snapshot: Snapshot, claims: Iterable[Claim] = ()) -> None:
        """Take nodes, runs and guarantees as they are now; what is booked stays."""
        self._diary.look(snapshot, claims)

    def add(self, booked: Booked) -> None:
        """Enter a window, or replace the one of the same id."""
        self._diary.add(booked)

    def remove(self, id: OccurrenceId) -> bool:
        """Forget a window; False when it is not here."""
        return self._diary.remove(id)

    def get(self, id: OccurrenceId) -> Booked:
        """A window; raises LookupError when it is not here."""
        return self._diary.get(id)

    def booked(self) -> Sequence[Booked]:
        """All windows by start, then id."""
        return self._diary.all()

    def accept(
        self,
        spec: ReservationSpec,
        spans: Sequence[Span],
        *,
        now: float,
        own: Collection[OccurrenceId] = (),
        prefer: Collection[NodeId] = (),
    ) -> Accepted | Refused:
        """Places for all spans, or what is in the way of the first that has none.

        A flexible spec has no spans: its window is found. `own`: windows that are taken as not
        there, those that the new ones replace. `prefer`: nodes to take if they will do.
        """
        self._prefer(prefer)
        return accept(self._diary, spec, spans, now=now, own=own)

    def find(self, query: Query, *, now: float) -> Found:
        """The best windows for what is wanted."""
        self._prefer(())
        asked = Asked(
            "",
            query.what,
            Owners(query.queues),
            query.nobody,
            query.priority or 0,
            views(query.priority),
        )
        with self._diary.trial() as trial:
            desk = Desk(self._diary, trial, asked, now)
            hits = desk.windows(query)
            if hits:
                return Found(tuple(desk.candidate(hit) for hit in hits))
            start = max(now, query.earliest_at)
            return Found((), desk.in_the_way((start, start + query.length_s)))

    def extend(self, id: OccurrenceId, end: float, *, now: float) -> Accepted | Refused:
        """Another end for a window: on its nodes, or if it has not begun on others.

        Raises LookupError when it is not here.
        """
        self._prefer(())
        return extend(self._diary, self._diary.get(id), end, now=now)

    def rebind(self, id: OccurrenceId, *, now: float) -> Rebound:
        """A window's place when what failed of it is replaced; the rest stays where it is.

        Raises LookupError when it is not here.
        """
        self._prefer(())
        return rebind(self._diary, self._diary.get(id), now=now)

    def without(self, id: OccurrenceId, parts: Parts) -> What:
        """What a window is of when it keeps `parts` and gives the rest of its place back.

        Raises LookupError when it is not here.
        """
        return what_is_left(self._diary.terrain, self._diary.get(id), parts)

    def availability(
        self,
        start: float,
        end: float,
        *,
        step: float,
        clusters: Collection[ClusterName] = (),
        kinds: Collection[str] = (),
    ) -> tuple[AvailabilityRow, ...]:
        """What is booked, held by runs, and free, by cluster and kind; empty: all of them."""
        count = max(1, round((end - start) / step))
        return availability(self._diary, start, step, count=count, clusters=clusters, kinds=kinds)

    def _prefer(self, nodes: Collection[NodeId]) -> None:
        row_of = self._diary.terrain.snapshot.row_of
        self._diary.chooser.prefer([row_of[node] for node in nodes if node in row_of])
