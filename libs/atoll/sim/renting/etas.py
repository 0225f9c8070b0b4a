"""When waiting jobs would start on the own cluster: the service's kernels on a single pool.

What runs comes free when it is expected to; the line flows into that in its order. What past
forecasts turned out to be worth gives the quantiles.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from atoll.core.engine.burst.demand.series import Floats
from atoll.core.engine.timeline.flow_kernels import BUCKETS, Flow, fill, flow_through
from atoll.core.engine.timeline.track_record import TrackRecord
from atoll.core.model.ids import JobId

FAR_S: Final = 30 * 86_400.0
"""Beyond what the kernels tell."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line and what is before it."""

    jobs: Sequence[int]
    """In their order."""
    devices: Sequence[int]
    expected_s: Sequence[float]
    free: int
    ends: Sequence[tuple[float, int]]
    """(when, devices) of what runs."""


@dataclass(slots=True)
class Etas:
    """Tells starts, and learns from those that came."""

    record: TrackRecord = field(default_factory=TrackRecord)
    _told: set[int] = field(default_factory=set)

    def look(self, line: Line, *, now: float) -> Mapping[int, tuple[float, float]]:
        """(p50, p90) of each job's start, by the line as it is."""
        if not line.jobs:
            return {}
        starts = _points(line, now)
        self._follow(dict(zip(line.jobs, starts.tolist(), strict=True)), now=now)
        return {
            job: self._quantiles(start, now)
            for job, start in zip(line.jobs, starts.tolist(), strict=True)
        }

    def started(self, job: int, *, now: float) -> None:
        """On the own cluster."""
        self.record.started([JobId(job)], now=now)

    def rented(self, job: int) -> None:
        """Nobody will know when it would have started here."""
        self.record.gone([JobId(job)])

    def _quantiles(self, start: float, now: float) -> tuple[float, float]:
        middle, late = self.record.quantiles_s(start - now)
        return now + middle, now + late

    def _follow(self, starts: Mapping[int, float], *, now: float) -> None:
        self.record.still_wait(now=now)
        new = {JobId(job): at for job, at in starts.items() if job not in self._told}
        chosen = self.record.chosen(new)
        self.record.tell({job: new[job] for job in chosen}, now=now)
        self._told.update(new)


def _points(line: Line, now: float) -> Floats:
    count = len(line.jobs)
    avail = np.zeros(BUCKETS)
    after = np.array([0.0, *(max(0.0, at - now) for at, _ in line.ends)])
    fill(avail, after, np.array([line.free, *(each for _, each in line.ends)], dtype=float))
    index, amount = np.arange(count), np.array(line.devices, dtype=float)
    flow = Flow(
        index, index, np.zeros(count, np.int64), np.ones(count), np.array(line.expected_s, float)
    )
    start = np.full(count, np.inf)
    flow_through(flow, avail, amount, amount, np.zeros(count), start)
    return np.asarray(now + np.minimum(start, FAR_S), dtype=float)
