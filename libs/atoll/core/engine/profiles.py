"""Nodes for which all filters say the same, so that a filter is looked up by node only once."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

AT_ONCE: Final = 30
"""Masks that go into one number beside the profile so far."""

Mask = NDArray[np.bool_]


def profiles(masks: Sequence[Mask], count: int) -> tuple[NDArray[np.int32], Mask]:
    """Profile of each of `count` nodes, and by profile and mask (P, M) whether it lets them."""
    if len(masks) == 1:
        return masks[0].astype(np.int32), np.array([[False], [True]])
    profile, first = np.zeros(count, np.int64), np.zeros(min(count, 1), np.int64)
    for start in range(0, len(masks), AT_ONCE):
        code = profile << AT_ONCE
        for place, mask in enumerate(masks[start : start + AT_ONCE]):
            code |= mask.astype(np.int64) << place
        _, first, profile = np.unique(code, return_index=True, return_inverse=True)
    table = np.ones((max(1, len(first)), len(masks)), np.bool_)
    for place, mask in enumerate(masks):
        table[: len(first), place] = mask[first]
    return profile.astype(np.int32), table
