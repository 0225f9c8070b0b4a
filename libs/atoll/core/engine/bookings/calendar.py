"""The calendar: what is booked, what fits beside it, and at whose cost.

It holds every window that is accepted and not over, bound to nodes, and what runs by a snapshot.
Questions change nothing; what was committed is entered by `add` and `remove`.
"""

from collections.abc import Collection, Iterable, Sequence

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
from atoll.core.model.booking import OccurrenceId
from atoll.core.model.ids import ClusterName, NodeId
from atoll.core.model.plan import Claim
from atoll.core.model.reservation import ReservationSpec
from atoll.core.state.snapshot import Snapshot


class Calendar:
    """Windows over the nodes and runs of a snapshot. Not safe for threads."""

    def __init__(
        self, snapshot: Snapshot, booked: Iterable[Booked] = (), claims: Iterable[Claim] = ()
    ) -> None:
        raise NotImplementedError

    def look(self, snapshot: Snapshot, claims: Iterable[Claim] = ()) -> None:
        """Take nodes, runs and guarantees as they are now; what is booked stays."""
        raise NotImplementedError

    def add(self, booked: Booked) -> None:
        """Enter a window, or replace the one of the same id."""
        raise NotImplementedError

    def remove(self, id: OccurrenceId) -> bool:
        """Forget a window; False when it is not here."""
        raise NotImplementedError

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
        raise NotImplementedError

    def find(self, query: Query, *, now: float) -> Found:
        """The best windows for what is wanted."""
        raise NotImplementedError

    def extend(self, id: OccurrenceId, end: float, *, now: float) -> Accepted | Refused:
        """Another end for a window: on its nodes, or if it has not begun on others.

        Raises LookupError when it is not here.
        """
        raise NotImplementedError

    def rebind(self, id: OccurrenceId, *, now: float) -> Rebound:
        """A window's place when what failed of it is replaced; the rest stays where it is.

        Raises LookupError when it is not here.
        """
        raise NotImplementedError

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
        raise NotImplementedError
