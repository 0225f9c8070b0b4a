"""How long clusters take from a decision until what was placed there runs."""

from collections import deque
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from atoll.core.model.ids import ClusterName

REMEMBERED: Final = 33
"""Starts of a cluster."""
LEAST: Final = 3
"""Starts before a cluster's median is worth something."""
WORTH_TELLING: Final = 0.2
"""A median that moved by less than this part of it, or by less than a second, is as it was."""


@dataclass(slots=True)
class BootTimes:
    """Running medians, by cluster."""

    _starts: dict[ClusterName, deque[float]] = field(default_factory=dict)
    _told: dict[ClusterName, float] = field(default_factory=dict)

    def note(self, cluster: ClusterName, seconds: float) -> None:
        """Something began to run so long after it was decided."""
        starts = self._starts.setdefault(cluster, deque(maxlen=REMEMBERED))
        starts.append(max(0.0, seconds))

    def moved(self) -> bool:
        """Whether some median is not what it was when this was last true."""
        found = {c: median(starts) for c, starts in self._starts.items() if len(starts) >= LEAST}
        if found.keys() == self._told.keys() and not any(
            abs(now - self._told[c]) > max(1.0, WORTH_TELLING * self._told[c])
            for c, now in found.items()
        ):
            return False
        self._told = found
        return True

    @property
    def medians(self) -> dict[ClusterName, float]:
        """Seconds, as of the last time that they had moved."""
        return dict(self._told)
