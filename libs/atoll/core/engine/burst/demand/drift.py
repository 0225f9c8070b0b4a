"""Has demand changed its ways? The Page-Hinkley test on errors (Page, 1954).

It sums by how much errors are above their mean so far, less what is let pass, and cries when the
sum has risen too far above its lowest value.
"""

from dataclasses import dataclass, replace
from typing import Final

PASS: Final = 0.3
"""Of an error above the mean is let pass, in scales of the series."""
CRY: Final = 6.0
"""Scales: a day after day whose errors are three scales above the mean takes two or three."""
MOST: Final = 5.0
"""An error counts as no more; one bad day is no drift."""
FEWEST: Final = 5


@dataclass(frozen=True, slots=True)
class Drift:
    """Of one series."""

    errors: int = 0
    mean: float = 0.0
    total: float = 0.0
    lowest: float = 0.0

    @property
    def seen(self) -> bool:
        """Errors have become larger for good."""
        return self.errors >= FEWEST and self.total - self.lowest > CRY


def after(drift: Drift, error: float) -> Drift:
    """With one more error, in scales; begins anew after a drift was seen."""
    if drift.seen:
        return after(Drift(), error)
    error = min(error, MOST)
    mean = drift.mean + (error - drift.mean) / (drift.errors + 1)
    total = drift.total + error - mean - PASS
    return replace(
        drift, errors=drift.errors + 1, mean=mean, total=total, lowest=min(drift.lowest, total)
    )
