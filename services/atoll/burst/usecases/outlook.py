"""From a forecast to what the broker decides on, and to what people see. Pure arithmetic."""

from collections.abc import Sequence
from typing import Final
from zlib import crc32

import numpy as np

from atoll.burst.forecasting import boosted
from atoll.burst.forecasting.forecaster import Forecaster
from atoll.burst.forecasting.model import library
from atoll.burst.forecasting.models import statistical
from atoll.burst.forecasting.registry import MODELS
from atoll.burst.usecases.series import Series
from atoll.core.engine.burst.demand.forecast import LEVELS, MIDDLE, Forecast
from atoll.core.engine.burst.demand.known import simulate
from atoll.core.engine.burst.demand.metrics import coverage, mase
from atoll.core.engine.burst.demand.series import DAY, STEP_S, Demand, Floats, Key
from atoll.core.engine.burst.demand.survival import survival_of

SEED: Final = 5
JUDGED: Final = 60
"""Last forecasts that coverage and error are told of."""


def futures(demand: Demand, forecast: Forecast) -> Floats:
    """(R, H) equally likely demands: as runs go on over time, and as quantiles say at each step.

    The values at a step are those of the calibrated quantiles, in the order in which the simulated
    runs have them there (Clark et al., "The Schaake shuffle", 2004).
    """
    horizon = forecast.quantiles.shape[1]
    draw = np.random.default_rng([SEED, crc32("/".join(demand.key).encode()), int(demand.at_s)])
    runs = simulate(demand, survival_of(demand.jobs), horizon, draw=draw)
    # Ties are broken by chance, or else equal runs would be ordered by their number at each step.
    shaken = runs + draw.random(runs.shape) * 1e-9
    ranks = shaken.argsort(axis=0).argsort(axis=0)
    level = (ranks + 0.5) / len(runs)
    columns = [np.interp(level[:, h], LEVELS, forecast.quantiles[:, h]) for h in range(horizon)]
    return np.stack(columns, axis=1)


def series_of(
    demand: Demand, forecast: Forecast, forecaster: Forecaster, *, capacity: float, step_s: float
) -> Series:
    """What people are shown."""
    at = demand.at_s * step_s / STEP_S
    horizon = forecast.quantiles.shape[1]
    held, error = _record(forecaster, demand.key)
    fitted = forecaster.memory.fitted_at_s or 0.0
    return Series(
        demand.key.kind,
        demand.key.queue,
        at - (len(demand.history) - 1) * step_s,
        step_s,
        _rounded(demand.history),
        LEVELS,
        tuple(_rounded(each) for each in forecast.quantiles),
        (capacity,) * horizon,
        held,
        error,
        _models(demand, forecast),
        fitted * step_s / STEP_S,
        _message(demand, forecaster),
    )


def _record(forecaster: Forecaster, key: Key) -> tuple[float, float]:
    """Coverage of the 90 % band, and scaled error, over the last forecasts; 0 without any."""
    past = [each for each in forecaster.memory.backtests if each.key == key][-JUDGED:]
    if not past:
        return 0.0, 0.0
    held = [coverage(each.actual, each.quantiles[0], each.quantiles[-1]) for each in past]
    errors = [mase(each.actual, each.quantiles[MIDDLE], each.scale) for each in past]
    return round(float(np.mean(held)), 4), round(float(np.mean(errors)), 4)


def _models(demand: Demand, forecast: Forecast) -> str:
    single = [model.name for model in MODELS if model.applies(demand)]
    parts = [name for name in forecast.members if name != "series"]
    return " + ".join([*parts, f"median of {', '.join(single)}" if len(single) > 1 else single[0]])


def _message(demand: Demand, forecaster: Forecaster) -> str:
    told = []
    steps = len(demand.history)
    if steps < 3 * DAY:
        told.append(f"short history: {steps} of the {3 * DAY} hours that models need")
    missing = [name for name, there in _libraries().items() if not there]
    if missing:
        told.append(
            f"{' and '.join(missing)} are not installed (extra `burst`): simple models only"
        )
    drift = forecaster.memory.drifts.get(demand.key)
    if drift is not None and drift.seen:
        told.append("demand has changed its ways: past forecasts were worse than before")
    if not any(each.key == demand.key for each in forecaster.memory.backtests):
        told.append("no forecast has been judged yet")
    return "; ".join(told)


def _libraries() -> dict[str, bool]:
    return {
        "statsforecast": library(statistical.LIBRARY) is not None,
        "lightgbm": boosted.is_available(),
    }


def _rounded(values: Sequence[float] | Floats) -> tuple[float, ...]:
    return tuple(round(float(each), 3) for each in values)
