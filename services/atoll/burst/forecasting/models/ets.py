"""AutoETS: exponential smoothing whose error and trend are chosen by AICc.

Without seasons: with them it takes many times as long and is not better on GPU clusters.
"""

from atoll.burst.forecasting.models.statistical import model_of
from atoll.core.engine.burst.demand.series import DAY

MODEL = model_of(
    "ets",
    lambda lib: lib.AutoETS(season_length=1, model="ZZN"),
    thin=False,
    fewest=3 * DAY,
)
