"""The forecaster of demand from its first hour on."""

import numpy as np
import pytest

from atoll.burst.forecasting import registry
from atoll.burst.forecasting.forecaster import Forecaster, Lesson
from atoll.burst.forecasting.memory import Backtest
from atoll.burst.forecasting.models.statistical import is_thin
from atoll.burst.forecasting.storage import packed, unpacked
from atoll.core.engine.burst.demand.drift import Drift
from atoll.core.engine.burst.demand.series import (
    DAY,
    STEP_S,
    Booked,
    Demand,
    Floats,
    Jobs,
    Key,
)

H = 6
KEYS = (Key("research", "H100"), Key("serving", "L4"))


def busy_by_day(seed: int, days: int) -> Floats:
    rng = np.random.default_rng(seed)
    hours = np.arange(days * DAY, dtype=np.float64)
    wave = 20 + 15 * np.sin(hours * np.pi / 12) + rng.normal(0, 3, len(hours))
    return np.asarray(np.round(np.maximum(wave, 0.0)), dtype=np.float64)


def told(key: Key, values: Floats, steps: int, booked: tuple[Booked, ...] = ()) -> Demand:
    """The first steps of a series, as of jobs of one device that run for some hours."""
    now, rng = int(values[steps - 1]), np.random.default_rng(steps)
    past = rng.exponential(5 * STEP_S, 200)
    age = np.r_[np.linspace(0.5, 20, now) * STEP_S, np.full(200, 30 * STEP_S)]
    ran = np.r_[age[:now], np.minimum(past, 30 * STEP_S)]
    jobs = Jobs(np.ones(len(age)), age, ran, np.arange(len(age)) >= now)
    return Demand(key, steps * STEP_S, values[:steps], jobs, booked)


def taught(days: int, *, judged: bool = False) -> tuple[Forecaster, list[Demand]]:
    """Two series, observed every six hours; `judged`: forecast every day too."""
    forecaster, demands = Forecaster(7, horizon=H), []
    values = [busy_by_day(seed, days) for seed in range(len(KEYS))]
    for steps in range(6, days * DAY + 1, 6):
        demands = [told(key, each, steps) for key, each in zip(KEYS, values, strict=True)]
        forecaster.observe(demands)
        if steps % DAY == 0 and judged:
            forecaster.keep(forecaster.forecast(each) for each in demands)
    return forecaster, demands


@pytest.fixture(scope="module")
def fitted() -> tuple[Forecaster, list[Demand]]:
    forecaster, demands = taught(16)
    lesson = forecaster.lesson(demands[0].at_s)
    forecaster.use(lesson.fit(), lesson)
    return forecaster, demands


@pytest.fixture
def no_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("boosted", "models.statistical"):
        monkeypatch.setattr(f"atoll.burst.forecasting.{name}.library", lambda _: None)


@pytest.mark.parametrize("steps", [1, 2, 3, 24, 30])
def test_there_is_a_forecast_from_the_first_hour_on(steps: int) -> None:
    found = Forecaster(horizon=30).forecast(told(KEYS[0], busy_by_day(0, 2), steps))
    assert found.quantiles.shape == (7, 30)
    assert np.isfinite(found.quantiles).all()
    assert (np.diff(found.quantiles, axis=0) >= 0).all()
    assert (found.quantiles >= 0).all()


def test_an_empty_queue_is_forecast_to_want_nothing() -> None:
    found = Forecaster(horizon=H).forecast(told(KEYS[0], np.zeros(400), 400))
    assert (found.quantiles == 0).all()


def test_a_short_history_is_carried_on_by_the_day() -> None:
    values = busy_by_day(1, 3)
    names = registry.carried_on(told(KEYS[0], values, 30), 30)
    assert set(names) == {"last", "seasonal"}
    assert (names["seasonal"][:24] == values[6:30]).all()
    assert (names["seasonal"][24:] == values[6:12]).all()


def test_a_thin_queue_takes_croston_and_others_do_not() -> None:
    values = np.zeros(300)
    values[::40] = 8.0
    thin = told(KEYS[0], values, 300)
    assert is_thin(thin)
    names = registry.carried_on(thin, H)
    assert set(names) == {"last", "croston"}
    assert 0 < names["croston"][0] < 1.0
    assert set(registry.carried_on(told(KEYS[0], busy_by_day(1, 10), 240), H)) == {
        "last",
        "theta",
        "ets",
    }


def test_a_constant_queue_stays_constant() -> None:
    found = registry.carried_on(told(KEYS[0], np.full(200, 5.0), 200), H)
    assert {float(value) for each in found.values() for value in each} == {5.0}


