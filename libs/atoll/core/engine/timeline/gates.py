"""How bookings keep a class of jobs waiting: where it may go, and from when on."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.masks import Masks
from atoll.core.engine.windows.bookings import claimant
from atoll.core.model.resources import TaskShape
from atoll.core.state.snapshot import ClassView

Bools = NDArray[np.bool_]


class Gate(NamedTuple):
    """Nodes on which a shape may go, and when they are open to it."""

    rows: Bools
    opens: float
    """Unix seconds; not after now where nothing is in the way. Infinity: never."""
    booking: str = ""
    """That it waits for."""


def gate(masks: Masks, view: ClassView, shape: TaskShape) -> Gate:
    """Of a class's shape.

    What a booking leaves open is all there is to it; when it leaves nothing, the class waits for
    the first one that is in the way to end. Whoever asks for a booking waits for its window.
    """
    bookings, now = masks.bookings, masks.now
    unbooked = masks.unbooked(view.request, shape)
    if not bookings and not view.request.reservation:
        return Gate(unbooked, now)
    if view.request.reservation:
        return _own(masks, view, unbooked)
    rows = masks.allowed(view.request, shape, view.queue)
    if rows.any() or not unbooked.any():
        return Gate(rows, now)
    meets = np.flatnonzero(bookings.conflicts(claimant(view.queue, view.request), now))
    if not len(meets):
        return Gate(unbooked, now)
    first = meets[np.argmin(bookings.view.end[meets])]
    return Gate(unbooked, float(bookings.view.end[first]), bookings.view.values[first].booking)


def _own(masks: Masks, view: ClassView, unbooked: Bools) -> Gate:
    bookings, name = masks.bookings, view.request.reservation
    named = list(bookings.view.by_name.get(name, ()))
    if not named:
        return Gate(np.zeros_like(unbooked), np.inf, name)
    first = float(bookings.view.start[named].min())
    chosen = np.zeros(len(bookings.view), np.bool_)
    chosen[[at for at in named if bookings.view.start[at] <= max(first, masks.now)]] = True
    rows = np.zeros_like(unbooked)
    rows[bookings.rows_of(chosen)] = True
    return Gate(rows & unbooked, max(first, masks.now), name)
