"""Coarse numbers: few values make few classes of jobs."""

import math
from typing import Final

STEPS_PER_DOUBLING: Final = 8


def round_limit(seconds: float) -> float:
    """A time limit rounded up by 9 % at most, so that similar jobs share a class; 0 stays 0."""
    if seconds <= 0:
        return 0.0
    steps = math.ceil(math.log2(seconds) * STEPS_PER_DOUBLING - 1e-9)
    return float(math.ceil(2 ** (steps / STEPS_PER_DOUBLING)))
