"""Rented machines in a snapshot: which nodes they are, and for whom they are held.

Their nodes are closed in the ordinary course of a cycle. K rentals, the cheapest first.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.burst import InstanceState, Rental
from atoll.core.model.burst_rules import Policies
from atoll.core.model.ids import QueueName
from atoll.core.model.plan import GangRequest, PendingJob
from atoll.core.state.holds import Hold
from atoll.core.state.rentals import HOLDABLE, RentalBook, not_allowed

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class RentalView:
    """Rentals of a snapshot. Nothing in it is to be written."""

    values: tuple[Rental, ...] = ()
    cluster: tuple[int, ...] = ()
    """(K) number of its cluster."""
    joined: tuple[bool, ...] = ()
    """(K) its agent has come, and said what there is."""
    rows: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    """(N) nodes that are rented; (0) when there is no rental."""
    policies: Policies = field(default_factory=dict)
    holds: tuple[Hold, ...] = ()
    """Of jobs that are in the queue all the same; their capacity is taken from the nodes."""
    wanted: tuple[tuple[int, PendingJob], ...] = ()
    """(rental, job): machines that boot, and for whom they are not held yet."""
    quiet: bool = False
    """Nothing is started, held or stopped there: the snapshot is for a question about a job."""

    def __bool__(self) -> bool:
        return bool(self.values)

    def not_allowed(self, rental: int, queue: QueueName, request: GangRequest) -> str:
        """Why jobs of a queue with a request may not use a rental; empty when they may."""
        rented = self.values[rental]
        return not_allowed(rented, self.policies, queue=queue, request=request)

    def ready(self) -> Iterator[int]:
        """Rentals whose machines take work, as far as they themselves go."""
        for number, rental in enumerate(self.values):
            if rental.state is InstanceState.READY and self.joined[number]:
                yield number

    def number(self, hold: Hold) -> int:
        """The rental on which something is held."""
        name = hold.nomination.cluster
        return next(n for n, rental in enumerate(self.values) if rental.cluster == name)

    def takes_holds(self, rental: int) -> bool:
        """Whether what is held there may start, as far as the machine goes."""
        return self.joined[rental] and self.values[rental].state in HOLDABLE

    def shut(self) -> "RentalView":
        """The same machines, of no use to anybody."""
        return replace(self, joined=(False,) * len(self.values), holds=(), wanted=(), quiet=True)

    def asked(self) -> "RentalView":
        """The same for a question: what is held stays held."""
        return replace(self, wanted=(), quiet=True)


NO_RENTALS: Final = RentalView()


def rental_view(
    book: RentalBook, numbers: Mapping[str, int], cluster: NDArray[np.int32]
) -> RentalView:
    """A book as it stands. `numbers`: of clusters; `cluster`: (N) the nodes'."""
    values = book.values
    if not values:
        return NO_RENTALS
    mine, joined = tuple(numbers[rental.cluster] for rental in values), book.joined
    return RentalView(
        values=values,
        cluster=mine,
        joined=tuple(rental.cluster in joined for rental in values),
        rows=np.isin(cluster, mine),
        policies=book.policies,
    )
