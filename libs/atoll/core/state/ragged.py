"""Lists of different lengths in one array: list n is first[n] up to first[n + 1]."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def spans(first: Ints, chosen: Ints) -> Ints:
    """Indices first[c] up to first[c + 1] of every chosen c, one after another."""
    sizes = first[chosen + 1] - first[chosen]
    begin = offsets(sizes)
    return np.repeat(first[chosen] - begin[:-1], sizes) + np.arange(begin[-1])


def offsets(sizes: Ints) -> Ints:
    """Where each of several lists begins in their concatenation, and where the last one ends."""
    begin = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=begin[1:])
    return begin
