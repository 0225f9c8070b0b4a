"""Judges forecasts when it is known what came of them."""

import numpy as np

from atoll.burst.forecasting.memory import Backtest, Memory, came_of
from atoll.core.engine.burst.demand.calibration import score_of
from atoll.core.engine.burst.demand.drift import Drift, after
from atoll.core.engine.burst.demand.forecast import Forecast
from atoll.core.engine.burst.demand.metrics import coverage, mase
from atoll.core.engine.burst.demand.series import Demand, Floats


def judge(memory: Memory, demand: Demand) -> None:
    """Those of a series whose last step has come: bands, weights and drift learn from them."""
    still = []
    for forecast in memory.open:
        mine = forecast.key == demand.key
        actual = came_of(forecast.at_s, len(forecast.booked), demand) if mine else None
        if actual is None:
            still.append(forecast)
        else:
            _learn(memory, forecast, actual)
    memory.open = still


def _learn(memory: Memory, forecast: Forecast, actual: Floats) -> None:
    key, at_s, scale = forecast.key, forecast.at_s, forecast.scale
    low, high = forecast.quantiles[0], forecast.quantiles[-1]
    wanted = np.maximum(actual - forecast.booked, 0.0)
    score = score_of(wanted, forecast.band, scale, at_s=at_s)
    memory.calibration.learn(key, score, held=coverage(actual, low, high))
    for name, member in forecast.members.items():
        memory.weights.learn(key, name, mase(wanted, member, scale), at_s=at_s)
    error = mase(actual, forecast.median, scale)
    memory.drifts[key] = after(memory.drifts.get(key, Drift()), error)
    memory.backtests.append(Backtest(key, at_s, forecast.quantiles, actual, scale))
