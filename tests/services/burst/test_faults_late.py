"""What comes too late, and clocks that jump."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from atoll.burst.usecases.by_hand import Request
from atoll.core.model.burst import EndCause, Instance, InstanceState
from atoll.core.model.errors import ErrorCode, FailedPrecondition
from atoll.core.model.inventory import ClusterState
from atoll.ports.provider import Phase, ProviderUnavailable, Sighting
from tests.services.burst.worlds import DOLLAR, SMALL, World, ready

HOUR = 3600.0


async def refused(world: World, row: Instance, **given: object) -> str:
    """What the agent of an instance is told when it joins."""
    with pytest.raises(FailedPrecondition) as refusal:
        await world.join(row, **given)
    assert refusal.value.code is ErrorCode.JOIN_REFUSED
    return refusal.value.message


async def test_who_joins_after_it_was_given_up_gets_no_work_and_is_ended() -> None:
    world = World(boot_deadline_s=300)
    await world.allow()
    leader = await world.lead()
    await world.use.by_hand.request(Request(1, offer=SMALL), principal="ann")
    assert await leader.live() == ["booting"]
    assert await leader.live(301) == ["terminate"]
    row = await world.row()
    assert "given up" in await refused(world, row)
    (cluster,) = [c for c in await world.store.submission.clusters() if c.name == row.cluster]
    assert (cluster.state, cluster.session_epoch) == (ClusterState.BOOTING, 0)
    assert await world.store.burst.capacities() == []
    await leader.live(61)
    row = await world.row()
    assert (row.state, row.cause) == (InstanceState.TERMINATED, EndCause.BOOT_DEADLINE)
    assert "given up" in await refused(world, row)


async def test_a_second_agent_with_the_same_token_is_refused() -> None:
    world = World()
    await world.allow()
    leader = await world.lead()
    await world.use.by_hand.request(Request(1, offer=SMALL), principal="ann")
    row = await ready(world, leader)
    await world.clock.advance(HOUR)
    assert "another agent" in await refused(world, row, instance="copy")
    await world.join(row)


async def test_a_machine_that_comes_up_after_its_end_was_believed_is_reaped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(boot_deadline_s=120)
    await world.allow(per_hour=1)
    leader = await world.lead()
    await world.use.by_hand.request(Request(1, offer=SMALL), principal="ann")
    cloud = world.clouds["cloud"]
    cloud.mischief.lost_answers = 1

    async def knows_nothing(tokens: Sequence[str]) -> Sequence[Sighting]:
        return ()

    monkeypatch.setattr(cloud, "describe", knows_nothing)
    await leader.live()
    cloud.mischief.errors += [ProviderUnavailable("away")] * 3
    for _ in range(10):
        await leader.live(60)
        cloud.mischief.errors.clear()
    row = await world.row(1)
    assert row.state in {InstanceState.TERMINATED, InstanceState.FAILED}
    monkeypatch.undo()
    orphans = [m.token for m in world.machines() if not m.end_told_at]
    live = {each.token for each in await world.store.burst.live_instances()}
    assert row.token in orphans
    assert row.token not in live
    assert row.token in await leader.reap()
    await world.clock.advance(10)
    tagged = await cloud.list_tagged()
    assert row.token not in [each.token for each in tagged]
    assert "given up" in await refused(world, row)


async def test_an_instance_is_not_given_up_because_a_clock_went_forward() -> None:
    world = World(boot_deadline_s=300)
    await world.allow()
    leader = await world.lead()
    await world.use.by_hand.request(Request(1, offer=SMALL), principal="ann")
    assert await leader.live() == ["booting"]
    await leader.live(30)
    world.clock.jump(6 * HOUR)
    assert await leader.live(1) == []
    await world.join(await world.row())
    assert await leader.live(1) == ["ready"]


async def test_what_is_drained_keeps_its_time_though_a_clock_goes_forward() -> None:
    world = World(instance_drain_s=100, instance_grace_s=20)
    await world.allow()
    leader = await world.lead()
    await world.use.by_hand.request(Request(1, offer=SMALL), principal="ann")
    row = await ready(world, leader)
    busy = replace((await world.store.burst.uses())[0], live_attempts=1)

    async def runs() -> list[object]:
        return [busy]

    world.store.burst.uses = runs  # type: ignore[method-assign,assignment]
    leader = await world.lead()
    await leader.live()
    await world.use.by_hand.release([row.id], every=False, now=False)
    assert await leader.live(10) == []
    world.clock.jump(HOUR)
    assert await leader.live(10) == []
    assert await leader.live(110) == ["terminate"]


@pytest.mark.parametrize("jump", [HOUR, -HOUR, -40 * 24 * HOUR, 40 * 24 * HOUR])
async def test_no_second_is_paid_twice_whatever_the_clock_does(
    jump: float,
) -> None:
    world = World()
    await world.allow(per_hour=2, per_month=1000)
    leader = await world.lead()
    await world.use.by_hand.request(Request(2, offer=SMALL, keep_s=86_400), principal="ann")
    assert await leader.live() == ["booting"] * 2
    await leader.upkeep.count_spend()
    counted = sum(row.spent for row in await world.store.burst.live_instances())
    world.clock.jump(jump)
    for _ in range(3):
        await leader.upkeep.count_spend()
    after = await world.store.burst.live_instances()
    # By the second of the store's clock: once forward, never back.
    assert sum(row.spent for row in after) == counted + max(0, 2 * int(jump) * DOLLAR // 3600)
    spent = await world.store.burst.spent(None, since=0, until=1e12)
    assert sum(amount for _, amount in spent) == sum(row.spent for row in after)
    assert max((amount for _, amount in spent), default=0) <= 2 * DOLLAR
    await world.use.by_hand.release([], every=True, now=True)
    for _ in range(8):
        await leader.live(30)
    tagged = await world.clouds["cloud"].list_tagged()
    assert [each for each in tagged if each.phase is not Phase.ENDING] == []
