"""What the models of statsforecast have in common."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from atoll.burst.forecasting.model import Model, library
from atoll.core.engine.burst.demand.series import DAY, Demand, Floats

MOST: Final = 28 * DAY
"""Steps; what is older says little and costs time."""
RECENT: Final = 14 * DAY
THIN: Final = 0.6
LIBRARY: Final = "statsforecast.models"


def model_of(name: str, make: Callable[[Any], Any], *, thin: bool, fewest: int) -> Model:
    """A model from the library.

    Args:
        name: Of the model.
        make: Makes it, of the library's module.
        thin: For series that are mostly zero, or else for all others.
        fewest: Steps of history that it needs.
    """

    def applies(demand: Demand) -> bool:
        enough = len(demand.history) >= fewest and is_thin(demand) == thin
        return enough and library(LIBRARY) is not None

    def forecast(demand: Demand, horizon: int) -> Floats:
        recent = demand.history[-MOST:].astype(np.float32)
        if np.ptp(recent) == 0:
            return np.full(horizon, demand.last)
        found = make(library(LIBRARY)).forecast(y=recent, h=horizon)["mean"]
        finite = np.nan_to_num(np.asarray(found, dtype=float), nan=demand.last)
        return np.asarray(np.maximum(finite, 0.0), dtype=float)

    return Model(name, applies, forecast)


def is_thin(demand: Demand) -> bool:
    """It was zero at most of the steps of the last two weeks."""
    return float((demand.history[-RECENT:] <= 0).mean()) > THIN
