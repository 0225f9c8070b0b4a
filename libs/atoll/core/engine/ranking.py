"""Brings the jobs of each class into the order of the policy.

They come by the time of their submit; a deadline or a stop may put one before those.
"""

from dataclasses import replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from atoll.core.engine.nominees import favour
from atoll.core.policies.interfaces import QueueOrder, Ranks
from atoll.core.state.snapshot import QueueView, Snapshot


def ranked(
    snapshot: Snapshot, order: QueueOrder, *, now: float, rng: Generator
) -> tuple[Snapshot, Ranks]:
    """The snapshot with its jobs in order inside their classes, and their ranks."""
    ranks = order.ranks(snapshot, now=now, rng=rng)
    ranks = replace(ranks, outer=favour(snapshot, ranks.outer))
    queue = snapshot.queue
    group = np.repeat(np.arange(len(queue.classes)), np.diff(queue.first))
    place = np.lexsort((
        queue.job,
        queue.submitted_at,
        ranks.key,
        ranks.inner,
        ranks.outer,
        group,
    ))
    if (np.diff(place) > 0).all():
        return snapshot, ranks
    moved = replace(ranks, outer=ranks.outer[place], inner=ranks.inner[place], key=ranks.key[place])
    return replace(snapshot, queue=_moved(queue, place)), moved


def _moved(queue: QueueView, place: NDArray[np.int64]) -> QueueView:
    return replace(
        queue,
        job=queue.job[place],
        revision=queue.revision[place],
        submitted_at=queue.submitted_at[place],
        attempts=queue.attempts[place],
        deadline_at=queue.deadline_at[place],
        guaranteed=queue.guaranteed[place],
        preemptions=queue.preemptions[place],
        trace=[queue.trace[at] for at in place.tolist()],
    )
