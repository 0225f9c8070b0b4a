"""What the next job of a class asks for, by device kind."""

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.resources import ANY_KIND
from atoll.core.state.snapshot import ClassView, Snapshot


def amounts(view: ClassView, kinds: int) -> NDArray[np.int64]:
    """(kinds) 1/56 blocks; what may be of any kind is not in it."""
    asked = np.zeros(kinds, np.int64)
    for kind, units in view.need.devices:
        if 0 <= kind < kinds:
            asked[kind] += units
    return asked


def kinds_of(view: ClassView, snapshot: Snapshot, kinds: int) -> NDArray[np.bool_]:
    """(kinds) those of which it may take some, by any alternative."""
    shapes = [shape for group in view.request.groups for shape in group.shapes]
    names = {shape.device.kind for shape in shapes if shape.device}
    found = np.zeros(kinds, np.bool_)
    found[[number for name, number in snapshot.kinds.items() if name in names]] = True
    return found | (ANY_KIND in names)
