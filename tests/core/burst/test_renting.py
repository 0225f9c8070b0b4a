"""Whether to rent for a job, how much in all, and for how long to keep what is idle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.core.engine.burst.amount import amount_to_hold, mean_cost
from atoll.core.engine.burst.keep_alive import cost_of, keep_alive
from atoll.core.engine.burst.rent import averted, is_hopeless, spared
from atoll.core.model.errors import InvalidInput

demands = st.lists(st.integers(-5, 30), min_size=1, max_size=20)
prices = st.floats(0.1, 100)
idles = st.lists(st.floats(1, 20_000), max_size=20)


@given(demands, prices, prices)
def test_no_other_amount_is_cheaper(excess: list[int], underage: float, overage: float) -> None:
    best = amount_to_hold(excess, underage=underage, overage=overage).best
    costs = [mean_cost(excess, n, underage=underage, overage=overage) for n in range(32)]
    assert costs[best] == pytest.approx(min(costs))


@given(demands, prices, prices, st.integers(0, 40), st.floats(0, 0.5))
def test_what_is_held_moves_to_the_band_and_rests_there(
    excess: list[int], underage: float, overage: float, held: int, band: float
) -> None:
    def again(now: int) -> int:
        asked = amount_to_hold(excess, underage=underage, overage=overage, held=now, band=band)
        assert asked.low <= asked.best <= asked.high
        assert asked.low <= asked.hold <= asked.high
        return asked.hold

    moved = again(held)
    assert again(moved) == moved


@given(demands, prices, prices)
def test_what_is_missed_more_is_held_more(excess: list[int], low: float, more: float) -> None:
    less = amount_to_hold(excess, underage=low, overage=1.0, band=0.0)
    greater = amount_to_hold(excess, underage=low + more, overage=1.0, band=0.0)
    assert greater.best >= less.best


def test_a_forecast_that_wavers_changes_nothing() -> None:
    held, changes = 0, 0
    for shift in (0, 1, 0, 1, 0, 1):
        asked = amount_to_hold(
            [n + shift for n in range(20)], underage=3.0, overage=1.0, held=held, band=0.1
        )
        changes += asked.hold != held
        held = asked.hold
    assert changes == 1


@pytest.mark.parametrize("wrong", [{"underage": -1.0}, {"overage": 0.0}, {"band": 1.0}], ids=str)
def test_amounts_without_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        amount_to_hold([1], held=0, **{"underage": 1.0, "overage": 1.0, "band": 0.1} | wrong)
    with pytest.raises(InvalidInput):
        amount_to_hold([], underage=1.0, overage=1.0)


@given(idles, prices, prices, st.floats(2, 10), st.floats(0, 1e6))
def test_keeping_never_costs_more_than_the_stated_ratio(
    idle_s: list[float], boot: float, per_h: float, worst: float, any_s: float
) -> None:
    kept = keep_alive(idle_s, boot_cost=boot, idle_per_h=per_h, worst_ratio=worst)
    assert kept.ratio <= worst + 1e-9
    for each in (any_s, kept.seconds, kept.seconds * (1 + 1e-9)):
        cost = cost_of(each, kept.seconds, boot_cost=boot, idle_per_h=per_h)
        assert cost <= kept.ratio * min(each / 3600 * per_h, boot) * (1 + 1e-6)


@given(idles, prices, prices, st.floats(2, 10))
def test_what_is_known_makes_it_no_dearer(
    idle_s: list[float], boot: float, per_h: float, worst: float
) -> None:
    blind = keep_alive(idle_s, boot_cost=boot, idle_per_h=per_h, worst_ratio=2.0)
    kept = keep_alive(idle_s, boot_cost=boot, idle_per_h=per_h, worst_ratio=worst)
    assert kept.mean_cost <= blind.mean_cost * (1 + 1e-9)


def test_short_idle_times_are_bridged_and_long_ones_cut_short() -> None:
    def seconds(*idle_s: float) -> float:
        return keep_alive(idle_s, boot_cost=1.0, idle_per_h=6.0, worst_ratio=3.0).seconds

    assert seconds() == 600.0
    assert seconds(*[900.0] * 9) == 300.0  # it would cost 1.5 to bridge them
    assert seconds(*[500.0] * 9, 10_000.0) == 500.0
    assert seconds(*[10_000.0] * 9) == 300.0


@pytest.mark.parametrize(
    "wrong", [{"boot_cost": -1.0}, {"idle_per_h": 0.0}, {"worst_ratio": 1.5}], ids=str
)
def test_limits_without_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        keep_alive([], **{"boot_cost": 1.0, "idle_per_h": 1.0} | wrong)


def test_what_is_averted_is_the_risk_times_the_penalty_and_nothing_when_it_is_too_late() -> None:
    saved = averted(
        np.array([0.5, 1.0, 0.0]),
        np.array([12.0, 8.0, 9.0]),
        ready_s=np.array([[300.0, 601.0]] * 3),
        latest_s=np.array([600.0, 600.0, np.inf]),
    )
    assert saved.tolist() == [[6.0, 0.0], [8.0, 0.0], [0.0, 0.0]]


def test_who_can_be_in_time_nowhere_is_in_a_hurry_all_the_same() -> None:
    ready_s = np.array([[300.0, 601.0], [601.0, 700.0]])
    assert is_hopeless(ready_s=ready_s, latest_s=np.array([600.0, 600.0])).tolist() == [False, True]
    assert spared(np.array([10.0]), np.array([[1800.0, -360.0]])).tolist() == [[5.0, -1.0]]
