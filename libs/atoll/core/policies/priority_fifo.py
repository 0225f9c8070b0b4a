"""Higher priority first; equals in the order of their submission."""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from atoll.core.state.snapshot import Snapshot


class PriorityFifo:
    """Orders classes by priority alone; the cycle orders equals by submit time and id."""

    def keys(self, snapshot: Snapshot, *, now: float, rng: Generator) -> NDArray[np.float64]:
        """The negated priority of each class."""
        del now, rng
        return np.array([-group.priority for group in snapshot.queue.classes], np.float64)
