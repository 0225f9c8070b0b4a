"""A forecast: quantiles of demand at each step ahead, and what they were made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from atoll.core.engine.burst.demand.calibration import Band
from atoll.core.engine.burst.demand.series import Floats, Key

LEVELS: Final = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
MIDDLE: Final = LEVELS.index(0.5)
GAUSS: Final = (0.0, 0.2209, 0.5899, 1.0)
"""From 0.05 to 0.5, where levels lie between the two in a normal distribution."""


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """Of one series at one origin."""

    key: Key
    at_s: float
    quantiles: Floats
    """(LEVELS, H) devices, rising by level."""
    booked: Floats
    """(H) of these are booked, and in all quantiles."""
    known: Floats
    """(H) expected to be held by the jobs that want devices now."""
    scale: float
    band: Band
    """From the lowest to the highest level before calibration, without what is booked."""
    members: Mapping[str, Floats]
    """(H) by model: what the median was made of."""

    @property
    def median(self) -> Floats:
        """(H) devices."""
        return np.asarray(self.quantiles[MIDDLE], dtype=float)

    def at(self, level: float) -> Floats:
        """(H) any quantile between the lowest and the highest one; beyond them, those."""
        return np.array([np.interp(level, LEVELS, column) for column in self.quantiles.T])


def spread(median: Floats, band: Band, runs: Floats) -> Floats:
    """(LEVELS, H) quantiles that end in a band and lie within it as they do among runs (R, H)."""
    low, high = np.minimum(band.low, median), np.maximum(band.high, median)
    shape = np.quantile(runs, LEVELS, axis=0)
    below = _shares(shape[: MIDDLE + 1])
    above = 1 - _shares(-shape[: MIDDLE - 1 : -1])[::-1]
    return np.concatenate([
        low + below * (median - low),
        (median + above * (high - median))[1:],
    ])


def _shares(rising: Floats) -> Floats:
    """(L, H) of (L, H), 0 for the first and 1 for the last; where all are one, as if normal."""
    width = rising[-1] - rising[0]
    flat = width <= 1e-9
    shares = (rising - rising[0]) / np.where(flat, 1.0, width)
    return np.where(flat, np.array(GAUSS)[:, None], shares)
