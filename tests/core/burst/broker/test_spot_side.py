"""Jobs with deadlines between spot, on demand and waiting, while they run as well."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.core.engine.burst.broker.decide import decide
from atoll.core.engine.burst.broker.ground import Ground, Use
from atoll.core.engine.burst.broker.memory import Course, Memory
from atoll.core.engine.burst.broker.spot_side import Prices, SpotSide
from atoll.core.engine.burst.broker.zones import looked
from atoll.core.engine.burst.spot import Mode
from atoll.core.engine.burst.watch import first
from atoll.core.model.burst import MICROS, EndCause, Market
from atoll.core.model.ids import JobId
from tests.core.burst.broker.making import (
    BUSY,
    NOW,
    a_ground,
    a_policy,
    a_want,
    an_instance,
    an_offer,
)

DEMAND = an_offer()
SPOT = replace(DEMAND, market=Market.SPOT, price=3 * MICROS)
BOTH = Prices(SPOT, DEMAND)
JOB = JobId(17)
HOUR = 3600.0


@settings(deadline=None)
@given(st.floats(HOUR, 20 * HOUR), st.floats(-HOUR, 30 * HOUR), st.booleans())
def test_no_answer_puts_a_deadline_at_risk(work_s: float, slack_s: float, up: bool) -> None:
    want = a_want(work_s=work_s, deadline_at=NOW + work_s + slack_s)
    mode = SpotSide().mode(want, BOTH, [first(up, 600.0)], now=NOW)
    if slack_s <= 2 * DEMAND.lead_s:
        assert mode is Mode.ON_DEMAND
    if not up:
        assert mode is not Mode.SPOT
    if up and slack_s > work_s:
        assert mode is Mode.SPOT


def test_what_is_not_sold_cannot_be_chosen() -> None:
    want = a_want(deadline_at=NOW + 90 * HOUR)
    seen = [first(True, 600.0)]
    assert SpotSide().mode(want, Prices(SPOT, None), seen, now=NOW) is Mode.SPOT
    assert SpotSide().mode(want, Prices(None, DEMAND), (), now=NOW) is Mode.ON_DEMAND
    dear = replace(SPOT, price=9 * MICROS)
    assert SpotSide().mode(want, Prices(dear, DEMAND), seen, now=NOW) is Mode.ON_DEMAND


def test_zones_are_watched_from_decision_to_decision() -> None:
    other = replace(SPOT, zone="b")
    memory, ground = Memory(), a_ground(offers=(SPOT, other, DEMAND))
    zones = memory.zones
    for minute in range(0, 60, 5):
        offers = (SPOT, replace(other, available=minute < 30))
        seen = replace(ground, now=NOW + 60 * minute, offers=offers, memory=memory)
        zones, at = looked(seen)
        memory = replace(memory, zones=zones, looked_at=at)
    assert set(memory.zones) == {SPOT.key, other.key}
    assert (zones[SPOT.key].up, zones[other.key].up) == (True, False)
    assert zones[SPOT.key].share > zones[other.key].share
    assert zones[other.key].run_s == 1800.0
    again = looked(replace(ground, now=memory.looked_at + 1, memory=memory))
    assert again == (memory.zones, memory.looked_at)


def running(course: Course, **given: object) -> Ground:
    """A job on demand since two hours, where spot has come back."""
    there = an_instance(1, DEMAND, jobs=(JOB,), ready_at=NOW - 2 * HOUR, idle_since=0.0)
    usual = {
        "offers": (DEMAND, SPOT),
        "instances": (there,),
        "uses": {there.id: BUSY},
        "memory": Memory(courses={JOB: course}),
    }
    return a_ground(**usual | given)


def test_a_job_goes_back_to_spot_when_it_is_well_ahead() -> None:
    ahead = Course(NOW + 30 * HOUR, 10 * HOUR, 300.0, NOW)
    (drain,) = decide(running(ahead)).drains
    assert (drain.cause, drain.stop_at) == (EndCause.IDLE, NOW)
    assert drain.why == (
        "drained instance 1 at $8.00/h: job 17 goes back to spot at $3.00/h, it has 10 h to go "
        "and 20 h to spare until its deadline"
    )
    for offers in ((DEMAND,), (DEMAND, replace(SPOT, available=False))):
        assert not decide(running(ahead, offers=offers)).drains
    assert not decide(running(ahead, policies={None: a_policy(markets=(Market.ON_DEMAND,))})).drains


def test_it_stays_when_time_is_short_or_little_is_left() -> None:
    for course in (
        Course(NOW + 10.2 * HOUR, 10 * HOUR, 300.0, NOW),
        Course(NOW + 30 * HOUR, 0.4 * HOUR, 300.0, NOW),
        Course(NOW + 30 * HOUR, 10 * HOUR, 20 * HOUR, NOW),
    ):
        assert not decide(running(course)).drains


def test_what_a_job_has_done_counts_when_it_is_queued_again() -> None:
    ground = running(Course(NOW + 30 * HOUR, 10 * HOUR, 300.0), offers=(DEMAND,))
    for hour in range(4):
        ground = replace(ground, now=NOW + hour * HOUR)
        ground = replace(ground, memory=decide(ground).memory)
    assert ground.memory.courses[JOB].left_s == 7 * HOUR
    want = a_want(17, deadline_at=NOW + 30 * HOUR, work_s=10 * HOUR, overhead_s=300.0)
    ground = replace(ground, wants=(want,), instances=())
    memory = decide(replace(ground, offers=())).memory
    assert memory.courses[JOB] == Course(NOW + 30 * HOUR, 7 * HOUR + 300, 300.0)
    assert decide(replace(ground, wants=(), memory=memory)).memory.courses == {}


def test_what_is_rented_for_a_deadline_is_followed() -> None:
    late = a_want(work_s=HOUR, deadline_at=NOW + 3 * HOUR, overhead_s=60.0)
    deeds = decide(a_ground(late))
    assert deeds.memory.courses == {JOB: Course(NOW + 3 * HOUR, HOUR, 60.0)}
    assert decide(a_ground(a_want())).memory.courses == {JOB: Course(0.0, HOUR, 0.0)}
    assert decide(a_ground(a_want(preemptible=False))).memory.courses == {}


def test_work_without_a_deadline_goes_home_when_there_is_room_and_little_is_lost() -> None:
    course = Course(0.0, 10 * HOUR, 300.0, NOW)
    (drain,) = decide(running(course, spare={"a100": 8})).drains
    assert "goes on in idle devices of our own: it would take 10 h and $80.00 more" in drain.why
    for less in (
        {"spare": {"a100": 7}},
        {"memory": Memory(courses={JOB: course._replace(overhead_s=5 * HOUR)})},
        {"memory": Memory()},
        {"uses": {1: Use(joined=True, live=2)}},
    ):
        assert not decide(running(course, **{"spare": {"a100": 8}} | less)).drains
