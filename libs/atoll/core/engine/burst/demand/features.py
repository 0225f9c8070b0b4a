"""What is told to a model that learns from all series together, one row per step ahead.

All amounts are less the demand now and over the scale of the series, so that a small queue
teaches a large one. The target is written the same way.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from atoll.core.engine.burst.demand.arrivals import WINDOWS, coming
from atoll.core.engine.burst.demand.known import held
from atoll.core.engine.burst.demand.series import (
    DAY,
    STEP_S,
    Demand,
    Floats,
    scale_of,
)
from atoll.core.engine.burst.demand.survival import Survival

MEANS: Final = (6, 24, 72, 168, 336)
"""Steps."""
WEEK: Final = 7


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Of one series at one origin."""

    rows: Floats
    """(H, F)."""
    last: float
    scale: float
    """Devices."""

    def target(self, actual: Floats) -> Floats:
        """(H) what there is to be learnt, of (H) devices."""
        return (actual - self.last) / self.scale

    def devices(self, target: Floats) -> Floats:
        """The way back; never below 0."""
        return np.maximum(self.last + target * self.scale, 0.0)


def features_of(demand: Demand, survival: Survival, horizon: int) -> Features:
    """Bookings are not part of it: they are known, not learnt."""
    scale, last = scale_of(demand.history), demand.last
    columns = [
        *_when(demand, horizon),
        np.full(horizon, last / scale),
        *_known(demand, survival, horizon, scale=scale),
        *(_seasons(demand.history, horizon) - last) / scale,
        *(np.full(horizon, value) for value in _levels(demand.history, scale)),
    ]
    return Features(np.stack(columns, axis=1), last, scale)


def _when(demand: Demand, horizon: int) -> list[Floats]:
    step = int(demand.at_s // STEP_S)
    ahead = np.arange(1, horizon + 1)
    hour = np.asarray(demand.hours(horizon), dtype=float)
    weekday = ((step + ahead) // DAY) % WEEK
    return [ahead.astype(float), hour, np.full(horizon, float(step % DAY)), weekday.astype(float)]


def _known(demand: Demand, survival: Survival, horizon: int, *, scale: float) -> list[Floats]:
    now = held(demand.jobs, survival, horizon)
    steps = len(demand.history)
    come = [coming(demand.jobs, survival, steps, days=days, horizon=horizon) for days in WINDOWS]
    return [
        now.mean / scale,
        np.sqrt(now.variance) / scale,
        (now.mean - demand.last) / scale,
        *((now.mean + each - demand.last) / scale for each in come),
    ]


def _seasons(history: Floats, horizon: int) -> Floats:
    """(3, H) the same hours a day ago, a week ago, and on average of the last week's days."""
    day = _ago(history, DAY, horizon)
    week = _ago(history, WEEK * DAY, horizon) if len(history) >= WEEK * DAY else day
    days = range(1, max(1, min(WEEK, len(history) // DAY)) + 1)
    return np.stack([
        day,
        week,
        np.mean([_ago(history, DAY * back, horizon) for back in days], axis=0),
    ])


def _ago(history: Floats, lag: int, horizon: int) -> Floats:
    """(H) values `lag` steps before each step ahead, or the next known ones after those."""
    place = len(history) - lag + np.arange(horizon) % lag
    return history[np.clip(place, 0, len(history) - 1)]


def _levels(history: Floats, scale: float) -> list[float]:
    last = history[-1]
    week = history[-WEEK * DAY :]
    return [
        *((float(history[-steps:].mean()) - last) / scale for steps in MEANS),
        (last - history[max(-2, -len(history))]) / scale,
        (last - history[max(-4, -len(history))]) / scale,
        float(np.abs(np.diff(history[-2 * DAY :])).mean()) / scale if len(history) > 1 else 0.0,
        (float(week.max()) - last) / scale,
    ]
