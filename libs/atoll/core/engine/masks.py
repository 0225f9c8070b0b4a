"""What the filters say, worked out once for all shapes for which it is the same."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.apart import Apart
from atoll.core.engine.choice.quick import Step, minds, steps
from atoll.core.engine.rented.cost import too_dear
from atoll.core.engine.windows.bookings import OPEN, Bookings, Claimant, claimant
from atoll.core.model.ids import QueueName
from atoll.core.model.plan import GangRequest
from atoll.core.model.reason import ReasonCode
from atoll.core.model.resources import TaskShape
from atoll.core.policies.interfaces import MAY_GO, WHY_NUMBER, Policies
from atoll.core.state.snapshot import ClassView, Snapshot

Key = tuple[Hashable, ...]
ByShape = dict[int, NDArray[np.bool_]]
TOO_CLOSE: Final = np.int8(WHY_NUMBER[ReasonCode.ANTI_AFFINITY])
RESERVED: Final = np.int8(WHY_NUMBER[ReasonCode.RESERVED])
RENTED: Final = np.int8(WHY_NUMBER[ReasonCode.RENTED])
_OPEN_OR_SILENT: Final = (MAY_GO, WHY_NUMBER[ReasonCode.CLUSTER_SILENT])
NO_QUEUE: Final = QueueName("")
"""Of a job that owns no booking."""


@dataclass(slots=True)
class Masks:
    """Where shapes may go at all."""

    snapshot: Snapshot
    policies: Policies
    now: float
    bookings: Bookings = field(init=False)
    _codes: dict[Key, NDArray[np.int8]] = field(default_factory=dict)
    _masks: dict[tuple[Key, int], NDArray[np.bool_]] = field(default_factory=dict)
    _apart: Apart = field(init=False)
    _steps: tuple[Step, ...] = field(init=False)
    _narrow: dict[tuple[int, int], tuple[NDArray[np.bool_], NDArray[np.bool_]]] = field(
        default_factory=dict
    )
    """By a mask's identity and a step; the mask is kept, so that no other gets it."""

    def __post_init__(self) -> None:
        self._steps = steps(self.snapshot, self.policies)
        self._apart = Apart(self.snapshot)
        self.bookings = Bookings(self.snapshot, self.now)

    def note(self, request: GangRequest, rows: NDArray[np.int64]) -> None:
        """A job was placed on some rows: others may have to keep away from them."""
        self._apart.note(request, rows)

    def keyed(
        self, request: GangRequest, shape: TaskShape, queue: QueueName
    ) -> tuple[Key, NDArray[np.bool_]]:
        """What `allowed` says, with a key that is equal where it says the same."""
        filters, who = self._filters(request, shape), claimant(queue, request)
        key = (filters, self.bookings.number(who))
        return key, self._apart.narrow(request, self._mask(request, shape, who, key=key))

    def refusals(
        self, request: GangRequest, shape: TaskShape, queue: QueueName = NO_QUEUE
    ) -> NDArray[np.int8]:
        """(N) by the first filter that refuses: the place of its reason in WHY, else MAY_GO."""
        codes = self._filtered(request, shape, self._filters(request, shape))
        closing = self._closing(request, queue)
        if closing != OPEN:
            closed = self.bookings.closed_at(claimant(queue, request), self.now)
            codes = np.where((codes == MAY_GO) & closed, RESERVED, codes)
        if self.snapshot.rentals:
            codes = self._closed_rentals(request, queue, codes)
        if request.anti_affinity is None:
            return codes
        close = (codes == MAY_GO) & ~self.anywhere(request, shape, queue)
        return np.where(close, TOO_CLOSE, codes)

    def allowed(
        self, request: GangRequest, shape: TaskShape, queue: QueueName = NO_QUEUE
    ) -> NDArray[np.bool_]:
        """(N) True where all filters let the shape go, and no booking is in the way.

        Rented nodes are open to nobody here: see `rented`.
        """
        return self._allowed(request, shape, claimant(queue, request))

    def unbooked(self, request: GangRequest, shape: TaskShape) -> NDArray[np.bool_]:
        """(N) the same as if there were no bookings."""
        return self._allowed(request, shape, None)

    def rented(
        self, request: GangRequest, shape: TaskShape, queue: QueueName, *, rental: int
    ) -> NDArray[np.bool_]:
        """(N) where on a rented machine a shape may go, if its job may use the machine at all."""
        filters, who = self._filters(request, shape), claimant(queue, request)
        key = ((*filters, rental), self.bookings.number(who))
        if key not in self._masks:
            mask = self._filtered(request, shape, filters) == MAY_GO
            mask &= self.snapshot.nodes.cluster == self.snapshot.rentals.cluster[rental]
            self._masks[key] = mask & ~self.bookings.closed(who)
        return self._apart.narrow(request, self._masks[key])

    def anywhere(
        self, request: GangRequest, shape: TaskShape, queue: QueueName
    ) -> NDArray[np.bool_]:
        """(N) where a shape may go, on what is rented too."""
        if not self.snapshot.rentals:
            return self.allowed(request, shape, queue)
        usable = self.usable_rentals(request, queue)
        rented = [self.rented(request, shape, queue, rental=number) for number in usable]
        found: NDArray[np.bool_] = np.logical_or.reduce([
            self.allowed(request, shape, queue),
            *rented,
        ])
        return found

    def usable_rentals(self, request: GangRequest, queue: QueueName) -> tuple[int, ...]:
        """Rented machines that take any job's tasks now, as far as they themselves go."""
        values = self.snapshot.rentals.values
        allowed = self.allowed_rentals(request, queue)
        return tuple(number for number in allowed if not too_dear(values[number], request))

    def allowed_rentals(self, request: GangRequest, queue: QueueName) -> tuple[int, ...]:
        """The same, with those that are too dear but for jobs for which they were rented."""
        rentals, clusters = self.snapshot.rentals, self.snapshot.clusters
        return tuple(
            number
            for number in rentals.ready()
            if clusters[rentals.cluster[number]].closed is None
            and not rentals.not_allowed(number, queue, request)
        )

    def place(self, view: ClassView) -> Key:
        """Equal for classes that have the same places for the same requests."""
        queue = view.queue if self.snapshot.rentals else NO_QUEUE
        return view.request, self._closing(view.request, view.queue), queue

    def ahead(self, seconds: float) -> "Masks":
        """The same for jobs that start so much later, and hold their place until then."""
        later = replace(self, now=self.now)
        later.bookings = Bookings(self.snapshot, self.now, ahead=seconds)
        later._masks, later._apart = {}, self._apart
        return later

    def of(self, view: ClassView) -> ByShape:
        """By shape, where a class's tasks may go at all."""
        return {
            shape: self.allowed(view.request, self.snapshot.task_shape(shape), view.queue)
            for shape in _shapes(view)
        }

    def quick(self, view: ClassView) -> list[int]:
        """Steps in which a class is tried before it is tried everywhere; mostly there are none."""
        if not self._steps:
            return []
        each = enumerate(self._steps)
        return [number for number, step in each if minds(view, step, self.policies)]

    def narrowed(self, mask: NDArray[np.bool_], step: int) -> NDArray[np.bool_]:
        """(N) what of a mask is in a step; the same array for the same mask."""
        key = (id(mask), step)
        if key not in self._narrow:
            self._narrow[key] = mask, mask & self._steps[step].rows
        return self._narrow[key][1]

    def in_turn(self, view: ClassView) -> Iterator[ByShape]:
        """By shape, where a class's tasks may go, the quickest clusters first and then all."""
        everywhere = self.of(view)
        for step in self.quick(view):
            yield {shape: self.narrowed(mask, step) for shape, mask in everywhere.items()}
        yield everywhere

    def unbooked_of(self, view: ClassView, rows: NDArray[np.bool_] | None = None) -> ByShape:
        """The same as if there were no bookings; of some rows (N), if they are given."""
        found = {
            shape: self.unbooked(view.request, self.snapshot.task_shape(shape))
            for shape in _shapes(view)
        }
        return found if rows is None else {shape: mask & rows for shape, mask in found.items()}

    def _allowed(
        self, request: GangRequest, shape: TaskShape, who: Claimant | None
    ) -> NDArray[np.bool_]:
        closing = self.bookings.number(who) if who is not None else OPEN
        key = (self._filters(request, shape), closing)
        return self._apart.narrow(request, self._mask(request, shape, who, key=key))

    def _mask(
        self,
        request: GangRequest,
        shape: TaskShape,
        who: Claimant | None,
        *,
        key: tuple[Key, int],
    ) -> NDArray[np.bool_]:
        known = self._masks.get(key)
        if known is None:
            filters, closing = key
            known = self._filtered(request, shape, filters) == MAY_GO
            if who is not None and closing != OPEN:
                known &= ~self.bookings.closed(who)
            if self.snapshot.rentals:
                known &= ~self.snapshot.rentals.rows
            self._masks[key] = known
        return known

    def _closed_rentals(
        self, request: GangRequest, queue: QueueName, codes: NDArray[np.int8]
    ) -> NDArray[np.int8]:
        rentals = self.snapshot.rentals
        is_open = [rentals.cluster[number] for number in self.usable_rentals(request, queue)]
        closed = rentals.rows & ~np.isin(self.snapshot.nodes.cluster, is_open)
        # A machine that boots is silent, but that is not why nobody gets it.
        return np.where(closed & np.isin(codes, _OPEN_OR_SILENT), RENTED, codes)

    def _closing(self, request: GangRequest, queue: QueueName) -> int:
        return self.bookings.number(claimant(queue, request))

    def _filters(self, request: GangRequest, shape: TaskShape) -> Key:
        return tuple(
            f.key(self.snapshot, request, shape=shape, now=self.now) for f in self.policies.filters
        )

    def _filtered(self, request: GangRequest, shape: TaskShape, key: Key) -> NDArray[np.int8]:
        if key not in self._codes:
            codes = np.zeros(len(self.snapshot.names), np.int8)
            for each in self.policies.filters:
                new = each.refuses(self.snapshot, request, shape=shape, now=self.now)
                codes = np.where(codes == MAY_GO, new, codes)
            self._codes[key] = codes
        return self._codes[key]


def _shapes(view: ClassView) -> set[int]:
    return {shape for group in view.shapes for shape in group}
