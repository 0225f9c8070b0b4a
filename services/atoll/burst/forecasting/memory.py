"""What a forecaster remembers: examples to learn from, forecasts to be judged, what they gave."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from atoll.core.engine.burst.demand.calibration import Calibration
from atoll.core.engine.burst.demand.combine import Weights
from atoll.core.engine.burst.demand.drift import Drift
from atoll.core.engine.burst.demand.features import Features
from atoll.core.engine.burst.demand.forecast import Forecast
from atoll.core.engine.burst.demand.series import STEP_S, Demand, Floats, Key

MOST_EXAMPLES: Final = 8000
MOST_BACKTESTS: Final = 4000


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """Something to learn from, once its target is known."""

    key: Key
    at_s: float
    features: Features
    booked: Floats
    """(H) devices that were booked ahead."""
    target: Floats | None = None
    """(H)."""


@dataclass(frozen=True, slots=True, eq=False)
class Backtest:
    """What a forecast turned out to be worth."""

    key: Key
    at_s: float
    quantiles: Floats
    """(LEVELS, H) as they were forecast."""
    actual: Floats
    """(H)."""
    scale: float


@dataclass(slots=True)
class Memory:
    """All of it."""

    calibration: Calibration = field(default_factory=Calibration)
    weights: Weights = field(default_factory=Weights)
    drifts: dict[Key, Drift] = field(default_factory=dict)
    examples: list[Example] = field(default_factory=list)
    pending: list[Example] = field(default_factory=list)
    """Examples whose target is not known yet."""
    open: list[Forecast] = field(default_factory=list)
    """Forecasts that are not judged yet."""
    backtests: list[Backtest] = field(default_factory=list)
    taught_at_s: dict[Key, float] = field(default_factory=dict)
    """Origin of the newest example by series."""
    fitted_at_s: float | None = None

    def trim(self) -> None:
        """Forgets the oldest of what there is too much of."""
        del self.examples[:-MOST_EXAMPLES]
        del self.backtests[:-MOST_BACKTESTS]


def came_of(at_s: float, horizon: int, later: Demand) -> Floats | None:
    """(H) what demand was at the steps after an origin, when `later` knows all of them."""
    behind = round((later.at_s - at_s) / STEP_S)
    start = len(later.history) - behind
    if behind < horizon or start < 0:
        return None
    return np.asarray(later.history[start : start + horizon], dtype=float)
