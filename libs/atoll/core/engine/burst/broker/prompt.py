"""Starts in time for all but a few jobs, at the least cost: the few are those dearest to rent for.

A job is late when it starts more than so long after it was seen first. Being late has a price,
per job however large, that the broker learns: it rises with each job that is late, and falls
with each that came, so that the share of late ones stays what it may be (as in Gibbs, Candes,
"Adaptive Conformal Inference Under Distribution Shift", NeurIPS'21, whose errors even out in the
long run, whatever comes). Jobs that are expected to be late because nothing is rented for them
count at once: a crowd that comes together does not go over the bound together.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.burst import MICROS
from atoll.core.model.burst_wants import Want
from atoll.core.model.ids import JobId

Floats = NDArray[np.float64]
RATE: Final = 0.3
"""By which the logarithm of the price rises with each late job."""
FIRST: Final = 10 * MICROS
LEAST: Final = 5 * MICROS
MOST: Final = 2000 * MICROS


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is remembered from one decision to the next."""

    log_price: float = math.log(FIRST)
    """Of the micro-dollars that a late job costs."""
    since: Mapping[JobId, float] = field(default_factory=dict)
    """When the jobs that wait were seen first."""
    late: frozenset[JobId] = frozenset()
    """Those of them that were counted as late."""

    def to_json(self) -> list[Any]:
        """All of it, of plain values."""
        return [self.log_price, sorted(self.since.items()), sorted(self.late)]


def prompt_from_json(kept: Sequence[Any]) -> Prompt:
    """What to_json gave."""
    price, since, late = kept
    return Prompt(
        float(price),
        {JobId(job): float(at) for job, at in since},
        frozenset(JobId(job) for job in late),
    )


def followed(
    before: Prompt, wants: Sequence[Want], *, came: int, now: float, late_s: float, share: float
) -> Prompt:
    """With what has come since: `came` jobs were submitted (those seen first, if they are more)."""
    since = {each.job: before.since.get(each.job, _first_seen(each, now, late_s)) for each in wants}
    late = frozenset(job for job, at in since.items() if now - at > late_s)
    new = len(since.keys() - before.since.keys())
    price = before.log_price + RATE * (len(late - before.late) - share * max(came, new))
    return Prompt(min(math.log(MOST), max(math.log(LEAST), price)), since, late)


def left_s(prompt: Prompt, wants: Sequence[Want], *, now: float, late_s: float) -> Floats:
    """(W) seconds until each is late; 0 and less: it is."""
    return np.array([late_s - (now - prompt.since.get(each.job, now)) for each in wants])


def _first_seen(want: Want, now: float, late_s: float) -> float:
    """One that was submitted long ago has run in between, or nobody has looked for a while."""
    return want.submitted_at if 0 <= now - want.submitted_at <= late_s else now
