"""Many jobs as few rows say the same of demand as one by one."""

import numpy as np

from atoll.core.engine.burst.demand.compact import compacted
from atoll.core.engine.burst.demand.features import features_of
from atoll.core.engine.burst.demand.known import held, simulate
from atoll.core.engine.burst.demand.series import STEP_S, Demand, Jobs, Key
from atoll.core.engine.burst.demand.survival import survival_of

HORIZON = 12
STEPS = 48


def many(count: int) -> Jobs:
    """Half of them have ended, a quarter runs, a quarter waits."""
    draw = np.random.default_rng(0)
    age = draw.uniform(0, STEPS * STEP_S, count)
    over = np.arange(count) % 2 == 0
    waits = np.arange(count) % 4 == 1
    ran = np.where(waits, 0.0, age * draw.uniform(0.1, 1.0, count))
    return Jobs(draw.choice([1.0, 2.0, 8.0], count), age, ran, over)


def demand_of(jobs: Jobs) -> Demand:
    present = float(jobs.amount[jobs.running] @ jobs.counts[jobs.running])
    return Demand(Key("", "H100"), 1e6 * STEP_S, np.full(STEPS, present), jobs)


def test_few_jobs_stay_as_they_are() -> None:
    jobs = many(100)
    assert compacted(jobs) is jobs
    assert np.array_equal(jobs.counts, np.ones(100))


def test_many_are_few_rows_that_say_nearly_the_same() -> None:
    jobs = many(40_000)
    few = compacted(jobs, 1000)
    assert len(few.amount) < len(jobs.amount) / 3
    assert int(few.counts.sum()) == 40_000
    one, other = survival_of(jobs), survival_of(few)
    assert np.allclose(np.exp(one.log_left), np.exp(other.log_left), atol=0.02)
    assert np.allclose(held(jobs, one, HORIZON).mean, held(few, one, HORIZON).mean, rtol=0.02)
    near = features_of(demand_of(few), one, HORIZON).rows
    assert np.allclose(features_of(demand_of(jobs), one, HORIZON).rows, near, rtol=0.05, atol=0.5)


def test_their_futures_are_alike() -> None:
    jobs = many(8_000)
    few = compacted(jobs, 1000)
    survival = survival_of(jobs)
    told = [
        simulate(demand_of(each), survival, HORIZON, draw=np.random.default_rng(1))
        for each in (jobs, few)
    ]
    middle, spread = (np.stack([f(each, axis=0) for each in told]) for f in (np.mean, np.std))
    assert np.allclose(middle[0], middle[1], rtol=0.03)
    assert np.allclose(spread[0], spread[1], rtol=0.5)
    again = simulate(demand_of(few), survival, HORIZON, draw=np.random.default_rng(1))
    assert np.array_equal(told[1], again)
