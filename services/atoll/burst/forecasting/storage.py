"""A forecaster as bytes and back: arrays in numpy's archive, the rest as JSON in it; no pickle."""

import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from atoll.burst.forecasting.boosted import boosted_from
from atoll.burst.forecasting.forecaster import Forecaster
from atoll.burst.forecasting.memory import Backtest, Example, Memory
from atoll.core.engine.burst.demand.calibration import Band, calibration_from_json
from atoll.core.engine.burst.demand.combine import weights_from_json
from atoll.core.engine.burst.demand.drift import Drift
from atoll.core.engine.burst.demand.features import Features
from atoll.core.engine.burst.demand.forecast import Forecast
from atoll.core.engine.burst.demand.series import Floats, Key

VERSION = 1


def packed(forecaster: Forecaster) -> bytes:
    """Everything that it knows."""
    memory, file = forecaster.memory, io.BytesIO()
    arrays: dict[str, Any] = {
        "head": np.array(json.dumps(_head(forecaster))),
        **_columns("examples", memory.examples),
        **_columns("pending", memory.pending),
        "quantiles": _stacked([each.quantiles for each in memory.backtests]),
        "actuals": _stacked([each.actual for each in memory.backtests]),
    }
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def unpacked(kept: bytes, *, seed: int, horizon: int) -> Forecaster:
    """What packed() gave; ValueError for what another version wrote."""
    with np.load(io.BytesIO(kept), allow_pickle=False) as file:
        head = json.loads(str(file["head"]))
        if head["version"] != VERSION or head["horizon"] != horizon:
            raise ValueError(f"kept by version {head['version']}, horizon {head['horizon']}")
        memory = _memory(head)
        memory.examples = _examples(head["examples"], "examples", file)
        memory.pending = _examples(head["pending"], "pending", file)
        memory.backtests = [
            Backtest(Key(*key), at_s, quantiles, actual, scale)
            for (key, at_s, scale), quantiles, actual in zip(
                head["backtests"], file["quantiles"], file["actuals"], strict=True
            )
        ]
    found = Forecaster(seed, horizon=horizon, memory=memory)
    found.trees = boosted_from(head["trees"]) if head["trees"] else None
    return found


def _head(forecaster: Forecaster) -> dict[str, Any]:
    memory = forecaster.memory
    return {
        "version": VERSION,
        "horizon": forecaster.horizon,
        "trees": forecaster.trees.texts() if forecaster.trees else [],
        "calibration": memory.calibration.to_json(),
        "weights": memory.weights.to_json(),
        "drifts": [[key, asdict(drift)] for key, drift in memory.drifts.items()],
        "taught_at_s": list(memory.taught_at_s.items()),
        "fitted_at_s": memory.fitted_at_s,
        "examples": [_named(each) for each in memory.examples],
        "pending": [_named(each) for each in memory.pending],
        "backtests": [[each.key, each.at_s, each.scale] for each in memory.backtests],
        "open": [_forecast_json(each) for each in memory.open],
    }


def _memory(head: dict[str, Any]) -> Memory:
    return Memory(
        calibration=calibration_from_json(head["calibration"]),
        weights=weights_from_json(head["weights"]),
        drifts={Key(*key): Drift(**drift) for key, drift in head["drifts"]},
        taught_at_s={Key(*key): at_s for key, at_s in head["taught_at_s"]},
        fitted_at_s=head["fitted_at_s"],
        open=[_forecast(each) for each in head["open"]],
    )


def _named(example: Example) -> list[Any]:
    features = example.features
    return [example.key, example.at_s, features.last, features.scale]


def _columns(name: str, examples: Sequence[Example]) -> dict[str, Floats]:
    targets = [each.target for each in examples if each.target is not None]
    return {
        f"{name}_rows": _stacked([each.features.rows for each in examples]),
        f"{name}_booked": _stacked([each.booked for each in examples]),
        f"{name}_targets": _stacked(targets),
    }


def _stacked(arrays: Sequence[Floats]) -> Floats:
    return np.stack(arrays) if arrays else np.zeros(0)


def _examples(named: Sequence[Sequence[Any]], name: str, file: Any) -> list[Example]:
    rows, booked, targets = (file[f"{name}_{part}"] for part in ("rows", "booked", "targets"))
    return [
        Example(
            Key(*key),
            at_s,
            Features(rows[place], last, scale),
            booked[place],
            targets[place] if len(targets) else None,
        )
        for place, (key, at_s, last, scale) in enumerate(named)
    ]


def _forecast_json(forecast: Forecast) -> dict[str, Any]:
    return {
        "key": forecast.key,
        "at_s": forecast.at_s,
        "quantiles": forecast.quantiles.tolist(),
        "booked": forecast.booked.tolist(),
        "known": forecast.known.tolist(),
        "scale": forecast.scale,
        "band": [forecast.band.low.tolist(), forecast.band.high.tolist()],
        "members": {name: each.tolist() for name, each in forecast.members.items()},
    }


def _forecast(kept: dict[str, Any]) -> Forecast:
    return Forecast(
        key=Key(*kept["key"]),
        at_s=kept["at_s"],
        quantiles=np.array(kept["quantiles"]),
        booked=np.array(kept["booked"]),
        known=np.array(kept["known"]),
        scale=kept["scale"],
        band=Band(*(np.array(each) for each in kept["band"])),
        members={name: np.array(each) for name, each in kept["members"].items()},
    )
