"""What the broker rents for jobs: golden cases."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from atoll.core.engine.burst.broker.decide import decide
from atoll.core.engine.burst.broker.ground import Deeds, Options, Setback
from atoll.core.model.burst import MICROS, InstanceId, InstanceState, Market
from atoll.core.model.ids import JobId, QueueName
from tests.core.burst.broker.making import (
    BUSY,
    IDLE,
    NOW,
    RESEARCH,
    a_ground,
    a_policy,
    a_want,
    an_ask,
    an_instance,
    an_offer,
    room,
)

SPOT = an_offer(market=Market.SPOT, price=3 * MICROS)
SMALL = an_offer("gpu1", devices=1, price=MICROS, cpu_milli=8_000, memory_bytes=64 << 30)


def jobs(deeds: Deeds) -> list[tuple[int, ...]]:
    return [tuple(map(int, rent.jobs)) for rent in deeds.rents]


def reason(deeds: Deeds, job: int = 17) -> str:
    (found,) = (each.why for each in deeds.decisions if each.job == job)
    return found


def test_a_job_that_would_wait_for_long_gets_an_instance_and_is_told_why() -> None:
    deeds = decide(a_ground(a_want()))
    (rent,) = deeds.rents
    assert (rent.jobs, rent.queue) == ((JobId(17),), RESEARCH)
    assert rent.why == (
        "rented on demand gpu8 in east-a at $8.00/h for job 17: local start 3 h (p90 5 h) "
        "against 6 min, delay worth $75.34, cost $9.47"
    )
    (decision,) = deeds.decisions
    assert (decision.action, decision.why, decision.job) == ("rent", rent.why, JobId(17))
    assert dict(decision.terms)["cost"] == pytest.approx(rent.ahead / MICROS)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        pytest.param(
            {"p50_h": 0.2},
            "nothing rented for job 17: local start 12 min (p90 20 min), the best would be on "
            "demand gpu8 in east-a at $8.00/h: worth $2.79, cost $9.47",
            id="the local start is soon",
        ),
        pytest.param(
            {"devices": 16},
            "nothing rented for job 17: nobody offers now what holds it whole",
            id="no machine is large enough",
        ),
        pytest.param(
            {"asks": ()},
            "nothing rented for job 17: nobody offers now what holds it whole",
            id="it is no job for one machine",
        ),
        pytest.param(
            {"max_cost": 5 * MICROS},
            "nothing rented for job 17: all that could hold it costs more than its own limit",
            id="it may not cost so much",
        ),
    ],
)
def test_nothing_is_rented_without_need_and_it_is_said_once(
    given: dict[str, Any], why: str
) -> None:
    ground = a_ground(a_want(**given))
    first = decide(ground)
    assert (first.rents, reason(first)) == ((), why)
    again = decide(replace(ground, memory=first.memory, now=NOW + 1))
    assert (again.rents, again.decisions) == ((), ())


def test_a_job_that_nobody_can_tell_about_counts_as_one_that_waits_as_long_again() -> None:
    unknown: dict[str, Any] = {"local_p50_at": 0.0, "local_p90_at": 0.0}
    assert jobs(decide(a_ground(a_want(**unknown)))) == [(17,)]
    cheap = {None: a_policy(hour=0.2)}
    assert jobs(decide(a_ground(a_want(**unknown), policies=cheap))) == []
    patient = a_want(**unknown, submitted_at=NOW - 24 * 3600)
    assert jobs(decide(a_ground(patient, policies=cheap))) == [(17,)]


def test_small_jobs_share_an_instance_that_none_is_worth_alone() -> None:
    small = [a_want(n, devices=1) for n in range(1, 11)]
    ground = a_ground(*small, policies={None: a_policy(hour=1.5)})
    assert jobs(decide(a_ground(small[0], policies={None: a_policy(hour=1.5)}))) == []
    deeds = decide(ground)
    assert jobs(deeds) == [(1, 2, 3, 4, 5, 6, 7, 8)]
    assert "for jobs 1, 2, 3 and 5 more" in deeds.rents[0].why
    rents = [each for each in deeds.decisions if each.action == "rent"]
    assert [each.job for each in rents] == list(range(1, 9))
    costs = sum(dict(each.terms)["cost"] for each in rents)
    assert costs == pytest.approx(deeds.rents[0].ahead / MICROS)


def test_the_offer_that_saves_most_is_taken() -> None:
    one = a_want(devices=1)
    assert decide(a_ground(one, offers=(an_offer(), SMALL))).rents[0].offer == SMALL
    assert decide(a_ground(a_want(), offers=(an_offer(), SMALL))).rents[0].offer == an_offer()


def test_an_offer_that_is_quicker_is_worth_its_price_when_the_delay_is() -> None:
    slow, quick = an_offer("slow", lead_s=7200), an_offer("quick", lead_s=60, price=20 * MICROS)
    dear = {None: a_policy(hour=3.0)}
    cheap = {None: a_policy(hour=1.0)}
    want = a_want(p50_h=10)
    assert decide(a_ground(want, offers=(slow, quick), policies=dear)).rents[0].offer == quick
    want = a_want(p50_h=10, work_s=4 * 3600.0)
    assert decide(a_ground(want, offers=(slow, quick), policies=cheap)).rents[0].offer == slow


def test_alternatives_are_tried_in_turn() -> None:
    either = a_want(asks=(an_ask(8, kind="h100"), an_ask(4)))
    assert jobs(decide(a_ground(either))) == [(17,)]


def test_spot_is_for_jobs_that_can_be_stopped() -> None:
    both = (an_offer(), SPOT)
    assert decide(a_ground(a_want(), offers=both)).rents[0].offer == SPOT
    steady = a_want(preemptible=False)
    assert decide(a_ground(steady, offers=both)).rents[0].offer == an_offer()
    alone = decide(a_ground(steady, offers=(SPOT,)))
    assert reason(alone).endswith("only spot is on offer, and it must not be stopped")


def test_the_cheaper_zone_is_taken_and_the_next_one_when_it_failed() -> None:
    zones = (an_offer(zone="b", price=9 * MICROS), an_offer(zone="a"))
    assert decide(a_ground(a_want(), offers=zones)).rents[0].offer.zone == "a"
    failed = {zones[1].key: (Setback(NOW - 60.0),)}
    assert decide(a_ground(a_want(), offers=zones, setbacks=failed)).rents[0].offer.zone == "b"


def test_no_more_than_there_are_of_an_offer() -> None:
    few = (an_offer(zone="a", most=2), an_offer(zone="b", price=9 * MICROS))
    deeds = decide(a_ground(*(a_want(n) for n in range(1, 5)), offers=few))
    assert sorted(rent.offer.zone for rent in deeds.rents) == ["a", "a", "b", "b"]


@pytest.mark.parametrize(
    ("state", "covers"),
    [(InstanceState.REQUESTED, True), (InstanceState.BOOTING, True), (InstanceState.READY, True),
     (InstanceState.DRAINING, False), (InstanceState.TERMINATING, False)],
)  # fmt: skip
def test_what_is_idle_or_on_its_way_is_used_first(state: InstanceState, covers: bool) -> None:
    there = an_instance(state=state)
    deeds = decide(a_ground(a_want(), instances=(there,), uses={there.id: IDLE}))
    assert bool(deeds.rents) != covers


def test_an_instance_with_work_or_of_another_queue_is_of_no_use() -> None:
    busy = an_instance()
    assert decide(a_ground(a_want(), instances=(busy,), uses={busy.id: BUSY})).rents
    other = an_instance(queue=QueueName("org.other"))
    assert decide(a_ground(a_want(), instances=(other,), uses={other.id: IDLE})).rents
    shared = an_instance(queue=QueueName("org"))
    assert not decide(a_ground(a_want(), instances=(shared,), uses={shared.id: IDLE})).rents


def test_two_jobs_do_not_share_room_for_one() -> None:
    there = an_instance(state=InstanceState.BOOTING, jobs=(JobId(1),))
    wants = a_want(1), a_want(2)
    assert jobs(decide(a_ground(*wants, instances=(there,)))) == [(2,)]
    placed = a_want(1, placed_on=InstanceId(1)), a_want(2)
    there = an_instance(state=InstanceState.BOOTING)
    assert jobs(decide(a_ground(*placed, instances=(there,)))) == [(2,)]


def test_a_job_that_uses_nothing_that_is_rented_for_it_waits_longer_each_time() -> None:
    ground = a_ground(a_want())
    times = []
    for minute in range(600):
        ground = replace(ground, now=NOW + 60 * minute)
        deeds = decide(ground)
        ground = replace(ground, memory=deeds.memory)
        times += [minute] * len(deeds.rents)
    assert times[:3] == [0, 1, 2]
    gaps = [b - a for a, b in pairwise(times[2:])]
    assert gaps == [15, 30, 60, 120, 240]


def test_what_never_comes_does_not_make_a_job_wait() -> None:
    zones = tuple(an_offer(zone=each) for each in "abcdef")
    ground, tried = a_ground(a_want(), offers=zones), list[str]()
    for minute in range(6):
        ground = replace(ground, now=NOW + 60 * minute)
        deeds = decide(ground)
        tried += [rent.offer.zone for rent in deeds.rents]
        failed = {rent.offer.key: (Setback(ground.now + 1),) for rent in deeds.rents}
        setbacks = {**ground.setbacks, **failed}
        ground = replace(ground, memory=deeds.memory, setbacks=setbacks)
    assert tried == list("abcdef")


def test_with_a_deadline_the_risk_counts_and_not_the_delay() -> None:
    sure = a_want(deadline_at=NOW + 20 * 3600)
    assert jobs(decide(a_ground(sure))) == []
    tight = a_want(deadline_at=NOW + 4.2 * 3600)
    deeds = decide(a_ground(tight))
    assert jobs(deeds) == [(17,)]
    assert dict(deeds.decisions[0].terms)["late_chance"] == pytest.approx(0.43, abs=0.01)
    assert "44% late for its deadline, worth $250.96" in deeds.rents[0].why


def test_with_time_to_spare_a_job_waits_for_spot_and_goes_on_demand_in_time() -> None:
    none_now = replace(SPOT, available=False)
    late: dict[str, Any] = {"local_p50_at": NOW + 9e5, "local_p90_at": NOW + 1e6, "work_s": 14400.0}
    far = a_want(deadline_at=NOW + 40 * 3600, **late)
    assert reason(decide(a_ground(far, offers=(an_offer(), none_now)))).endswith(
        "it waits for a spot instance: there is time until its deadline"
    )
    assert decide(a_ground(far, offers=(an_offer(), SPOT))).rents[0].offer == SPOT
    near = a_want(deadline_at=NOW + 4.25 * 3600, **late)
    for offers in ((an_offer(), none_now), (an_offer(), SPOT)):
        assert decide(a_ground(near, offers=offers)).rents[0].offer == an_offer()


def test_policies_say_where_and_whether() -> None:
    research = a_policy("org.research", allowed=False)
    deeds = decide(a_ground(a_want(), policies={None: a_policy(), RESEARCH: research}))
    assert reason(deeds).endswith("the policy of queue org.research does not allow renting")
    west = {None: a_policy(regions=("west",))}
    deeds = decide(a_ground(a_want(), policies=west))
    assert reason(deeds).endswith("the policy of all queues allows regions west, not east")
    here = an_offer(zone="w", region="west", price=9 * MICROS)
    offers = (an_offer(), here)
    assert decide(a_ground(a_want(), policies=west, offers=offers)).rents[0].offer == here


def test_nothing_is_rented_above_a_budget_of_anybody_on_the_way() -> None:
    for queue in (None, QueueName("org"), RESEARCH):
        deeds = decide(a_ground(a_want(), budgets={queue: room(rate=7.99)}))
        assert not deeds.rents
        assert "$7.99/h is left, $8.00/h is asked for" in reason(deeds)
        deeds = decide(a_ground(a_want(), budgets={queue: room(month=9.4)}))
        assert "month $9.40 is left, $9.47 is asked for" in reason(deeds)
    assert decide(a_ground(a_want(), budgets={RESEARCH: room(rate=8, month=9.5)})).rents


def test_the_last_dollar_goes_to_who_saves_most() -> None:
    wants = [a_want(n, p50_h=2 + n / 10) for n in range(1, 51)]
    deeds = decide(a_ground(*wants, budgets={None: room(rate=24.0)}))
    assert sorted(jobs(deeds)) == [(48,), (49,), (50,)]


def test_what_is_cheaper_is_taken_when_the_budget_is_too_small_for_the_best() -> None:
    one = a_want(devices=1)
    fast = an_offer("gpu1x", devices=1, price=2 * MICROS, lead_s=5)
    ground = a_ground(one, offers=(fast, SMALL), policies={None: a_policy(hour=30)})
    assert decide(ground).rents[0].offer == fast
    assert decide(replace(ground, budgets={None: room(rate=1.5)})).rents[0].offer == SMALL


def test_one_decision_rents_no_more_than_it_may() -> None:
    wants = [a_want(n) for n in range(1, 6)]
    deeds = decide(a_ground(*wants, options=Options(most_rents=2)))
    assert len(deeds.rents) == 2
    told = [each.why for each in deeds.decisions if each.action == "none"]
    assert len(told) == 3
    assert all("enough is rented in one decision" in each for each in told)


def test_moving_data_is_paid_too() -> None:
    options = Options(egress={"east": 70 * MICROS})
    assert not decide(a_ground(a_want(), options=options)).rents
    assert decide(a_ground(a_want(), options=Options(egress={"east": 50 * MICROS}))).rents
