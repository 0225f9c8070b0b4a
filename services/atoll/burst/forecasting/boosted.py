"""LightGBM's quantiles of demand, learnt from all series together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from atoll.burst.forecasting.model import library
from atoll.core.engine.burst.demand.features import Features
from atoll.core.engine.burst.demand.series import Floats

ANCHORS: Final = (0.05, 0.5, 0.95)
ROUNDS: Final = 100
LIBRARY: Final = "lightgbm"
MOST_IN_LEAF: Final = 200
LEAVES: Final = 20
"""A leaf has at least this part of all rows, or MOST_IN_LEAF of them."""
SETTINGS: Final[dict[str, Any]] = {
    "objective": "quantile",
    "learning_rate": 0.05,
    "num_leaves": 15,
    "feature_fraction": 0.5,
    "bagging_fraction": 0.5,
    "bagging_freq": 1,
    "lambda_l2": 5.0,
    "verbose": -1,
    "deterministic": True,
    "force_row_wise": True,
    # A refit is to leave the other cores alone.
    "num_threads": 1,
}


@dataclass(frozen=True, slots=True)
class Boosted:
    """Trees, one set for each of ANCHORS."""

    trees: tuple[Any, ...]

    def quantiles(self, features: Features) -> Floats:
        """(ANCHORS, H) devices, rising."""
        found = [features.devices(np.asarray(each.predict(features.rows))) for each in self.trees]
        return np.sort(np.stack(found), axis=0)

    def texts(self) -> list[str]:
        """All of it, to be kept."""
        return [str(each.model_to_string()) for each in self.trees]


def is_available() -> bool:
    """The library is there."""
    return library(LIBRARY) is not None


def fit(rows: Floats, targets: Floats, *, seed: int) -> Boosted:
    """Of (R, F) rows and (R) targets; takes some seconds, so it is not for the loop."""
    lightgbm = library(LIBRARY)
    data = lightgbm.Dataset(rows, targets, free_raw_data=False)
    leaf = min(MOST_IN_LEAF, max(1, len(rows) // LEAVES))
    settings = {**SETTINGS, "min_data_in_leaf": leaf, "seed": seed}
    return Boosted(
        tuple(lightgbm.train({**settings, "alpha": level}, data, ROUNDS) for level in ANCHORS)
    )


def boosted_from(texts: Sequence[str]) -> Boosted:
    """What texts() gave."""
    lightgbm = library(LIBRARY)
    return Boosted(tuple(lightgbm.Booster(model_str=text) for text in texts))
