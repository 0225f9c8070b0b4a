"""How long jobs run: the chance that one which has run so long still runs so much later.

Kaplan-Meier over bands of run time, one curve per class of size (1, 2, 4, 8, 16 and more
devices). Jobs count less the older they are, those still running count as far as they got, and
a class leans on all jobs together as far as it has few of its own.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from atoll.core.engine.burst.demand.series import STEP_S, Floats, Ints, Jobs

CLASSES: Final = 5
GRID: Final[Floats] = np.concatenate([[0.0], np.geomspace(120.0, 60 * 86400.0, 140)])
"""(N) seconds at which bands begin."""
FADE_S: Final = 10 * 86400.0
LEAN: Final = 20.0
"""Jobs of all classes that stand in for a class's own."""


@dataclass(frozen=True, slots=True, eq=False)
class Survival:
    """Curves; `log_left[c, n]` is the log of the chance to run longer than GRID[n] in class c."""

    log_left: Floats

    def chance(self, classes: Ints, ran_s: Floats) -> Floats:
        """The log of the chance to run longer than `ran_s`; all of one shape."""
        band = np.clip(np.searchsorted(GRID, ran_s, side="right") - 1, 0, len(GRID) - 2)
        part = np.minimum((ran_s - GRID[band]) / (GRID[band + 1] - GRID[band]), 1.0)
        left = self.log_left
        found = left[classes, band] * (1 - part) + left[classes, band + 1] * part
        return np.asarray(found, dtype=float)

    def ahead(self, classes: Ints, ran_s: Floats, horizon: int) -> Floats:
        """(J, H) chance that a job which has run `ran_s` (J) still runs at each step ahead."""
        later = ran_s[:, None] + np.arange(1, horizon + 1) * STEP_S
        wide = np.broadcast_to(classes[:, None], later.shape)
        found = np.exp(self.chance(wide, later) - self.chance(classes, ran_s)[:, None])
        return np.asarray(found, dtype=float)

    def fresh(self, horizon: int) -> Floats:
        """(H, CLASSES) chance that a job runs longer than half a step, and each step more."""
        ran = np.repeat((np.arange(horizon) + 0.5)[:, None] * STEP_S, CLASSES, axis=1)
        return np.exp(self.chance(np.broadcast_to(np.arange(CLASSES), ran.shape), ran))


def classes_of(amount: Floats) -> Ints:
    """(J) class of size of each job."""
    found = np.log2(np.maximum(amount, 1.0)).astype(np.int64)
    return np.asarray(np.minimum(found, CLASSES - 1), dtype=np.int64)


def survival_of(jobs: Jobs) -> Survival:
    """The curves of some jobs; without jobs, half of them run longer than an hour or so."""
    seen = jobs.over | (jobs.ran_s > 0)
    weight = np.asarray(np.exp(-jobs.age_s / FADE_S) * jobs.counts, dtype=float)
    ends = _counts(jobs, seen & jobs.over, weight)
    cut = _counts(jobs, seen & ~jobs.over, weight)
    # What was cut in a band was at risk in half of it.
    at_risk = np.cumsum((ends + cut)[:, ::-1], axis=1)[:, ::-1] - cut / 2
    usual = (ends.sum(axis=0) + 0.02) / (at_risk.sum(axis=0) + 1.0)
    hazard = np.clip((ends + LEAN * usual) / (at_risk + LEAN), 0.0, 0.999)
    logs = np.cumsum(np.log1p(-hazard), axis=1)
    return Survival(np.concatenate([np.zeros((CLASSES, 1)), logs[:, :-1]], axis=1))


def _counts(jobs: Jobs, chosen: np.ndarray, weight: Floats) -> Floats:
    found = np.zeros((CLASSES, len(GRID)))
    band = np.searchsorted(GRID, jobs.ran_s[chosen], side="right") - 1
    np.add.at(found, (classes_of(jobs.amount[chosen]), band), weight[chosen])
    return found
