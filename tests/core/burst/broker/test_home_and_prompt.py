"""Work that goes home to idle devices, and a price for being late that is learnt."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.core.engine.burst.broker.decide import decide
from atoll.core.engine.burst.broker.ground import Ground, Options, Use
from atoll.core.engine.burst.broker.home import home
from atoll.core.engine.burst.broker.memory import Memory, memory_from_json
from atoll.core.engine.burst.broker.prompt import LEAST, MOST, Prompt, followed
from atoll.core.model.burst import MICROS, EndCause, InstanceId
from atoll.core.model.ids import JobId
from tests.core.burst.broker.making import NOW, a_policy, a_want, an_instance, an_offer

LATE_S = 600.0
SHARE = 0.04


def at_work(uses: dict[int, Use], spare: int) -> Ground:
    rows = tuple(an_instance(number) for number in uses)
    numbered = {InstanceId(number): use for number, use in uses.items()}
    return Ground(NOW, instances=rows, uses=numbered, spare={"a100": spare})


def use(devices: int, left_h: float) -> Use:
    return Use(True, 1, devices=devices, left_s=left_h * 3600)


@pytest.mark.parametrize(
    ("uses", "spare", "gone"),
    [
        ({1: use(4, 3.0)}, 4, [1]),
        ({1: use(4, 3.0)}, 3, []),
        ({1: use(4, 0.9)}, 8, []),
        ({1: use(4, 3.0), 2: use(4, 9.0)}, 4, [2]),
        ({1: use(8, 9.0), 2: use(4, 3.0)}, 4, [2]),
        ({1: Use(True, 1, devices=4)}, 8, []),
    ],
    ids=["room", "no room", "soon over", "the longest", "what fits", "nobody knows"],
)
def test_the_dearest_rests_go_home_as_far_as_there_is_room(
    uses: dict[int, Use], spare: int, gone: list[int]
) -> None:
    drains = home(at_work(uses, spare))
    assert [each.instance for each in drains] == gone
    assert all(each.cause is EndCause.IDLE and each.stop_at == NOW for each in drains)


def test_nothing_goes_home_where_that_is_switched_off() -> None:
    ground = at_work({1: use(4, 9.0)}, 8)
    assert home(ground)
    assert not home(replace(ground, options=Options(home_s=0.0)))


@given(
    uses=st.lists(st.tuples(st.integers(1, 8), st.floats(0, 50)), max_size=8),
    spare=st.integers(0, 24),
)
def test_no_more_goes_home_than_there_is_room_for(
    uses: list[tuple[int, float]], spare: int
) -> None:
    ground = at_work({n + 1: use(*each) for n, each in enumerate(uses)}, spare)
    assert sum(ground.uses[each.instance].devices for each in home(ground)) <= spare


def after(prompt: Prompt, waiting: list[int], *, came: int, now: float) -> Prompt:
    wants = [a_want(job, submitted_at=now) for job in waiting]
    return followed(prompt, wants, came=came, now=now, late_s=LATE_S, share=SHARE)


def test_a_late_job_makes_being_late_dearer_once_and_one_in_time_cheaper() -> None:
    begun = after(Prompt(), [1], came=1, now=NOW)
    assert begun.log_price < Prompt().log_price
    late = after(begun, [1], came=0, now=NOW + LATE_S + 1)
    assert late.late == {JobId(1)}
    assert late.log_price > begun.log_price
    assert after(late, [1], came=0, now=NOW + LATE_S + 2).log_price == late.log_price
    assert not after(late, [], came=0, now=NOW + LATE_S + 3).late


def test_a_job_that_comes_back_after_a_stop_has_its_time_again() -> None:
    want = a_want(5, submitted_at=NOW - 9000)
    prompt = followed(Prompt(), [want], came=0, now=NOW, late_s=LATE_S, share=SHARE)
    assert prompt.since == {JobId(5): NOW}
    assert not prompt.late


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=30))
def test_the_price_stays_within_its_bounds(steps: list[tuple[int, int]]) -> None:
    prompt, now = Prompt(), NOW
    for waiting, came in steps:
        now += 400
        prompt = after(prompt, list(range(waiting)), came=came, now=now)
        assert np.log(LEAST) <= prompt.log_price <= np.log(MOST)


def test_cheap_jobs_are_rented_for_and_the_dearest_may_be_late() -> None:
    wants = [a_want(n, devices=1, work_s=1200.0, submitted_at=NOW) for n in range(1, 4)]
    wants.append(a_want(9, devices=8, work_s=400_000.0, submitted_at=NOW))
    offers = (an_offer(lead_s=200.0), an_offer("gpu1", devices=1, price=MICROS, lead_s=200.0))
    ground = Ground(
        NOW,
        tuple(wants),
        offers=offers,
        policies={None: a_policy(hour=0.01)},
        options=Options(late_s=LATE_S),
    )
    assert {job for rent in decide(ground).rents for job in rent.jobs} == {1, 2, 3}
    off = Ground(NOW, tuple(wants), offers=offers, policies={None: a_policy(hour=0.01)})
    assert not decide(off).rents


def test_what_is_learnt_is_kept() -> None:
    prompt = after(Prompt(), [3, 4], came=2, now=NOW)
    memory = Memory(prompt=prompt)
    assert memory_from_json(memory.to_json()).prompt == prompt
