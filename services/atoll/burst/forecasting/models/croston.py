"""Croston's method, with its constant chosen, for queues that mostly want nothing."""

from atoll.burst.forecasting.models.statistical import model_of
from atoll.core.engine.burst.demand.series import DAY

MODEL = model_of("croston", lambda lib: lib.CrostonOptimized(), thin=True, fewest=DAY)
