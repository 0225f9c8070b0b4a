"""Forecasts that were given at submit, what became of them, and what that says of the next ones."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from atoll.core.engine.timeline.eta_kernels import (
    LEVELS,
    Calibration,
    new_calibration,
    note_miss,
    note_start,
    quantile,
    usual_calibration,
)
from atoll.core.model.ids import JobId

MOST_OPEN: Final = 4096
"""Forecasts that wait for their job to start; of more than these only some are followed."""
MOST_AT_ONCE: Final = 256
"""Of the jobs that came between two forecasts so many are followed, evenly chosen."""
VERSION: Final = 1
_MEMORY: Final = 1000.0
"""Starts that the coverage remembers."""
_TELLS_FROM: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Told:
    """A forecast for one job. Waits are seconds from then on."""

    at: float
    point_s: float
    quantiles_s: tuple[float, ...]
    """By LEVELS."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How far forecasts at submit held."""

    count: int
    """Starts in all."""
    within: tuple[float, ...]
    """By LEVELS, the part of the jobs that had started by then."""
    error_s: float
    """Mean distance of the start from the p50."""


@dataclass(slots=True)
class _Tally:
    """Sums over starts; `fade` is what is left of them after one more."""

    fade: float = 1.0
    weight: float = 0.0
    kept: list[float] = field(default_factory=lambda: [0.0] * len(LEVELS))
    error_s: float = 0.0

    def note(self, told: Told, waited_s: float) -> None:
        middle = told.quantiles_s[LEVELS.index(0.5)]
        self.weight = self.weight * self.fade + 1.0
        self.error_s = self.error_s * self.fade + abs(waited_s - middle)
        for level, wait in enumerate(told.quantiles_s):
            self.kept[level] = self.kept[level] * self.fade + (waited_s <= wait)

    def coverage(self, count: int) -> Coverage:
        whole = max(self.weight, _TELLS_FROM)
        return Coverage(count, tuple(kept / whole for kept in self.kept), self.error_s / whole)


@dataclass(slots=True)
class TrackRecord:
    """Learns what forecasts are worth from those that it gave."""

    calibration: Calibration = field(default_factory=usual_calibration)
    _open: dict[JobId, Told] = field(default_factory=dict)
    _missed: dict[JobId, int] = field(default_factory=dict)
    """How many of the levels, from the first on, were noted as missed though the job waits."""
    _lately: _Tally = field(default_factory=lambda: _Tally(1.0 - 1.0 / _MEMORY))
    _ever: _Tally = field(default_factory=_Tally)

    def quantiles_s(self, point_s: float) -> tuple[float, ...]:
        """By LEVELS, the waits that a forecast of so many seconds stands for."""
        each = [quantile(self.calibration, point_s, level) for level in range(len(LEVELS))]
        # A wait that nine of ten keep is no shorter than one that half do.
        return tuple(float(wait) for wait in np.maximum.accumulate(each))

    def chosen(self, jobs: Iterable[JobId]) -> list[JobId]:
        """Those of new jobs that are to be followed, evenly chosen where they are too many."""
        free = max(0, min(MOST_AT_ONCE, MOST_OPEN - len(self._open)))
        each = sorted(jobs)
        if not free:
            return []
        every = max(1, -(-len(each) // free))
        return each[every - 1 :: every]

    def tell(self, points: Mapping[JobId, float], *, now: float) -> None:
        """Jobs had their first forecast: unix seconds of their starts."""
        for job, start in points.items():
            point_s = max(0.0, start - now)
            self._open[job] = Told(now, point_s, self.quantiles_s(point_s))

    def started(self, jobs: Iterable[JobId], *, now: float) -> None:
        """Jobs were placed."""
        for job in jobs:
            told, missed = self._open.pop(job, None), self._missed.pop(job, 0)
            if told is not None:
                self._learn(told, max(0.0, now - told.at), missed=missed)

    def still_wait(self, *, now: float) -> None:
        """What has not started yet may be late already: the next ones are told so at once."""
        for job, told in self._open.items():
            known = self._missed.get(job, 0)
            late = sum(now - told.at > wait for wait in told.quantiles_s[known:])
            for level in range(known, known + late):
                note_miss(self.calibration, told.point_s, level)
            if late:
                self._missed[job] = known + late

    def gone(self, jobs: Iterable[JobId]) -> None:
        """Jobs will not start: they were cancelled or held."""
        for job in jobs:
            self._open.pop(job, None)
            self._missed.pop(job, None)

    @property
    def followed(self) -> Iterable[JobId]:
        """Jobs whose start is waited for."""
        return self._open.keys()

    def coverage(self) -> Coverage:
        """As it stands, the latest starts counting most."""
        return self._lately.coverage(round(self._ever.weight))

    def coverage_ever(self) -> Coverage:
        """Over all starts."""
        return self._ever.coverage(round(self._ever.weight))

    def _learn(self, told: Told, waited_s: float, *, missed: int) -> None:
        given = np.array(told.quantiles_s)
        given[:missed] = np.nan
        note_start(self.calibration, told.point_s, given, waited_s)
        self._lately.note(told, waited_s)
        self._ever.note(told, waited_s)

    def to_text(self) -> str:
        """All of it, to be read by `from_text`."""
        groups, bins = np.nonzero(self.calibration.seen > _TELLS_FROM)
        seen = self.calibration.seen[groups, bins].round(6)
        return json.dumps({
            "version": VERSION,
            "seen": [groups.tolist(), bins.tolist(), seen.tolist()],
            "level": self.calibration.level.round(6).tolist(),
            "open": [
                [job, self._missed.get(job, 0), told.at, told.point_s, *told.quantiles_s]
                for job, told in self._open.items()
            ],
            "lately": [self._lately.weight, self._lately.error_s, *self._lately.kept],
            "ever": [self._ever.weight, self._ever.error_s, *self._ever.kept],
        })


def from_text(text: str) -> TrackRecord:
    """What `to_text` wrote; of another version, or of nothing, an empty record."""
    kept: dict[str, Any] = json.loads(text) if text else {}
    if kept.get("version") != VERSION:
        return TrackRecord()
    calibration = new_calibration()
    groups, bins, seen = kept["seen"]
    calibration.seen[groups, bins] = seen
    calibration.level[:] = kept["level"]
    record = TrackRecord(calibration)
    for job, missed, at, point, *rest in kept["open"]:
        record._open[JobId(job)] = Told(at, point, tuple(rest))
        record._missed[JobId(job)] = missed
    for tally, numbers in ((record._lately, kept["lately"]), (record._ever, kept["ever"])):
        tally.weight, tally.error_s, *tally.kept = numbers
    return record
