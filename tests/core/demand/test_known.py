"""What running jobs, the backlog and bookings tell of the hours ahead."""

import numpy as np
import pytest

from atoll.core.engine.burst.demand.arrivals import coming
from atoll.core.engine.burst.demand.features import features_of
from atoll.core.engine.burst.demand.known import held, simulate
from atoll.core.engine.burst.demand.series import (
    STEP_S,
    Booked,
    Jobs,
    booked_ahead,
    no_jobs,
    scale_of,
)
from atoll.core.engine.burst.demand.survival import survival_of
from tests.core.demand.series import demand_of, ended, jobs_of

HOUR = 3600.0


def together(*parts: Jobs) -> Jobs:
    return Jobs(
        *(
            np.concatenate([getattr(part, column) for part in parts])
            for column in ("amount", "age_s", "ran_s", "over")
        )
    )


def test_jobs_that_have_run_long_stay_long() -> None:
    half = ended(np.r_[np.full(400, 600.0), np.full(400, 40 * HOUR)])
    survival = survival_of(half)
    fresh, old = survival.ahead(np.array([0, 0]), np.array([0.0, 2 * HOUR]), 24)[:, 5]
    assert fresh == pytest.approx(0.5, abs=0.05)
    assert old > 0.9


def test_what_still_runs_counts_as_far_as_it_got() -> None:
    rng = np.random.default_rng(1)
    run = rng.exponential(5 * HOUR, 4000)
    cut = rng.uniform(0, 10 * HOUR, 4000)
    jobs = Jobs(np.ones(4000), np.full(4000, 86400.0), np.minimum(run, cut), run <= cut)
    chance = survival_of(jobs).ahead(np.array([0]), np.array([0.0]), 8)[0]
    assert chance == pytest.approx(np.exp(-np.arange(1, 9) / 5), abs=0.04)


def test_large_jobs_have_a_curve_of_their_own_and_a_lone_one_leans_on_all() -> None:
    jobs = together(
        ended(np.full(500, 1 * HOUR)),
        ended(np.full(500, 30 * HOUR), amount=8.0),
        ended(np.full(1, 30 * HOUR), amount=2.0),
    )
    small, pair, large = survival_of(jobs).ahead(np.array([0, 1, 3]), np.zeros(3), 10)[:, 9]
    assert small < 0.1 < pair < 0.9 < large


def test_a_queue_without_jobs_has_curves() -> None:
    chance = survival_of(no_jobs()).ahead(np.array([0]), np.array([60.0]), 48)[0]
    assert (np.diff(chance) < 0).all()
    assert 0 < chance[-1] < chance[0] < 1


def test_a_waiting_job_is_held_like_one_that_begins_now() -> None:
    past = ended(np.full(500, 12 * HOUR))
    jobs = together(past, jobs_of((4.0, 300.0, 0.0, False)))
    mean = held(jobs, survival_of(past), 24).mean
    assert mean[:6] == pytest.approx(4.0, abs=0.5)
    assert mean[20] < 1.0


def test_simulated_demand_has_the_mean_and_the_spread_of_what_is_known() -> None:
    past = ended(np.random.default_rng(2).exponential(6 * HOUR, 3000))
    jobs = together(past, jobs_of(*[(2.0, HOUR, HOUR, False)] * 50))
    survival, demand = survival_of(jobs), demand_of([100.0], jobs)
    runs = simulate(demand, survival, 12, draw=np.random.default_rng(0))
    expected = held(jobs, survival, 12)
    assert runs.mean(axis=0) == pytest.approx(expected.mean, rel=0.06)
    assert runs.var(axis=0) == pytest.approx(expected.variance, rel=0.35)
    assert (np.diff(runs, axis=1) <= 0).all()


def test_what_comes_is_what_came_at_the_same_hours() -> None:
    hours = np.arange(14 * 24)
    busy = hours[(hours % 24) < 6]  # so many steps back, that is in the last quarter of the day
    jobs = Jobs(
        np.full(len(busy), 3.0),
        STEP_S * (busy.astype(np.float64) + 0.5),
        np.full(len(busy), 0.9 * STEP_S),
        np.ones(len(busy), bool),
    )
    demand, survival = demand_of(np.ones(15 * 24), jobs), survival_of(jobs)
    mean = simulate(demand, survival, 24, draw=np.random.default_rng(0)).mean(axis=0)
    expected = coming(jobs, survival, 14 * 24, days=0, horizon=24)
    assert mean[20:].mean() > 5 * mean[4:14].mean()
    assert expected[20:].mean() > 2 * expected[4:14].mean()


def test_bookings_are_known_steps() -> None:
    demand = demand_of([0.0], booked=(Booked(8.0, 2 * HOUR, 4 * HOUR), Booked(1.0, 0.0, HOUR)))
    assert booked_ahead(demand, 5).tolist() == [0.0, 8.0, 8.0, 0.0, 0.0]


@pytest.mark.parametrize("steps", [1, 2, 5, 23, 24, 25, 200])
def test_features_are_finite_from_the_first_step_on(steps: int) -> None:
    demand = demand_of(np.arange(steps, dtype=np.float64), jobs_of((2.0, 60.0, 60.0, False)))
    features = features_of(demand, survival_of(demand.jobs), 30)
    assert features.rows.shape[0] == 30
    assert np.isfinite(features.rows).all()
    assert features.devices(features.target(np.full(30, 7.0))) == pytest.approx(np.full(30, 7.0))


def test_the_scale_is_the_error_of_a_day_ago() -> None:
    assert scale_of(np.tile([0.0] * 12 + [10.0] * 12, 3)) == 0.25
    assert scale_of(np.r_[np.zeros(24), np.full(24, 6.0)]) == 6.0
    assert scale_of(np.zeros(1)) == 0.25
