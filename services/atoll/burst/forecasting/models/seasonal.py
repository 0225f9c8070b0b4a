"""As a day ago, while there is too little history for more."""

from typing import Final

import numpy as np

from atoll.burst.forecasting.model import Model
from atoll.core.engine.burst.demand.series import DAY, Demand, Floats

SHORT: Final = 3 * DAY
"""Steps."""


def _applies(demand: Demand) -> bool:
    return DAY <= len(demand.history) < SHORT


def _forecast(demand: Demand, horizon: int) -> Floats:
    return demand.history[-DAY + np.arange(horizon) % DAY]


MODEL = Model("seasonal", _applies, _forecast)
