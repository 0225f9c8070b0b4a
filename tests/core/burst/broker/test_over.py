"""What ends because a budget or a policy no longer bears it, and that no month costs more."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from atoll.core.engine.burst.broker.decide import decide
from atoll.core.engine.burst.broker.ground import Deeds, Ground, Options, Room, Use
from atoll.core.engine.burst.broker.rooms import room_of
from atoll.core.engine.burst.broker.spend import due
from atoll.core.model.burst import MICROS, Budget, EndCause, Instance, InstanceId, InstanceState
from atoll.core.model.ids import QueueName
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

ORG = QueueName("org")


def priced(number: int, price: float, devices: int = 1, **given: object) -> Instance:
    offer = an_offer(f"g{number}", devices=devices, price=round(price * MICROS))
    return an_instance(number, offer, **given)


def drained(deeds: Deeds) -> list[int]:
    return [int(each.instance) for each in deeds.drains]


THREE = (priced(1, 8, 8), priced(2, 4, 2), priced(3, 3))
WORK = {each.id: BUSY for each in THREE}


@pytest.mark.parametrize(
    ("budgets", "uses", "gone"),
    [
        pytest.param({None: room(rate=0)}, WORK, [], id="just within"),
        pytest.param({None: room(rate=-1)}, WORK, [3], id="the dearest per device first"),
        pytest.param({None: room(rate=-4)}, WORK, [3, 2], id="as many as it takes"),
        pytest.param({None: room(rate=-99)}, WORK, [3, 2, 1], id="all"),
        pytest.param(
            {None: room(rate=-1)}, WORK | {InstanceId(1): IDLE}, [1], id="idle ones first"
        ),
        pytest.param({ORG: room(rate=-4), None: room(rate=-5)}, WORK, [3, 2], id="once for all"),
        pytest.param({QueueName("x"): room(rate=-9)}, WORK, [], id="of others no matter"),
        pytest.param({None: room(month=3)}, WORK, [], id="the month lasts"),
        pytest.param({None: room(month=0.86)}, WORK, [3], id="the month ends soon for one"),
        pytest.param({None: room(month=-1)}, WORK, [3, 2, 1], id="the month is used up"),
    ],
)
def test_budgets_that_were_lowered_end_what_runs(
    budgets: dict[QueueName | None, Room], uses: dict[InstanceId, Use], gone: list[int]
) -> None:
    deeds = decide(a_ground(instances=THREE, uses=uses, budgets=budgets))
    assert drained(deeds) == gone
    assert all(each.cause is EndCause.BUDGET for each in deeds.drains)


def test_work_gets_its_time_to_stop_and_the_bound_is_named() -> None:
    ground = a_ground(instances=THREE, uses=WORK, budgets={ORG: room(rate=-2.5)})
    (drain,) = decide(ground).drains
    assert (
        drain.why == "drained instance 3 at $3.00/h: queue org spends $2.50/h more than its budget"
    )
    assert (drain.stop_at, drain.drain_by) == (NOW + 120, NOW + 180)


def test_a_month_that_is_spent_stops_work_at_once() -> None:
    ground = a_ground(instances=THREE, uses=WORK, budgets={None: room(month=-1)})
    assert {(each.stop_at, each.drain_by) for each in decide(ground).drains} == {(NOW, NOW + 60)}


def test_what_drains_already_counts_as_going() -> None:
    going = replace(THREE[0], state=InstanceState.DRAINING)
    ground = a_ground(instances=(going, *THREE[1:]), uses=WORK, budgets={None: room(rate=-8)})
    assert drained(decide(ground)) == []
    assert drained(decide(replace(ground, budgets={None: room(rate=-9)}))) == [3]


def test_a_policy_that_forbids_what_runs_ends_it() -> None:
    narrow = {None: a_policy(most_price=2 * MICROS)}
    deeds = decide(a_ground(instances=THREE, uses=WORK, policies=narrow))
    assert drained(deeds) == [3]
    assert deeds.drains[0].cause is EndCause.POLICY
    assert deeds.drains[0].why == (
        "drained instance 3: the policy of all queues allows $2.00 per device-hour at most, not "
        "$3.00"
    )
    forbidden = {None: a_policy(), RESEARCH: a_policy("org.research", allowed=False)}
    assert drained(decide(a_ground(instances=THREE, policies=forbidden))) == [1, 2, 3]


@dataclass
class Month:
    """Everybody always wants more; what was told to end takes its whole time."""

    budget: Budget
    options: Options
    running: list[Instance] = field(default_factory=list)
    ended: list[Instance] = field(default_factory=list)
    number: int = 0

    def turn(self, ground: Ground, now: float) -> None:
        self._end(now)
        rate = sum(each.offer.price for each in self.running)
        left = room_of(self.budget, rate=rate, month=self.spent(now), end_s=self.options.end_s)
        ground = replace(
            ground,
            now=now,
            instances=tuple(self.running),
            uses={each.id: BUSY for each in self.running},
            budgets={None: left},
        )
        deeds = decide(ground)
        self.running = [self._drained(each, deeds) for each in self.running]
        for rent in deeds.rents:
            self.number += 1
            self.running.append(
                an_instance(self.number, rent.offer, queue=rent.queue, created_at=now)
            )
        assert self.budget.per_hour is not None
        assert sum(each.offer.price for each in self.running) <= self.budget.per_hour

    def spent(self, now: float) -> int:
        return sum(due(each, now=now) for each in [*self.running, *self.ended])

    def _drained(self, instance: Instance, deeds: Deeds) -> Instance:
        drain = next((each for each in deeds.drains if each.instance == instance.id), None)
        if drain is None:
            return instance
        return replace(instance, state=InstanceState.DRAINING, drain_by=drain.drain_by)

    def _end(self, now: float) -> None:
        for each in list(self.running):
            end = each.drain_by + self.options.end_s
            if each.state is InstanceState.DRAINING and now >= end:
                self.running.remove(each)
                self.ended.append(replace(each, state=InstanceState.TERMINATED, ended_at=end))


@settings(max_examples=12, deadline=None)
@example(24.25, 21.0, [0.5])
@given(st.floats(0, 40), st.floats(0, 40), st.lists(st.floats(0.5, 20), min_size=1, max_size=3))
def test_no_month_costs_more_than_its_budget(
    month: float, hour: float, prices: list[float]
) -> None:
    options = Options(most_rents=3, loop_s=60.0)
    budget = Budget(round(hour * MICROS), round(month * MICROS))
    offers = tuple(an_offer(f"g{n}", price=round(price * MICROS)) for n, price in enumerate(prices))
    world = Month(budget, options)
    for turn in range(150):
        wants = [a_want(n + 1000 * turn, p50_h=9) for n in range(1, 4)]
        ground = a_ground(*wants, offers=offers, options=options)
        world.turn(ground, NOW + options.loop_s * turn)
        assert world.spent(NOW + options.loop_s * turn) <= budget.per_month  # type: ignore[operator]
