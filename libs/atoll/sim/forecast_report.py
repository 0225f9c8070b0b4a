"""What the forecasts of a replay were worth."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from atoll.core.engine.burst.demand.forecast import LEVELS
from atoll.core.engine.burst.demand.metrics import coverage, mase, pinball, wape
from atoll.core.engine.burst.demand.series import DAY, Floats, scale_of
from atoll.core.model.errors import FieldViolation, InvalidInput
from atoll.sim.forecast import Judged, Replayed

Ways = dict[str, Callable[[Judged], Floats]]


def report(replayed: Replayed) -> dict[str, Any]:
    """All numbers; InvalidInput when there was too little to forecast from."""
    clusters: dict[str, list[Judged]] = {}
    for one in replayed.judged:
        clusters.setdefault(one.forecast.key.queue, []).append(one)
    if not clusters:
        raise InvalidInput((FieldViolation("traces", "no cluster has some days of history"),))
    per_cluster = {name: _numbers(judged) for name, judged in sorted(clusters.items())}
    return {
        **_means(per_cluster, median, suffix=""),
        **_means(per_cluster, fmean, suffix="_mean"),
        **_pooled(replayed.judged),
        "fit_s": round(fmean(replayed.fit_s), 3) if replayed.fit_s else 0.0,
        "fits": len(replayed.fit_s),
        "forecast_s": round(fmean(replayed.forecast_s), 4),
        "per_cluster": per_cluster,
    }


def write(path: Path, replayed: Replayed) -> None:
    """Every judged forecast, step by step; the origin is the hour of the last known value."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        levels = [f"q{round(level * 100):02}" for level in LEVELS]
        rows.writerow(("cluster", "origin_h", "ahead_h", "actual", *levels))
        for one in replayed.judged:
            made = one.forecast
            for ahead, actual in enumerate(one.actual):
                quantiles = [f"{value:.3f}" for value in made.quantiles[:, ahead]]
                hour = round(made.at_s / 3600)
                rows.writerow((made.key.queue, hour, ahead + 1, f"{actual:g}", *quantiles))


def _numbers(judged: Sequence[Judged]) -> dict[str, Any]:
    ways = _ways(judged)
    return {
        **{
            name: round(fmean(_mase(one, way(one)) for one in judged), 4)
            for name, way in ways.items()
        },
        **_pooled(judged),
        "origins": len(judged),
    }


def _pooled(judged: Sequence[Judged]) -> dict[str, float]:
    actual = np.stack([one.actual for one in judged])
    low, high = (np.stack([one.forecast.quantiles[end] for one in judged]) for end in (0, -1))
    middle = np.stack([one.forecast.median for one in judged])
    losses = [_pinball(one) for one in judged]
    return {
        "coverage_90": round(coverage(actual, low, high), 4),
        "wape_1h": round(wape(actual[:, 0], middle[:, 0]), 4),
        "wape": round(wape(actual, middle), 4),
        "pinball": round(fmean(losses), 4),
    }


def _ways(judged: Sequence[Judged]) -> Ways:
    """Ours, what to beat, and the single models where all origins have them."""
    names = set.intersection(*(set(one.forecast.members) for one in judged))
    return {
        "mase": lambda one: one.forecast.median,
        "mase_last": lambda one: np.full(len(one.actual), one.before[-1]),
        "mase_day_ago": _day_ago,
        **{f"mase_{name}": _member(name) for name in sorted(names)},
    }


def _member(name: str) -> Callable[[Judged], Floats]:
    return lambda one: one.forecast.members[name]


def _day_ago(one: Judged) -> Floats:
    return one.before[-DAY + np.arange(len(one.actual)) % DAY]


def _mase(one: Judged, forecast: Floats) -> float:
    return mase(one.actual, forecast, scale_of(one.before))


def _pinball(one: Judged) -> float:
    """Mean over the levels, in scales of the series."""
    quantiles = one.forecast.quantiles
    losses = [
        pinball(one.actual, each, level) for each, level in zip(quantiles, LEVELS, strict=True)
    ]
    return fmean(losses) / scale_of(one.before)


def _means(
    per_cluster: dict[str, dict[str, Any]], mean: Callable[[list[float]], float], *, suffix: str
) -> dict[str, float]:
    names = [
        name
        for name in next(iter(per_cluster.values()))
        if name.startswith("mase") and all(name in numbers for numbers in per_cluster.values())
    ]
    return {
        f"{name}{suffix}": round(mean([each[name] for each in per_cluster.values()]), 4)
        for name in names
    }
