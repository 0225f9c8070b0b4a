"""Whether jobs are worth an instance: their risk of being late here against what renting costs.

Rent if P(local start after the latest safe start) x penalty > cost + egress. What is rented too
late averts nothing. A job that can be in time nowhere any more, or has no deadline, is worth what
the delay costs that renting spares it.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def averted(chances: Floats, penalties: Floats, *, ready_s: Floats, latest_s: Floats) -> Floats:
    """(W, O) money that renting is expected to save W jobs with deadlines with each of O offers.

    `chances` (W) of a start here after the latest safe one, `penalties` (W) of being late,
    `ready_s` (W, O) until work could start there, `latest_s` (W) until the latest safe start.
    """
    in_time = ready_s <= latest_s[:, None]
    return np.where(in_time, (chances * penalties)[:, None], 0.0)


def spared(hours: Floats, delays_s: Floats) -> Floats:
    """(W, O) money that starting so much sooner saves; `hours` (W): what an hour of delay costs."""
    return np.asarray(hours[:, None] * delays_s / 3600)


def is_hopeless(*, ready_s: Floats, latest_s: Floats) -> "NDArray[np.bool_]":
    """(W) whether no offer is ready by the latest safe start."""
    return np.asarray((ready_s > latest_s[:, None]).all(axis=1))
