"""AutoTheta: a trend and a smoothed level, with the seasons of a day."""

from atoll.burst.forecasting.models.statistical import model_of
from atoll.core.engine.burst.demand.series import DAY

MODEL = model_of("theta", lambda lib: lib.AutoTheta(season_length=DAY), thin=False, fewest=3 * DAY)
