"""When a job would start here, by what was foreseen and by how long that is ago."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.core.engine.burst.broker.ground import Options
from atoll.core.engine.burst.broker.starts import late_chance, start_of, waits
from atoll.core.model.burst_wants import Want
from tests.core.burst.broker.making import NOW, a_want

OPTIONS = Options()
HOUR = 3600.0


def after(want: Want, late_s: float, ready_s: float = 0.0) -> tuple[float, float]:
    """Chance of a start later than that, and the wait beyond `ready_s`; the list is so old."""
    start = start_of(want, now=NOW + late_s, options=OPTIONS)
    return late_chance(start, HOUR), float(waits([start], np.array([ready_s]))[0, 0])


def test_quantiles_are_what_was_foreseen() -> None:
    start = start_of(a_want(), now=NOW, options=OPTIONS)
    assert (start.p50_s, start.p90_s) == (3 * HOUR, 5 * HOUR)
    assert late_chance(start, 3 * HOUR) == pytest.approx(0.5)
    assert late_chance(start, 5 * HOUR) == pytest.approx(0.1)
    assert late_chance(start, 0.0) == 1.0


def test_a_wait_that_was_to_be_over_is_expected_to_last_as_long_again() -> None:
    soon = a_want(p50_h=0.01)
    assert start_of(soon, now=NOW + 90, options=OPTIONS).p50_s == 90
    long = a_want(p50_h=1)
    assert start_of(long, now=NOW + 2 * HOUR, options=OPTIONS).p50_s == 2 * HOUR


def test_a_wait_that_nobody_can_tell_is_an_hour_at_least() -> None:
    unknown = replace(a_want(), local_p50_at=0.0, local_p90_at=0.0)
    assert start_of(unknown, now=NOW, options=OPTIONS).p50_s == HOUR
    assert start_of(unknown, now=NOW + 5 * HOUR, options=OPTIONS).p50_s == 5 * HOUR + 600


@given(st.floats(0.001, 50), st.floats(1, 5), st.floats(0, 1e5), st.floats(0, 1e5))
def test_chances_and_waits_make_sense(
    p50_h: float, spread: float, late_s: float, ready_s: float
) -> None:
    want = a_want(p50_h=p50_h, local_p90_at=NOW + p50_h * HOUR * spread)
    chance, wait = after(want, late_s, ready_s)
    assert 0 <= chance <= 1
    assert 0 <= wait <= after(want, late_s)[1] + 1e-6
    assert np.isfinite(wait)


@given(st.floats(0.5, 50), st.floats(1.2, 5))
def test_what_has_not_come_by_now_is_more_likely_late(p50_h: float, spread: float) -> None:
    want = a_want(p50_h=p50_h, local_p90_at=NOW + p50_h * HOUR * spread)
    limit_s = 2 * p50_h * HOUR
    fresh = late_chance(start_of(want, now=NOW, options=OPTIONS), limit_s)
    old = start_of(want, now=NOW + p50_h * HOUR / 2, options=OPTIONS)
    assert late_chance(old, limit_s - p50_h * HOUR / 2) >= fresh - 1e-9
