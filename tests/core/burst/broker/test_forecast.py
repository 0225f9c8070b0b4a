"""What is rented by forecast, what is kept, and that neither flaps."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.core.engine.burst.broker.decide import decide
from atoll.core.engine.burst.broker.ground import Deeds, Ground, Outlook, Use, aged
from atoll.core.engine.burst.broker.idle import keep_s
from atoll.core.engine.burst.broker.memory import Memory
from atoll.core.model.burst import MICROS, EndCause, Instance, InstanceId, InstanceState
from tests.core.burst.broker.making import (
    BUSY,
    IDLE,
    NOW,
    RESEARCH,
    a_ground,
    a_policy,
    a_want,
    an_instance,
    an_offer,
    room,
)

ONE = an_offer("gpu1", devices=1, price=MICROS)
DEAR = {None: a_policy(hour=4.0)}


def an_outlook(*excess: float, queue: str = "", steps: int = 6, step_s: float = 600.0) -> Outlook:
    """So many equally likely futures, each constant."""
    futures = np.repeat(np.array(excess, dtype=float)[:, None], steps, axis=1)
    return Outlook("a100", RESEARCH if queue else None, step_s, futures)


def foreseen(*excess: float, **given: object) -> Ground:
    usual = {"offers": (ONE,), "policies": DEAR, "outlooks": (an_outlook(*excess),)}
    return a_ground(**usual | given)


def test_an_outlook_gets_old_step_by_step_until_nothing_is_left_of_it() -> None:
    falls = Outlook("a100", None, 600.0, np.array([[9.0, 5.0, 0.0]]))
    left = [aged(falls, passed_s) for passed_s in (-1.0, 599.0, 600.0, 1799.0, 1800.0)]
    assert [None if each is None else each.excess.tolist() for each in left] == [
        [[9, 5, 0]], [[9, 5, 0]], [[5, 0]], [[0]], None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("hour", "count"),
    [(0.5, 0), (1.0, 0), (2.0, 5), (4.0, 8), (10.0, 9), (100.0, 10)],
    ids=lambda each: f"{each}",
)
def test_the_amount_is_the_quantile_at_which_a_further_device_does_not_pay(
    hour: float, count: int
) -> None:
    """An hour too few costs hour - price, one too many the price."""
    ground = foreseen(*range(1, 11), policies={None: a_policy(hour=hour)})
    assert len(decide(ground).rents) == count


def test_what_is_rented_counts_and_the_reason_is_told() -> None:
    there = (an_instance(1, ONE), an_instance(2, ONE, state=InstanceState.BOOTING))
    deeds = decide(foreseen(4, 4, 4, 4, instances=there, uses={there[0].id: BUSY}))
    assert [rent.jobs for rent in deeds.rents] == [(), ()]
    assert deeds.rents[0].why == (
        "rented on demand gpu1 in east-a at $1.00/h by forecast: 4 a100s beyond what is there "
        "are best (the 75% quantile: an hour of one is worth 4.00 dollars and costs 1.00), "
        "2 are held"
    )
    assert dict(deeds.decisions[0].terms)["quantile"] == 0.75


def test_only_the_time_after_the_lead_counts() -> None:
    soon = Outlook("a100", None, 600.0, np.array([[9.0, 0, 0, 0, 0, 0, 0, 0]]))
    later = Outlook("a100", None, 600.0, np.array([[0.0, 3, 3, 3, 3, 3, 3, 9]]))
    slow = replace(ONE, lead_s=600.0)
    assert not decide(foreseen(offers=(slow,), outlooks=(soon,))).rents
    assert len(decide(foreseen(offers=(slow,), outlooks=(later,))).rents) == 3


def test_whole_machines_are_rented_only_as_far_as_they_pay() -> None:
    eight = an_offer()
    assert len(decide(foreseen(*[17] * 9, offers=(eight,))).rents) == 2
    assert len(decide(foreseen(*[23] * 9, offers=(eight,))).rents) == 3


def test_a_queues_own_forecast_counts_for_all() -> None:
    both = (an_outlook(3, queue="research"), an_outlook(5))
    deeds = decide(foreseen(outlooks=both))
    assert [rent.queue for rent in deeds.rents] == [RESEARCH] * 3 + [None] * 2


def test_jobs_that_are_rented_for_count_for_the_forecast() -> None:
    deeds = decide(replace(foreseen(2, 2, 2), wants=(a_want(devices=1),)))
    assert sorted(len(rent.jobs) for rent in deeds.rents) == [0, 1]


def test_budgets_bound_what_is_foreseen_and_it_is_said_once() -> None:
    ground = foreseen(9, 9, budgets={None: room(rate=4.5)})
    deeds = decide(ground)
    assert len(deeds.rents) == 4
    (none,) = (each for each in deeds.decisions if each.action == "none")
    assert "9 a100s are wanted, 0 are held, but of the budget of all queues $0.50/h" in none.why
    again = decide(replace(ground, memory=deeds.memory, budgets={None: room(rate=0)}))
    assert not again.decisions


def test_what_may_not_be_had_is_said_where_it_is_missed() -> None:
    forbidden = {None: a_policy(allowed=False)}
    (none,) = decide(foreseen(3, 3, policies=forbidden)).decisions
    assert none.why == (
        "nothing rented by forecast: a100s may be wanted, but the policy of all queues does not "
        "allow renting"
    )
    assert "nobody offers it now" in decide(foreseen(3, 3, offers=())).decisions[0].why
    assert not decide(foreseen(-3, -3, policies=forbidden)).decisions


def idle_one(idle_s: float, number: int = 1, **given: object) -> Instance:
    return an_instance(number, ONE, idle_since=NOW - idle_s, **given)


KEPT_S = keep_s(foreseen(), ONE, RESEARCH)


def test_idle_instances_are_kept_for_as_long_as_coming_back_costs() -> None:
    assert pytest.approx(2100) == KEPT_S  # 360 s of waiting at $4, 660 s of price at $1
    for idle_s, ends in ((KEPT_S - 1, False), (KEPT_S, True)):
        there = idle_one(idle_s)
        deeds = decide(foreseen(instances=(there,), uses={there.id: IDLE}))
        assert bool(deeds.drains) == ends
    (drain,) = decide(foreseen(instances=(idle_one(KEPT_S),), uses={InstanceId(1): IDLE})).drains
    assert drain.why == (
        "drained instance 1 (sim/east-a/gpu1/on_demand, $1.00/h): idle for 35 min, kept for "
        "35 min, and no forecast wants it"
    )
    assert (drain.stop_at, drain.drain_by, drain.cause) == (NOW, NOW, EndCause.IDLE)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"uses": {1: Use(joined=True, held=1)}}, id="it is held for a job"),
        pytest.param({"uses": {1: BUSY}}, id="something runs"),
        pytest.param({"outlooks": (an_outlook(1, 1, 1),)}, id="the forecast wants it"),
        pytest.param({"wants": (a_want(devices=1, submitted_at=NOW - 9),)}, id="a job wants it"),
        pytest.param({"instances": (idle_one(9e5, keep_until=NOW + 1),)}, id="somebody keeps it"),
    ],
)
def test_nothing_is_drained_that_is_of_use(given: dict[str, object]) -> None:
    there = idle_one(9e5)
    assert decide(foreseen(instances=(there,), uses={there.id: IDLE})).drains
    usual = {"instances": (there,), "uses": {there.id: IDLE}}
    assert not decide(foreseen(**usual | given)).drains


def test_the_dearest_goes_first_and_as_many_stay_as_the_forecast_wants() -> None:
    dear = an_instance(1, replace(ONE, price=2 * MICROS), idle_since=NOW - 9e5)
    there = (dear, idle_one(9e5, 2), idle_one(9e5, 3))
    deeds = decide(foreseen(2, 2, 2, instances=there, uses={each.id: IDLE for each in there}))
    assert [each.instance for each in deeds.drains] == [1]


@dataclass
class World:
    """Instances boot in their lead, idle until they are drained, and are gone at once then."""

    ground: Ground
    boots_s: float = 360.0
    number: int = 0
    rents: list[float] = field(default_factory=list)
    drains: list[float] = field(default_factory=list)

    def turn(self, now: float, outlook: Outlook) -> Deeds:
        self.ground = replace(self.ground, now=now, outlooks=(outlook,))
        deeds = decide(self.ground)
        gone = {each.instance for each in deeds.drains}
        kept = [each for each in self.ground.instances if each.id not in gone]
        for rent in deeds.rents:
            self.number += 1
            booting = {"state": InstanceState.BOOTING, "requested_at": now, "queue": rent.queue}
            kept.append(an_instance(self.number, rent.offer, **booting))
        kept = [self._booted(each, now) for each in kept]
        uses = {each.id: IDLE for each in kept}
        self.ground = replace(self.ground, instances=tuple(kept), uses=uses, memory=deeds.memory)
        self.rents += [now] * len(deeds.rents)
        self.drains += [now] * len(deeds.drains)
        return deeds

    def _booted(self, instance: Instance, now: float) -> Instance:
        if instance.state is InstanceState.READY or now - instance.requested_at < self.boots_s:
            return instance
        return replace(instance, state=InstanceState.READY, ready_at=now, idle_since=now)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(-5, 12), min_size=3, max_size=12),
    st.one_of(st.just(0.0), st.floats(-1.0, 1.0)),
    st.integers(0, 3),
    st.sampled_from([1, 4]),
)
def test_what_wavers_or_changes_slowly_makes_nothing_come_and_go(
    excess: list[int], drift_per_h: float, wave: int, devices: int
) -> None:
    offer = an_offer("g", devices=devices, price=devices * MICROS)
    world = World(foreseen(0, offers=(offer,)))
    quiet_s = keep_s(world.ground, offer, None)
    for minute in range(0, 600, 5):
        waver = wave if minute % 10 else 0
        now = NOW + 60 * minute
        futures = [each + waver + drift_per_h * minute / 60 for each in excess]
        world.turn(now, an_outlook(*futures))
    for rent in world.rents:
        assert all(abs(rent - drain) >= quiet_s for drain in world.drains)
    if not drift_per_h:
        assert not world.drains
    if not drift_per_h and not wave:
        assert set(world.rents) <= {NOW}


def test_a_new_broker_without_a_memory_does_the_same_in_a_steady_world() -> None:
    world = World(foreseen(0))
    for minute in range(0, 300, 5):
        world.turn(NOW + 60 * minute, an_outlook(2, 3, 4))
        world.ground = replace(world.ground, memory=Memory())
    assert (len(world.rents), world.drains) == (4, [])
