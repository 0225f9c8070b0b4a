"""What is known of demand at an instant, the origin; nothing here tells of later.

A series is the demand of a queue for a kind of devices: devices in use or asked for, at every
full step up to the origin. Times are seconds, amounts devices.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

STEP_S = 3600.0
DAY = 24
"""Steps."""


class Key(NamedTuple):
    """Names a series."""

    queue: str
    kind: str


@dataclass(frozen=True, slots=True, eq=False)
class Jobs:
    """All jobs of a series that were submitted up to the origin: J rows of each column.

    Where there are very many, a row may stand for several that are nearly alike.
    """

    amount: Floats
    """(J) devices."""
    age_s: Floats
    """(J) since the submit."""
    ran_s: Floats
    """(J) of one that is over how long it ran, of one that runs how long so far; else 0."""
    over: Bools
    """(J) it has ended."""
    many: Ints | None = None
    """(J) how many jobs a row stands for; None: each for one."""

    @property
    def counts(self) -> Ints:
        """(J) how many jobs a row stands for."""
        return np.ones(len(self.amount), dtype=np.int64) if self.many is None else self.many

    def where(self, chosen: Bools) -> "Jobs":
        """Some of the rows."""
        return Jobs(
            self.amount[chosen],
            self.age_s[chosen],
            self.ran_s[chosen],
            self.over[chosen],
            None if self.many is None else self.many[chosen],
        )

    @property
    def running(self) -> Bools:
        """(J) wants devices now: it runs, or waits."""
        return ~self.over


@dataclass(frozen=True, slots=True)
class Booked:
    """Devices that are wanted from one time ahead of the origin to another, for sure."""

    amount: float
    from_s: float
    until_s: float


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """A series, and what is known of the jobs behind it."""

    key: Key
    at_s: float
    """The origin; on the scale on which full days begin at multiples of 86,400."""
    history: Floats
    """(N >= 1) one value per step; the last one is that of the origin."""
    jobs: Jobs
    booked: tuple[Booked, ...] = field(default=())
    """Not in the history, nor among the jobs."""

    @property
    def last(self) -> float:
        """Demand now."""
        return float(self.history[-1])

    def hours(self, horizon: int) -> Ints:
        """(H) the hours of the day of the steps ahead, counted from 0 at multiples of a day."""
        return (int(self.at_s // STEP_S) + np.arange(1, horizon + 1)) % DAY


def no_jobs() -> Jobs:
    """No rows."""
    none = np.zeros(0)
    return Jobs(none, none, none, np.zeros(0, bool))


def booked_ahead(demand: Demand, horizon: int) -> Floats:
    """(H) devices booked at each step ahead."""
    ahead = np.arange(1, horizon + 1) * STEP_S
    found = np.zeros(horizon)
    for booked in demand.booked:
        first, last = np.searchsorted(ahead, (booked.from_s, booked.until_s))
        found[first:last] += booked.amount
    return found


def scale_of(history: Floats) -> float:
    """Mean error of "as 24 steps ago" over the history, at least a quarter of a device.

    What errors are measured in (Hyndman and Koehler, "Another look at measures of forecast
    accuracy", 2006). With less than a day and a step of history it is the mean of the changes.
    """
    lag = DAY if len(history) > DAY else 1
    changes = np.abs(history[lag:] - history[:-lag])
    return max(float(changes.mean()) if len(changes) else 0.0, 0.25)
