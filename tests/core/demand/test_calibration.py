"""Bands that hold as often as they say, medians by weights, and drift."""

import json

import numpy as np
import pytest

from atoll.core.engine.burst.demand.calibration import (
    Band,
    Calibration,
    calibration_from_json,
    score_of,
)
from atoll.core.engine.burst.demand.combine import Weights, combined, weights_from_json
from atoll.core.engine.burst.demand.drift import Drift, after
from atoll.core.engine.burst.demand.forecast import LEVELS, spread
from atoll.core.engine.burst.demand.metrics import coverage, mase, pinball, wape
from atoll.core.engine.burst.demand.series import Floats, Key
from tests.core.demand.series import KEY

H = 24
DAY_S = 86400.0


def held_over(days: list[float], width: float, *, seed: int) -> tuple[Calibration, Floats]:
    """Normal demand with a deviation per day, under a band that is always as wide."""
    rng, calibration = np.random.default_rng(seed), Calibration()
    band, found = Band(np.full(H, 100 - width), np.full(H, 100 + width)), []
    for day, deviation in enumerate(days):
        fair = calibration.adjusted(KEY, band, 1.0, at_s=day * DAY_S)
        actual = rng.normal(100, deviation, H)
        held = coverage(actual, fair.low, fair.high)
        calibration.learn(KEY, score_of(actual, band, 1.0, at_s=day * DAY_S), held=held)
        found.append(held)
    return calibration, np.array(found)


@pytest.mark.parametrize("width", [0.5, 5.0, 60.0], ids=["narrow", "somewhat narrow", "wide"])
def test_a_wrong_band_comes_to_hold_nine_times_of_ten(width: float) -> None:
    held = np.concatenate([held_over([10.0] * 60, width, seed=seed)[1] for seed in range(4)])
    assert held.reshape(4, 60)[:, 20:].mean() == pytest.approx(0.9, abs=0.02)


def test_a_band_follows_demand_that_becomes_wilder() -> None:
    days = [5.0] * 40 + [25.0] * 60
    held = np.stack([held_over(days, 8.0, seed=seed)[1] for seed in range(4)])
    assert held[:, 40:45].mean() < 0.75
    assert held[:, -30:].mean() == pytest.approx(0.9, abs=0.035)


def test_a_new_series_leans_on_the_others() -> None:
    calibration, _ = held_over([10.0] * 30, 1.0, seed=0)
    fair = calibration.adjusted(
        Key("new", "H100"), Band(np.full(H, 49.0), np.full(H, 51.0)), 2.0, at_s=30 * DAY_S
    )
    assert (fair.low < 49 - 20).all()
    assert (fair.high > 51 + 20).all()


def test_a_band_without_scores_stays_and_is_never_below_zero() -> None:
    band = Band(np.full(H, -1.0), np.full(H, 2.0))
    fair = Calibration().adjusted(KEY, band, 1.0, at_s=0.0)
    assert (fair.low == 0).all()
    assert (fair.high == 2).all()


def test_calibration_survives_json() -> None:
    calibration, _ = held_over([10.0] * 25, 1.0, seed=3)
    again = calibration_from_json(json.loads(json.dumps(calibration.to_json())))
    band = Band(np.full(H, 90.0), np.full(H, 110.0))
    one, other = (each.adjusted(KEY, band, 1.0, at_s=0.0) for each in (calibration, again))
    assert (one.low == other.low).all()
    assert (one.high == other.high).all()


def test_equal_weights_are_the_median() -> None:
    rng = np.random.default_rng(0)
    for many in (1, 2, 3, 4, 5):
        table = rng.normal(size=(many, H))
        forecasts = {str(place): row for place, row in enumerate(table)}
        found = combined(forecasts, np.full(many, 1 / many))
        assert found == pytest.approx(np.median(table, axis=0))


def test_a_model_that_was_good_decides() -> None:
    weights = Weights()
    for day in range(30):
        for name, error in (("good", 0.2), ("bad", 1.5), ("worse", 1.6)):
            weights.learn(KEY, name, error, at_s=day * DAY_S)
    found = weights.of(KEY, ["bad", "good", "worse", "new"])
    assert found.sum() == pytest.approx(1.0)
    assert found[1] > 0.5
    forecasts = {name: np.full(H, value) for name, value in (("b", 9.0), ("g", 1.0), ("w", 8.0))}
    assert (combined(forecasts, weights.of(KEY, ["bad", "good", "worse"])) == 1.0).all()
    again = weights_from_json(json.loads(json.dumps(weights.to_json())))
    assert (again.of(KEY, ["bad", "good", "worse", "new"]) == found).all()


def test_drift_is_seen_when_errors_stay_large_and_not_before() -> None:
    rng, drift, cried = np.random.default_rng(0), Drift(), []
    for error in [*rng.exponential(0.8, 60), *(2.5 + rng.exponential(0.8, 12))]:
        drift = after(drift, float(error))
        cried.append(drift.seen)
    assert not any(cried[:60])
    assert any(cried[60:68])


def test_one_bad_day_is_no_drift() -> None:
    drift = Drift()
    for error in [0.5] * 20 + [1000.0] + [0.5] * 20:
        drift = after(drift, error)
        assert not drift.seen


def test_quantiles_rise_and_end_in_the_band() -> None:
    runs = np.random.default_rng(0).exponential(10, (500, H))
    runs[:, -1] = 4.0  # all runs agree
    band = Band(np.full(H, 3.0), np.full(H, 40.0))
    found = spread(np.full(H, 8.0), band, runs)
    assert found.shape == (len(LEVELS), H)
    assert (np.diff(found, axis=0) >= 0).all()
    assert (found[0] == 3.0).all()
    assert (found[3] == 8.0).all()
    assert (found[-1] == 40.0).all()
    # Skewed as the runs are: most of the way up comes late.
    assert found[4, 0] - 8.0 < (40.0 - 8.0) / 3


def test_a_median_outside_of_the_band_widens_it() -> None:
    found = spread(np.full(H, 50.0), Band(np.full(H, 3.0), np.full(H, 40.0)), np.zeros((9, H)))
    assert (found[-1] == 50.0).all()


def test_metrics() -> None:
    actual = np.array([1.0, 3.0, 0.0, 4.0])
    assert mase(actual, np.array([2.0, 3.0, 0.0, 1.0]), 2.0) == 0.5
    assert wape(actual, np.array([2.0, 3.0, 0.0, 1.0])) == 0.5
    assert wape(np.zeros(3), np.zeros(3)) == 0.0
    assert coverage(actual, np.array([1.0, 0, 1, 0]), np.array([2.0, 3, 5, 3])) == 0.5
    assert pinball(np.array([10.0]), np.array([0.0]), 0.9) == pytest.approx(9.0)
    assert pinball(np.array([0.0]), np.array([10.0]), 0.9) == pytest.approx(1.0)
