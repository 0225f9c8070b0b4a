"""What will be asked for by jobs that are yet to be submitted, as it was in some days before."""

from typing import Final

import numpy as np

from atoll.core.engine.burst.demand.series import DAY, STEP_S, Floats, Ints, Jobs
from atoll.core.engine.burst.demand.survival import CLASSES, Survival, classes_of

WINDOWS: Final = (0, 1, 3, 7, 14)
"""Days looked back; 0 is all there are, by the hour of the day."""
LEAN: Final = 2.0
"""How far the hours of the day lean on their mean, in means."""


def coming(jobs: Jobs, survival: Survival, steps: int, *, days: int, horizon: int) -> Floats:
    """(H) devices expected to be held at each step ahead by jobs that come after the origin.

    Args:
        jobs: Those up to the origin.
        survival: How long jobs run.
        steps: How many steps there have been up to the origin.
        days: One of WINDOWS.
        horizon: Steps ahead.
    """
    window = max(min(days * DAY, steps - 1) if days else steps - 1, 1)
    chosen = jobs.age_s < window * STEP_S
    amount, count = jobs.amount[chosen], jobs.counts[chosen]
    per_step = np.bincount(classes_of(amount), weights=amount * count, minlength=CLASSES) / window
    held = survival.fresh(horizon) @ per_step
    if days:
        return np.cumsum(held)
    return np.convolve(_by_hour(jobs.age_s[chosen], count, horizon), held)[:horizon]


def _by_hour(age_s: Floats, count: Ints, horizon: int) -> Floats:
    """(H) arrivals in each step ahead, over the mean."""
    back = (age_s // STEP_S).astype(np.int64) % DAY
    jobs = np.bincount(back, weights=count, minlength=DAY).astype(float)
    jobs = (jobs + LEAN * jobs.mean() + 1.0) / ((1.0 + LEAN) * jobs.mean() + 1.0)
    # So many hours back, modulo a day, as the step ahead is ahead.
    return np.asarray(jobs[(DAY - np.arange(1, horizon + 1)) % DAY], dtype=float)
