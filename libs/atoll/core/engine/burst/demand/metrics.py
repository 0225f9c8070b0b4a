"""How good forecasts were. Arrays are (..., H) devices unless said otherwise."""

import numpy as np

from atoll.core.engine.burst.demand.series import Floats


def mase(actual: Floats, forecast: Floats, scale: float) -> float:
    """Mean absolute error over `scale`, the error of "as 24 steps ago" in the history."""
    return float(np.abs(actual - forecast).mean()) / scale


def wape(actual: Floats, forecast: Floats) -> float:
    """Sum of absolute errors over what was used; 0 when nothing was and nothing was said."""
    error, whole = float(np.abs(actual - forecast).sum()), float(np.abs(actual).sum())
    return error / whole if whole else float(error > 0)


def coverage(actual: Floats, low: Floats, high: Floats) -> float:
    """Share of the values within the band, its ends included."""
    return float(((actual >= low) & (actual <= high)).mean())


def pinball(actual: Floats, quantile: Floats, level: float) -> float:
    """Mean loss of a quantile; least in expectation for the true one."""
    above = actual - quantile
    return float(np.maximum(level * above, (level - 1) * above).mean())
