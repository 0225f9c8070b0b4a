"""Ranks of queues by what they used in the past, as in Slurm's Fair Tree.

Among siblings the one with the least usage for its weight comes first. Queues are
compared level by level, so that all below the first comes before all below the next.
"""

import numpy as np

from atoll.core.state.shares import Floats, Ints


def sibling_ranks(parent: Ints, used: Floats, weight: Floats) -> Floats:
    """(V) 0 for the sibling that used least for its weight to 1 for the last; equals share one.

    `used` and `weight`: (V). An only child has rank 0.
    """
    level = used / np.where(weight > 0, weight, 1.0)
    order = np.lexsort((level, parent))
    families, levels = parent[order], level[order]
    at = np.arange(len(order))
    starts = np.flatnonzero(np.diff(families, prepend=families[0] - 1 if len(order) else 0))
    counts = np.diff(np.append(starts, len(order)))
    begin, size = np.repeat(starts, counts), np.repeat(counts, counts)
    new = np.append(True, (np.diff(levels) != 0) | (np.diff(families) != 0))[: len(order)]
    place = np.maximum.accumulate(np.where(new, at, 0)) - begin
    ranks = np.zeros(len(order))
    ranks[order] = place / np.maximum(size - 1, 1)
    return ranks
