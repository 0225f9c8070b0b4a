"""Queue limits as reasons."""

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.sentences import limit_reason
from atoll.core.model.reason import Reason
from atoll.core.state.mig import UNITS_PER_BLOCK
from atoll.core.state.snapshot import ClassView, Snapshot


def limit_reasons(
    view: ClassView, snapshot: Snapshot, *, used: NDArray[np.int64]
) -> tuple[Reason, ...]:
    """The limits that bind a class, the one with the least left first. `used`: in 1/56 block."""
    limit = snapshot.limits.limit
    tightest = sorted(view.limits, key=lambda n: (int(limit[n] - used[n]), n))
    return tuple(
        limit_reason(
            snapshot.limits.queues[n],
            used=-(-int(used[n]) // UNITS_PER_BLOCK),
            limit=int(limit[n]) // UNITS_PER_BLOCK,
        )
        for n in tightest
    )
