"""Models of a single series. A new one is one file and one line here."""

from typing import Final

import numpy as np

from atoll.burst.forecasting.model import Model
from atoll.burst.forecasting.models import croston, ets, last, seasonal, theta
from atoll.core.engine.burst.demand.series import Demand, Floats

MODELS: Final[tuple[Model, ...]] = (
    last.MODEL,
    seasonal.MODEL,
    theta.MODEL,
    ets.MODEL,
    croston.MODEL,
)


def carried_on(demand: Demand, horizon: int) -> dict[str, Floats]:
    """(H) by the name of each model that applies; there is always one."""
    return {
        model.name: model.forecast(demand, horizon) for model in MODELS if model.applies(demand)
    }


def ensemble(demand: Demand, horizon: int) -> Floats:
    """(H) the median of all models that apply."""
    return np.median(np.stack(list(carried_on(demand, horizon).values())), axis=0)
