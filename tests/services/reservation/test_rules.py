from dataclasses import replace

import pytest

from atoll.core.model.errors import StaleEpoch
from atoll.core.model.ids import ClusterName, QueueName
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.reservation import When
from atoll.core.model.resources import DeviceGrant, DeviceRequest, TaskShape
from atoll.core.model.spec import TaskGroup
from atoll.core.model.standing_rule import (
    InteractiveHoursRule,
    LargeJobRule,
    RollingMaintenanceRule,
    Rule,
    RuleAction,
)
from atoll.ports.store.bookings import PastRun
from atoll.reservation.usecases.automation import Automation, steps
from tests.adapters.store_builders import spec as job_spec
from tests.adapters.store_builders import submit
from tests.services.reservation.worlds import ANN, HOUR, TENANT, World, places, spec

NORTH = ClusterName("north")


async def put(world: World, kind: object, name: str = "rule") -> None:
    await world.use.rules.put(ANN, Rule(name, kind, etag=0))  # type: ignore[arg-type]


async def did(world: World, name: str = "") -> list[RuleAction]:
    """What rules did, the first first."""
    page = await world.use.looker.actions(ANN, name, size=0, token="")
    return list(reversed(page.actions))


async def look(world: World, automation: Automation) -> int:
    await world.look(automation.term)
    await automation.term.retire()
    return await automation.look()


async def test_racks_are_maintained_one_after_the_other_each_once(timed: World) -> None:
    await timed.cluster("n1", "n2", "n3", "n4")
    await put(timed, RollingMaintenanceRule(NORTH, "rack", 1, HOUR))
    automation = Automation(await timed.term())
    seen: list[set[str]] = []
    for _ in range(4):
        await look(timed, automation)
        live = await timed.store.reservation.live()
        assert len(live) <= 1  # at most one rack is out
        seen += places([kept.occurrence for kept in live])
        await timed.look(automation.term)
        await timed.pass_time(HOUR + 1)
    assert seen == [{"n1", "n2"}, {"n3", "n4"}]
    actions = await did(timed)
    assert [action.what for action in actions] == ["booked rule-r0", "booked rule-r1"]
    assert "2 of 2 are left" in actions[0].why
    (rule,) = await timed.use.rules.all(ANN)
    assert rule.status == "all 4 nodes are done"
    assert all(action.reservation for action in actions)


async def test_maintenance_goes_around_bookings(timed: World) -> None:
    await timed.cluster("n1", "n2")
    await timed.book(spec("exam", timed.clock.now() + 60, units=2))
    await put(timed, RollingMaintenanceRule(NORTH, "rack", 1, HOUR))
    automation = Automation(await timed.term())
    assert await look(timed, automation) == 1
    made = await timed.store.reservation.made_by(TENANT, "rule:rule")
    assert made[0].occurrence.start_at >= timed.clock.now() + 60 + HOUR


async def test_a_large_job_gets_a_window_of_its_own_and_loses_it_with_its_wait(
    timed: World,
) -> None:
    await timed.cluster("n1", "n2")
    await timed.book(spec("busy", timed.clock.now() + 60, units=2))
    group = TaskGroup(
        "main", 2, 2, shapes=(TaskShape(1000, 1 << 30, DeviceRequest("H100", 8)),), run="x"
    )
    large = job_spec("large", groups=(group,), time_limit_s=600.0)
    (job,) = await submit(timed.store, spec=large)
    await submit(timed.store, spec=job_spec("small"))
    await put(timed, LargeJobRule(8))
    automation = Automation(await timed.term())
    assert await look(timed, automation) == 1
    (made,) = await timed.store.reservation.made_by(TENANT, "rule:rule")
    assert made.reservation.spec.owners.labels == (("atoll.job", str(job.id)),)
    assert len(places([made.occurrence])[0]) == 2
    assert await look(timed, automation) == 0
    assert "16" in (await did(timed))[0].why


async def test_hours_are_as_large_as_what_was_used(timed: World) -> None:
    await timed.cluster("n1")
    start = timed.clock.now() + HOUR
    when = When(length_s=HOUR, start_at=start, rrule="FREQ=DAILY")
    hours = InteractiveHoursRule(QueueName("default"), "H100", when, least=2, most=6)
    await put(timed, hours)
    automation = Automation(await timed.term())
    assert await look(timed, automation) == 14  # of two weeks
    made = await timed.store.reservation.made_by(TENANT, "rule:rule")
    assert {sum(len(s.devices) for p in k.occurrence.parts for s in p.shares) for k in made} == {2}
    assert await look(timed, automation) == 0


async def test_what_a_rule_cannot_book_is_said_once(timed: World) -> None:
    await timed.cluster("n1", "n2")
    now = timed.clock.now()
    await timed.book(spec("busy", now + 60, units=2, length_s=5 * HOUR))
    await put(timed, RollingMaintenanceRule(NORTH, "rack", 1, HOUR, end_at=now + 3 * HOUR))
    automation = Automation(await timed.term())
    assert await look(timed, automation) == 0
    assert await look(timed, automation) == 0
    (action,) = await did(timed)
    assert action.what == "could not book rule-r0"
    assert "busy" in action.why


async def test_a_deposed_leader_does_nothing(timed: World) -> None:
    await timed.cluster("n1", "n2")
    await put(timed, RollingMaintenanceRule(NORTH, "rack", 1, HOUR))
    old = Automation(await timed.term())
    await timed.store.reservation.take_over(replace(old.term.fence.epoch, revision=99))
    with pytest.raises(StaleEpoch):
        await old.look()
    assert await timed.store.reservation.live() == []
    assert await did(timed) == []


async def test_a_rule_goes_with_what_it_booked(timed: World) -> None:
    await timed.cluster("n1", "n2")
    start = timed.clock.now() + HOUR
    await put(timed, RollingMaintenanceRule(NORTH, "rack", 1, HOUR, start_at=start))
    automation = Automation(await timed.term())
    assert await look(timed, automation) == 1
    assert await timed.use.rules.delete(ANN, "rule") == 1
    assert await timed.store.reservation.live() == []
    assert await look(timed, automation) == 0


async def test_use_is_told_in_steps(timed: World) -> None:
    await timed.cluster("n1")
    await timed.service.replica.follow()
    (node,) = timed.service.replica.fleet.nodes
    task = TaskPlacement(0, 0, node, "n1", 1, 1, tuple(DeviceGrant(i, 100) for i in range(2)))
    runs = [PastRun(1.0, 5.0, (task,)), PastRun(3.0, 0.0, (task,))]
    fleet = timed.service.replica.fleet
    assert steps(runs, fleet, "H100") == [(1.0, 2.0), (3.0, 4.0), (5.0, 2.0)]
    assert steps(runs, fleet, "A100") == []
