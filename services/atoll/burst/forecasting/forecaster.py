"""Forecasts demand, is told what came of it, and learns from that.

In turn: `observe` what is known at an instant, `forecast` from it, and now and then `fit`
(seconds of work; away from the loop, from `lesson`) and `use` what was fitted.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final
from zlib import crc32

import numpy as np

from atoll.burst.forecasting import boosted, registry
from atoll.burst.forecasting.boosted import Boosted
from atoll.burst.forecasting.judge import judge
from atoll.burst.forecasting.memory import Example, Memory, came_of
from atoll.core.engine.burst.demand.calibration import Band
from atoll.core.engine.burst.demand.combine import combined
from atoll.core.engine.burst.demand.features import features_of
from atoll.core.engine.burst.demand.forecast import LEVELS, Forecast, spread
from atoll.core.engine.burst.demand.known import held, simulate
from atoll.core.engine.burst.demand.series import (
    DAY,
    STEP_S,
    Demand,
    Floats,
    booked_ahead,
    scale_of,
)
from atoll.core.engine.burst.demand.survival import Survival, survival_of

EXAMPLE_EVERY_S: Final = 6 * STEP_S
FIT_EVERY_S: Final = DAY * STEP_S
FIT_AGAIN_S: Final = 6 * STEP_S
"""After a drift was seen."""
FEWEST_EXAMPLES: Final = 50
FEWEST_STEPS: Final = 3 * DAY
"""Of history, for a series to teach, and to be told by what was learnt."""


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """What there is to be fitted, taken at an instant."""

    at_s: float
    rows: Floats
    """(R, F)."""
    targets: Floats
    """(R)."""
    seed: int

    def fit(self) -> Boosted:
        """Seconds of work that touch nothing else."""
        return boosted.fit(self.rows, self.targets, seed=self.seed)


class Forecaster:
    """Of some series, by a seed, over a horizon of steps."""

    def __init__(self, seed: int = 0, *, horizon: int = DAY, memory: Memory | None = None) -> None:
        self._seed = seed
        self.horizon = horizon
        self.memory = memory or Memory()
        self.trees: Boosted | None = None

    def observe(self, demands: Iterable[Demand]) -> None:
        """Takes what is known now: it shows what came of earlier forecasts, and teaches."""
        for demand in demands:
            self._resolve(demand)
            judge(self.memory, demand)
            if self._teaches(demand):
                self._remember(demand)
        self.memory.trim()

    def is_due(self, at_s: float) -> bool:
        """There is enough new to fit again: a day has gone by, or a drift was seen."""
        if len(self.memory.examples) < FEWEST_EXAMPLES or not boosted.is_available():
            return False
        if self.memory.fitted_at_s is None:
            return True
        since = at_s - self.memory.fitted_at_s
        drifted = any(drift.seen for drift in self.memory.drifts.values())
        return since >= (FIT_AGAIN_S if drifted else FIT_EVERY_S)

    def lesson(self, at_s: float) -> Lesson:
        """What can be learnt as of now; there is something when a fit is due."""
        examples = self.memory.examples
        rows = np.concatenate([each.features.rows for each in examples])
        targets = np.concatenate([each.target for each in examples if each.target is not None])
        return Lesson(at_s, rows, targets, self._seed)

    def use(self, trees: Boosted, lesson: Lesson) -> None:
        """Forecasts by what was fitted from now on."""
        self.trees = trees
        self.memory.fitted_at_s = lesson.at_s

    def forecast(self, demand: Demand) -> Forecast:
        """Quantiles; the same for the same demand, memory and seed."""
        survival = survival_of(demand.jobs)
        runs = simulate(demand, survival, self.horizon, draw=self._draw(demand))
        learnt = self._learnt(demand, survival)
        members = self._members(demand, runs, learnt)
        weights = self.memory.weights.of(demand.key, list(members))
        band = _band(runs, learnt)
        scale = scale_of(demand.history)
        fair = self.memory.calibration.adjusted(demand.key, band, scale, at_s=demand.at_s)
        booked = booked_ahead(demand, self.horizon)
        return Forecast(
            key=demand.key,
            at_s=demand.at_s,
            quantiles=spread(combined(members, weights), fair, runs) + booked,
            booked=booked,
            known=held(demand.jobs, survival, self.horizon).mean,
            scale=scale,
            band=band,
            members=members,
        )

    def keep(self, forecasts: Iterable[Forecast]) -> None:
        """These are to be judged when it is known what came: the backtests."""
        self.memory.open.extend(forecasts)

    def _draw(self, demand: Demand) -> np.random.Generator:
        """Of its own for each series and origin, so that their order does not matter."""
        name = crc32("/".join(demand.key).encode())
        return np.random.default_rng([self._seed, name, int(demand.at_s)])

    def _members(self, demand: Demand, runs: Floats, learnt: Floats | None) -> dict[str, Floats]:
        known = {
            "known": np.median(runs, axis=0),
            "series": registry.ensemble(demand, self.horizon),
        }
        return known if learnt is None else {**known, "boosted": learnt[1]}

    def _learnt(self, demand: Demand, survival: Survival) -> Floats | None:
        """(3, H) lowest, middle and highest level, when there is enough to tell them by."""
        if self.trees is None or len(demand.history) < FEWEST_STEPS:
            return None
        return self.trees.quantiles(features_of(demand, survival, self.horizon))

    def _resolve(self, demand: Demand) -> None:
        """Gives the examples of a series their targets."""
        memory, waiting = self.memory, []
        for example in memory.pending:
            mine = example.key == demand.key
            actual = came_of(example.at_s, self.horizon, demand) if mine else None
            if actual is None:
                waiting.append(example)
            else:
                target = example.features.target(np.maximum(actual - example.booked, 0.0))
                memory.examples.append(replace(example, target=target))
        memory.pending = waiting

    def _teaches(self, demand: Demand) -> bool:
        """At most every so often, and not while the history is short."""
        last = self.memory.taught_at_s.get(demand.key, -np.inf)
        return len(demand.history) >= FEWEST_STEPS and demand.at_s - last >= EXAMPLE_EVERY_S

    def _remember(self, demand: Demand) -> None:
        features = features_of(demand, survival_of(demand.jobs), self.horizon)
        booked = booked_ahead(demand, self.horizon)
        self.memory.pending.append(Example(demand.key, demand.at_s, features, booked))
        self.memory.taught_at_s[demand.key] = demand.at_s


def _band(runs: Floats, learnt: Floats | None) -> Band:
    """From the lowest to the highest level: as learnt, or else as simulated."""
    if learnt is not None:
        return Band(learnt[0], learnt[2])
    return Band(*np.quantile(runs, (LEVELS[0], LEVELS[-1]), axis=0))
