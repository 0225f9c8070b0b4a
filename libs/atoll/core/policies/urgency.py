"""Urgency in the order of the service: who has the most to gain from a start now goes first.

What a second of waiting costs (1 / run time, as in the bounded slowdown) over what the
job takes (run time x its share of the whole), both expected of the past of its queue (Smith's
rule). A doubling is worth some seconds of waiting, in proportion to the largest backlog that
was seen; so is the time after which the oldest job of a queue goes first in any case.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.policies.time_order import AGEING, LEAST_BACKLOG_S, URGENCY

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
LEAST_SHARE = 1e-9


class Haste(NamedTuple):
    """What urgency depends on, (J) of each."""

    hurry: Floats
    """E[1 / run], 1/s."""
    length: Floats
    """E[run], s."""
    share: Floats
    """Dominant share of the whole."""


def urgency_s(haste: Haste, *, worth: float, backlog_s: float) -> Floats:
    """(J) seconds by which each job is brought forward, against one of 1 s on all there is."""
    powers = (
        URGENCY.hurry * np.log2(np.maximum(haste.hurry, LEAST_SHARE))
        - URGENCY.length * np.log2(np.maximum(haste.length, 1.0))
        - URGENCY.size * np.log2(np.maximum(haste.share, LEAST_SHARE))
    )
    gained: Floats = worth * max(backlog_s, LEAST_BACKLOG_S) * powers + 0.0
    return gained


def aged(waited_s: Floats, share: Floats, vertex: Ints, *, backlog_s: float) -> Bools:
    """(J) the oldest job of each queue (`vertex`) that has waited for too long."""
    cap = AGEING.cap * backlog_s * (1.0 - AGEING.wide * np.minimum(share, 1.0))
    over = (waited_s > cap) & (backlog_s > 0)
    oldest = np.zeros(len(waited_s), np.bool_)
    late = np.flatnonzero(over)
    by_queue = late[np.lexsort((-waited_s[late], vertex[late]))]
    first = np.ones(len(by_queue), np.bool_)
    first[1:] = vertex[by_queue[1:]] != vertex[by_queue[:-1]]
    oldest[by_queue[first]] = True
    return oldest