def test_bookings_come_on_top_and_do_not_teach() -> None:
    plain, values = Forecaster(horizon=H), busy_by_day(3, 2)
    booked = (Booked(64.0, 2 * STEP_S, 4 * STEP_S),)
    one = plain.forecast(told(KEYS[0], values, 20))
    other = plain.forecast(told(KEYS[0], values, 20, booked))
    assert (other.quantiles - one.quantiles).round(6).tolist() == [[0, 64, 64, 0, 0, 0]] * 7
    assert (other.band.high == one.band.high).all()


def test_learnt_forecasts_beat_as_it_is_now(fitted: tuple[Forecaster, list[Demand]]) -> None:
    forecaster, demands = fitted
    later = busy_by_day(0, 17)[16 * DAY : 16 * DAY + H]
    found = forecaster.forecast(demands[0])
    assert set(found.members) == {"known", "series", "boosted"}
    learnt = found.members["boosted"]
    assert np.abs(learnt - later).mean() < np.abs(demands[0].last - later).mean()


def test_the_same_seed_gives_the_same_forecast(fitted: tuple[Forecaster, list[Demand]]) -> None:
    forecaster, demands = fitted
    found = [forecaster.forecast(each).quantiles for each in demands]
    again = [forecaster.forecast(each).quantiles for each in reversed(demands)][::-1]
    assert all((one == other).all() for one, other in zip(found, again, strict=True))
    one, other = (Forecaster(seed, horizon=H).forecast(demands[0]) for seed in (7, 8))
    assert (one.quantiles != other.quantiles).any()


def test_a_forecaster_survives_as_bytes(fitted: tuple[Forecaster, list[Demand]]) -> None:
    forecaster, demands = fitted
    forecaster.keep([forecaster.forecast(demands[0])])
    again = unpacked(packed(forecaster), seed=7, horizon=H)
    assert len(again.memory.examples) == len(forecaster.memory.examples)
    assert len(again.memory.pending) == len(forecaster.memory.pending)
    assert len(again.memory.open) == 1
    for demand in demands:
        one, other = forecaster.forecast(demand), again.forecast(demand)
        assert (one.quantiles == other.quantiles).all()
    with pytest.raises(ValueError, match="horizon"):
        unpacked(packed(forecaster), seed=7, horizon=H + 1)


@pytest.mark.usefixtures("no_libraries")
def test_without_libraries_it_forecasts_by_what_is_known() -> None:
    forecaster, demands = taught(9, judged=True)
    assert not forecaster.is_due(demands[0].at_s)
    assert set(forecaster.forecast(demands[0]).members) == {"known", "series"}
    assert set(registry.carried_on(demands[0], H)) == {"last"}


@pytest.mark.usefixtures("no_libraries")
def test_forecasts_are_judged_when_it_is_known_what_came() -> None:
    forecaster, _ = taught(9, judged=True)
    memory = forecaster.memory
    assert len(memory.backtests) == 2 * 8
    assert [each.at_s for each in memory.open] == [9 * DAY * STEP_S] * 2
    values = busy_by_day(0, 9)
    mine = [each for each in memory.backtests if each.key == KEYS[0]]
    assert all((each.actual == actual_at(values, each)).all() for each in mine)
    assert set(memory.calibration.scores) == set(KEYS)
    assert {name for _, name in memory.weights.losses} == {"known", "series"}


def test_examples_are_of_what_was_known_and_of_what_came() -> None:
    forecaster, _ = taught(6)
    values = busy_by_day(1, 6)
    mine = [each for each in forecaster.memory.examples if each.key == KEYS[1]]
    assert len(mine) == 12  # every six hours, from the third day on, the last is still open
    for example in mine:
        step = round(example.at_s / STEP_S)
        assert example.features.last == values[step - 1]
        assert example.target is not None
        came = example.features.devices(example.target)
        assert came == pytest.approx(values[step : step + H])


def test_a_drift_makes_a_fit_due_earlier() -> None:
    forecaster, demands = taught(10)
    at_s = demands[0].at_s
    assert forecaster.is_due(at_s)
    forecaster.memory.fitted_at_s = at_s
    assert not forecaster.is_due(at_s + 8 * STEP_S)
    assert forecaster.is_due(at_s + 24 * STEP_S)
    forecaster.memory.drifts[KEYS[0]] = Drift(errors=9, total=50.0)
    assert not forecaster.is_due(at_s + 3 * STEP_S)
    assert forecaster.is_due(at_s + 8 * STEP_S)


def test_a_lesson_is_a_copy_of_the_moment() -> None:
    forecaster, demands = taught(6)
    lesson = forecaster.lesson(demands[0].at_s)
    assert isinstance(lesson, Lesson)
    assert len(lesson.rows) == len(lesson.targets) == H * len(forecaster.memory.examples)


def actual_at(values: Floats, backtest: Backtest) -> Floats:
    step = round(backtest.at_s / STEP_S)
    return values[step : step + H]
