"""What is learnt of past runs: run times, backlogs, and how far forecasts hold."""

import math

import numpy as np
import pytest

from atoll.core.engine.timeline.eta_kernels import (
    LEVELS,
    drain,
    new_calibration,
    note_start,
    quantile,
)
from atoll.core.engine.timeline.profile_kernels import Steps, of_ends
from atoll.core.policies.time_order import URGENCY, doublings
from atoll.core.state.backlog_kernels import empty_backlog, fade, note_run
from atoll.core.state.history_kernels import TRUST, Alive, empty_history, expect, note

NOBODY = Alive(np.zeros(4), np.zeros(4), np.zeros(4, np.int64))
HOUR = 3600.0


def test_of_an_unknown_owner_the_request_is_all_that_is_known() -> None:
    assert expect(empty_history(1, 8), NOBODY, 0, 0, 600.0, 4, TRUST) == (1 / 600, 600.0)


def test_runs_that_are_alike_count_most_and_none_beyond_the_request() -> None:
    history = empty_history(2, 64)
    for _ in range(20):
        note(history, 0, 5000.0, 7200.0, 64)
    before = expect(history, NOBODY, 0, 0, 600.0, 4, TRUST)
    assert before[1] <= 600.0
    for _ in range(20):
        note(history, 0, 20.0, 600.0, 4)
    hurry, length = expect(history, NOBODY, 0, 0, 600.0, 4, TRUST)
    assert 10 < length < before[1] / 2
    assert hurry > before[0]


def test_a_run_that_lasts_makes_its_like_longer() -> None:
    history = empty_history(1, 8)
    trust = TRUST._replace(living=1.0)
    note(history, 0, 20.0, 7200.0, 4)
    alive = Alive(np.array([3000.0]), np.array([7200.0]), np.array([4]))
    calm = expect(history, alive, 0, 0, 7200.0, 4, trust)
    assert expect(history, alive, 1, 0, 7200.0, 4, trust)[1] > calm[1]


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_the_shorter_and_the_smaller_are_more_urgent(factor: float) -> None:
    one = doublings(URGENCY, (1 / 100, 100.0), 8)
    more = doublings(URGENCY, (1 / (100 * factor), 100.0 * factor), int(8 * factor))
    assert (more > one) == (factor < 1)


def test_the_largest_backlog_is_what_the_work_really_took() -> None:
    backlog, forever = empty_backlog(), 1e15
    # Three jobs of the whole pool, submitted at once, four hours each.
    for turn in range(3):
        start = turn * 4 * HOUR
        note_run(backlog, 0.0, start, start + 4 * HOUR, 1.0, forever)
    assert fade(backlog, 12 * HOUR, forever) == pytest.approx(12 * HOUR)
    # Half the pool, submitted when all that was over.
    note_run(backlog, 13 * HOUR, 13 * HOUR, 20 * HOUR, 0.5, forever)
    assert fade(backlog, 20 * HOUR, forever) == pytest.approx(12 * HOUR)


def test_the_largest_backlog_is_forgotten_by_halves() -> None:
    backlog = empty_backlog()
    note_run(backlog, 0.0, 0.0, 8 * HOUR, 1.0, 24 * HOUR)
    assert fade(backlog, 32 * HOUR, 24 * HOUR) == pytest.approx(4 * HOUR)


def test_what_is_ahead_drains_before_a_job_has_its_turn() -> None:
    steps = Steps(np.zeros(4), np.zeros(4, np.int64), np.zeros(1, np.int64))
    of_ends(steps, 0, np.array([10.0, 20.0]), np.array([2, 6], np.int64), 0.0)
    assert drain(steps, 0.0, 2) == 10.0
    assert drain(steps, 20.0, 2) == 20.0
    assert drain(steps, 20.0, 3) == 20.0
    assert drain(steps, 36.0, 1) == 22.0
    assert math.isinf(drain(steps, 0.0, 9))


@pytest.mark.parametrize("sigma", [0.3, 1.5])
@pytest.mark.parametrize("bias", [0.3, 4.0])
def test_quantiles_become_right_whatever_the_points_are_worth(sigma: float, bias: float) -> None:
    rng = np.random.default_rng(7)
    calibration, covered = new_calibration(), np.zeros(len(LEVELS))
    count = 4000
    for _ in range(count):
        point = float(rng.uniform(60, 50_000))
        given = np.array([quantile(calibration, point, level) for level in range(len(LEVELS))])
        actual = point * bias * float(rng.lognormal(0.0, sigma))
        covered += actual <= given
        note_start(calibration, point, given, actual)
    assert covered[0] / count == pytest.approx(0.5, abs=0.05)
    assert covered[1] / count == pytest.approx(0.9, abs=0.03)
