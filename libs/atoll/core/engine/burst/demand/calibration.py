"""Makes bands hold as often as they say, by how far outside of them the past was.

Conformalized quantile regression (Romano et al., 2019): a band moves outwards, or inwards, by a
quantile of how far beyond its ends the actual values were, in scales of the series. Which
quantile adapts to how often the band failed (Gibbs and Candès, "Adaptive conformal inference
under distribution shift", 2021), so that it holds when demand changes its ways.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from atoll.core.engine.burst.demand.series import Floats, Key

RATE: Final = 0.02
"""Of adapting: by how much a band that failed lowers the share that may fail."""
FADE_S: Final = 20 * 86400.0
STRANGER: Final = 0.1
"""What a score of another series counts."""
SETTLED: Final = 5
"""Origins of a series before a failure is one of the quantile, not of having seen too little."""
FEWEST: Final = 20
"""Scores below which a band stays as it is."""
KEPT: Final = 120
"""Origins kept per series."""
BUCKETS: Final = (0, 1, 3, 6, 12, 18)
"""Steps ahead, less one, at which a bucket of steps begins: each has quantiles of its own."""
LEAST, MOST = 0.01, 0.4
"""Bounds of the share that may fail, as a part of 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """(H) devices each."""

    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """How far beyond a band the actual values of one origin were, in scales."""

    at_s: float
    below: Floats
    """(H)."""
    above: Floats
    """(H)."""


@dataclass(slots=True)
class Calibration:
    """What is known of bands that are to hold `1 - alpha` of the time."""

    alpha: float = 0.1
    scores: dict[Key, list[Score]] = field(default_factory=dict)
    allowed: dict[Key, float] = field(default_factory=dict)
    """By series, the share that may fail as of now."""

    def learn(self, key: Key, score: Score, *, held: float) -> None:
        """Takes one origin in; `held` is the share of its steps that the adjusted band held."""
        before = self.scores.get(key, [])
        self.scores[key] = [*before, score][-KEPT:]
        if len(before) < SETTLED:
            return
        moved = self.allowed.get(key, self.alpha) + RATE * (self.alpha - (1 - held))
        self.allowed[key] = float(np.clip(moved, LEAST, MOST))

    def adjusted(self, key: Key, band: Band, scale: float, *, at_s: float) -> Band:
        """The band as it has to be at an origin."""
        level = 1 - self.allowed.get(key, self.alpha) / 2
        low, high = band.low.copy(), band.high.copy()
        below, above, weight = self._table(key, len(low), at_s)
        for steps in _buckets(len(low)):
            if weight.size * (steps.stop - steps.start) < FEWEST:
                continue
            low[steps] -= scale * _quantile(below[:, steps], weight, level)
            high[steps] += scale * _quantile(above[:, steps], weight, level)
        low = np.maximum(low, 0.0)
        return Band(low, np.maximum(high, low))

    def to_json(self) -> dict[str, Any]:
        """All of it, of plain values."""
        return {
            "alpha": self.alpha,
            "allowed": [[*key, share] for key, share in self.allowed.items()],
            "scores": [
                [*key, one.at_s, one.below.tolist(), one.above.tolist()]
                for key, scores in self.scores.items()
                for one in scores
            ],
        }

    def _table(self, key: Key, horizon: int, at_s: float) -> tuple[Floats, Floats, Floats]:
        """(S, H) scores below and above, (S) what each counts."""
        found = [
            (one, (1.0 if other == key else STRANGER) * np.exp((one.at_s - at_s) / FADE_S))
            for other, scores in self.scores.items()
            for one in scores
            if len(one.below) >= horizon
        ]
        if not found:
            return np.zeros((0, horizon)), np.zeros((0, horizon)), np.zeros(0)
        below = np.stack([one.below[:horizon] for one, _ in found])
        above = np.stack([one.above[:horizon] for one, _ in found])
        return below, above, np.array([weight for _, weight in found])


def calibration_from_json(kept: Mapping[str, Any]) -> Calibration:
    """What to_json gave."""
    found = Calibration(alpha=float(kept["alpha"]))
    found.allowed = {Key(queue, kind): float(share) for queue, kind, share in kept["allowed"]}
    for queue, kind, at_s, below, above in kept["scores"]:
        score = Score(float(at_s), np.array(below, dtype=float), np.array(above, dtype=float))
        found.scores.setdefault(Key(queue, kind), []).append(score)
    return found


def score_of(actual: Floats, band: Band, scale: float, *, at_s: float) -> Score:
    """How far the actual values were beyond a band that was not adjusted."""
    return Score(at_s, (band.low - actual) / scale, (actual - band.high) / scale)


def _buckets(horizon: int) -> Iterable[slice]:
    edges = [edge for edge in BUCKETS if edge < horizon]
    for edge, end in zip(edges, [*edges[1:], horizon], strict=True):
        yield slice(edge, end)


def _quantile(scores: Floats, weight: Floats, level: float) -> float:
    """Of (S, steps) scores, the least one that `level` of the (S) weights are at or below."""
    flat = scores.ravel()
    each = np.repeat(weight, scores.shape[1])
    order = np.argsort(flat, kind="stable")
    heap = np.cumsum(each[order])
    place = int(np.searchsorted(heap, level * heap[-1]))
    return float(flat[order][min(place, len(flat) - 1)])
