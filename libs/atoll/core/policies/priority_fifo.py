"""Higher priority first; equals in the order of their submission."""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from atoll.core.policies.interfaces import Ranks
from atoll.core.state.snapshot import Snapshot


class PriorityFifo:
    """Orders jobs by priority alone; the cycle orders equals by submit time and id."""

    def ranks(self, snapshot: Snapshot, *, now: float, rng: Generator) -> Ranks:
        """The negated priority of each job."""
        del now, rng
        inner = -job_priorities(snapshot)
        return Ranks(np.zeros_like(inner), inner, np.zeros(len(inner)))


def job_priorities(snapshot: Snapshot) -> NDArray[np.int64]:
    """(J) the priority of every job that is shown."""
    priority = np.array([group.priority for group in snapshot.queue.classes], np.int64)
    return np.repeat(priority, np.diff(snapshot.queue.first))
