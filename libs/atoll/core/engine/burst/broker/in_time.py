"""What it is worth that jobs start in time: a price for each late job, whatever its size."""

import math
from collections.abc import Sequence

import numpy as np

from atoll.core.engine.burst.broker.ground import Floats, Ground
from atoll.core.engine.burst.broker.prompt import MOST, RATE, Prompt, left_s
from atoll.core.engine.burst.broker.starts import Start, late_chance
from atoll.core.model.burst_wants import Want


def worth_in_time(
    ground: Ground,
    wants: Sequence[Want],
    starts: Sequence[Start],
    *,
    costs: Floats,
    saved: Floats,
    leads: Floats,
) -> Floats:
    """(W, O) micro-dollars beyond what is saved otherwise; 0 where an offer is not in time.

    `costs`: (W, O), infinite where nothing is to be had, or a deadline says more.
    """
    late_s = ground.options.late_s
    if not late_s:
        return np.zeros_like(costs)
    rest_s = left_s(ground.memory.prompt, wants, now=ground.now, late_s=late_s)
    in_time = (leads <= rest_s[:, None]) & np.isfinite(costs)
    least = np.where(in_time, costs, np.inf).min(axis=1)
    most = np.where(in_time, saved, 0.0).max(axis=1)
    worth = _worth(ground.memory.prompt, starts, rest_s, least=least, most=most)
    return np.where(in_time, worth[:, None], 0.0)


def _worth(
    prompt: Prompt, starts: Sequence[Start], rest_s: Floats, *, least: Floats, most: Floats
) -> Floats:
    """(W) of an instance in time, the dearest asked first: who goes without makes it dearer."""
    worth = np.zeros(len(starts))
    expected = 0.0
    for row in np.argsort(-least, kind="stable"):
        if rest_s[row] <= 0:
            continue
        chance = late_chance(starts[row], float(rest_s[row]))
        price = math.exp(min(math.log(MOST), prompt.log_price + RATE * expected))
        worth[row] = chance * price
        if most[row] + worth[row] <= least[row]:
            expected += chance
    return worth
