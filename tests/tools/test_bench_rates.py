from dataclasses import replace

import pytest

from tests.tools.test_bench_numbers import GOOD
from tools.bench_numbers import Job, Measured
from tools.bench_rates import BELOW, FIRST, LOWER, STEP, TRIES, Search


def shown(rate: float, *, most: float) -> Measured:
    """What a machine shows in a second that can do `most` jobs in it."""
    done = round(min(rate, most))
    jobs = [Job(n / done, n / done + 0.01, n / done + 1.5, succeeded=True) for n in range(done)]
    return replace(GOOD, rate=rate, seconds=1.0, took_s=1.0, jobs=jobs)


def searched(most: float, *, lasting: float, limit: float = 3_000) -> tuple[Search, list[float]]:
    """Short windows can do `most`, long ones `lasting`; the rates of the long ones."""
    search = Search(limit)
    while rate := search.probe():
        search.probed(shown(rate, most=most))
    tried = []
    while rate := search.sustain():
        tried.append(rate)
        search.sustained(shown(rate, most=lasting))
    return search, tried


def test_rates_rise_until_one_is_not_held() -> None:
    search, tried = Search(3_000), []
    while rate := search.probe():
        tried.append(rate)
        search.probed(shown(rate, most=1_200))
    assert tried == [FIRST, FIRST + STEP, FIRST + 2 * STEP]


def test_the_long_window_is_tried_below_what_was_done_at_best_under_whatever_load() -> None:
    search, tried = searched(1_350, lasting=1_350)
    assert tried == [pytest.approx(1_350 * BELOW, rel=0.01)]
    assert search.best.jobs_per_s == pytest.approx(1_350 * BELOW, rel=0.01)


def test_a_rate_that_does_not_last_is_followed_by_a_lower_one() -> None:
    search, tried = searched(1_350, lasting=1_100)
    assert len(tried) == 2
    assert tried[1] == pytest.approx(tried[0] * LOWER)
    assert search.best.rate == tried[1]


def test_only_so_many_long_windows_are_tried_and_then_the_best_short_one_counts() -> None:
    search, tried = searched(1_350, lasting=100)
    assert len(tried) == TRIES
    assert search.best.rate == FIRST + STEP


def test_a_machine_that_holds_nothing_is_told_of_all_the_same() -> None:
    search, tried = searched(100, lasting=10)
    assert len(tried) == TRIES
    assert search.best.why_not_held()
    assert search.best.jobs_per_s == pytest.approx(10)


def test_nothing_above_the_limit_is_tried() -> None:
    search, tried = searched(5_000, lasting=5_000, limit=500)
    assert tried == [pytest.approx(500 * BELOW)]
    assert search.best.rate <= 500


def test_without_any_window_there_is_nothing_to_say() -> None:
    with pytest.raises(RuntimeError):
        _ = Search(3_000).best
