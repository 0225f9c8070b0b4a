"""When jobs would start without renting: log-normal through the two quantiles that are known.

What was foreseen a while ago is taken on the condition that it has not come about by now.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np

from atoll.core.engine.burst.broker.ground import Floats, Options
from atoll.core.model.burst_wants import Want

P90: Final = NormalDist().inv_cdf(0.9)
SAMPLES: Final = 40
LEVELS: Final = np.array([NormalDist().inv_cdf((n + 0.5) / SAMPLES) for n in range(SAMPLES)])
NARROW: Final = 0.02
"""The least deviation of the logarithm: nobody foresees it to the second."""
VAGUE: Final = 4.0
"""Of a wait that nobody can tell the 90 % quantile is so many times the median."""


class Start(NamedTuple):
    """Seconds from now: median, 90 % quantile, and the logarithm's mean and deviation."""

    p50_s: float
    p90_s: float
    mean: float
    deviation: float
    passed_s: float
    """Since it was foreseen: it has been in vain for so long, which `mean` does not know of."""


def start_of(want: Want, *, now: float, options: Options) -> Start:
    """What is to be expected; a wait that was to be over is expected to last as long again."""
    since = want.as_of or now
    passed_s = max(0.0, now - since)
    p50_s, p90_s = want.local_p50_at - since, want.local_p90_at - since
    if want.local_p50_at <= 0:
        p50_s, p90_s, passed_s = max(options.unknown_s, now - want.submitted_at), 0.0, 0.0
    elif max(p50_s, p90_s) <= passed_s > 0:
        p50_s, p90_s, passed_s = passed_s, 0.0, 0.0
    p90_s = p90_s or VAGUE * p50_s
    p50_s = max(p50_s, 1.0)
    deviation = max(math.log(max(p90_s, p50_s) / p50_s) / P90, NARROW)
    return Start(p50_s - passed_s, p90_s - passed_s, math.log(p50_s), deviation, passed_s)


def late_chance(start: Start, latest_s: float) -> float:
    """Of a start more than so many seconds from now."""
    if latest_s <= 0 or latest_s == math.inf:
        return float(latest_s <= 0)
    still = _after(start, start.passed_s)
    return min(1.0, _after(start, start.passed_s + latest_s) / still) if still > 0 else 1.0


def waits(starts: Sequence[Start], ready_s: Floats) -> Floats:
    """(W, O) expected seconds that jobs start later than what is ready after (O) seconds."""
    means = np.array([each.mean for each in starts])[:, None]
    deviations = np.array([each.deviation for each in starts])[:, None]
    passed = np.array([each.passed_s for each in starts])[:, None]
    delays = np.exp(means + deviations * LEVELS) - passed
    weights = np.maximum(delays > 0, 1e-9)
    weights = weights / weights.sum(axis=1, keepdims=True)
    leads, place = np.unique(ready_s, return_inverse=True)
    found = [(np.maximum(delays - lead, 0.0) * weights).sum(axis=1) for lead in leads]
    return np.stack(found, axis=1)[:, place]


def _after(start: Start, seconds: float) -> float:
    """Chance of a start later than so long after it was foreseen."""
    if seconds <= 0:
        return 1.0
    z = (math.log(seconds) - start.mean) / start.deviation
    return math.erfc(z / math.sqrt(2)) / 2
