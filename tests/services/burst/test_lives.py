"""Instances from the wish to the provider's confirmation, and what may go wrong on the way."""

import pytest

from atoll.burst.usecases.by_hand import Request
from atoll.core.model.burst import EndCause, InstanceId, InstanceState
from atoll.core.model.errors import StaleEpoch
from atoll.ports.provider import ProviderUnavailable
from tests.services.burst.worlds import DOLLAR, SMALL, World, ready


async def test_an_instance_lives_from_the_request_to_the_confirmed_end() -> None:
    world = World()
    await world.allow(per_hour=2)
    leader = await world.lead()
    (row,) = await world.use.by_hand.request(Request(1, offer=SMALL), principal="ann")
    assert (row.state, row.cluster) == (InstanceState.REQUESTED, "burst-1")
    row = await ready(world, leader)
    assert row.ready_at - row.requested_at == 60
    assert await leader.live() == []
    await world.use.by_hand.release([row.id], every=False, now=False)
    assert (await world.row()).state is InstanceState.DRAINING
    assert await leader.live() == ["terminate"]
    assert [machine.end_told_at > 0 for machine in world.machines()] == [True]
    assert (await world.row()).state is InstanceState.TERMINATING
    assert await leader.live(30) == ["ended"]
    row = await world.row()
    assert (row.state, row.cause) == (InstanceState.TERMINATED, EndCause.BY_HAND)
    assert row.spent == int(row.ended_at - row.created_at) * DOLLAR // 3600
    (all_together,) = await world.store.burst.budgets()
    assert (all_together.rate, all_together.month) == (0, row.spent)


async def test_what_a_deposed_leader_does_comes_to_nothing() -> None:
    world = World()
    await world.allow()
    old = await world.lead()
    await world.use.by_hand.request(Request(1, offer=SMALL), principal="ann")
    new = await world.lead()
    with pytest.raises(StaleEpoch):
        await old.live()
    # What the old one has asked for has the token of the row, so it is the same machine.
    assert await new.live() == ["booting"]
    assert len(world.machines()) == 1
    with pytest.raises(StaleEpoch):
        await old.reap()
    with pytest.raises(StaleEpoch):
        await old.decide()


async def test_a_broker_that_dies_after_the_creation_finds_the_machine_again() -> None:
    world = World()
    await world.allow()
    leader = await world.lead()
    await world.use.by_hand.request(Request(1, offer=SMALL), principal="ann")
    world.clouds["cloud"].mischief.lost_answers = 1
    assert await leader.live() == []
    assert (await world.row()).state is InstanceState.REQUESTED
    next_one = await world.lead()
    assert await next_one.live() == ["booting"]
    assert len(world.machines()) == 1


async def test_no_room_gives_the_budget_back_and_asks_another_zone() -> None:
    world = World()
    await world.allow(per_hour=1)
    leader = await world.lead()
    await world.use.by_hand.request(Request(1, offer=SMALL), principal="ann")
    cloud = world.clouds["cloud"].cloud
    cloud.settings = cloud.settings.model_copy(update={"no_capacity": 1.0})
    assert await leader.live() == ["failed"]
    failed, other = await world.row(1), await world.row(2)
    assert (failed.state, failed.cause) == (InstanceState.FAILED, EndCause.PROVIDER)
    assert "no small" in failed.message
    assert (other.state, other.offer.zone) == (InstanceState.REQUESTED, "b")
    (budget,) = await world.store.burst.budgets()
    assert budget.rate == DOLLAR
    told = await world.use.explainer.instance(InstanceId(2))
    assert "in place of instance 1" in told.summary


async def test_one_that_never_joins_is_given_up() -> None:
    world = World(boot_deadline_s=300)
    await world.allow()
    leader = await world.lead()
    await world.use.by_hand.request(Request(1, offer=SMALL), principal="ann")
    assert await leader.live() == ["booting"]
    assert await leader.live(301) == ["terminate"]
    row = await world.row()
    assert (row.state, row.cause) == (InstanceState.TERMINATING, EndCause.BOOT_DEADLINE)
    assert await leader.live(61) == ["ended", "booting"]
    assert (await world.row(2)).offer.zone == "b"


async def test_an_orphan_is_ended_at_the_next_look_of_the_reaper() -> None:
    world, other = World(), World()
    await other.allow()
    their_leader = await other.lead()
    (row,) = await other.use.by_hand.request(Request(1, offer=SMALL), principal="ann")
    await their_leader.live()
    # Another database, the same cloud: there is no row of what the cloud has.
    world.clouds["cloud"] = other.clouds["cloud"]
    leader = await world.lead()
    assert await leader.reap() == [row.token]
    await world.clock.advance(30)
    assert await leader.reap() == []
    (decision,) = (await world.use.explainer.last(1)).decisions
    assert "there is no row of it" in decision.why


async def test_a_provider_that_is_away_holds_nobody_else_up() -> None:
    world = World("cloud", "other")
    await world.allow()
    leader = await world.lead()
    for offer in (SMALL, SMALL.replace("cloud", "other")):
        await world.use.by_hand.request(Request(1, offer=offer), principal="ann")
    world.clouds["cloud"].mischief.errors += [ProviderUnavailable("away")] * 50
    assert await leader.live() == ["booting"]
    calls = len(world.clouds["cloud"].mischief.errors)
    # It is left alone for longer and longer, and what it has is not taken for ended.
    for _ in range(10):
        assert await leader.live(1) == []
    assert calls - len(world.clouds["cloud"].mischief.errors) < 6
    assert (await world.row(1)).state is InstanceState.REQUESTED
    health = {name: desk.health.reachable for name, desk in leader.term.desks.items()}
    assert health == {"cloud": False, "other": True}
    world.clouds["cloud"].mischief.errors.clear()
    assert await leader.live(60) == ["booting"]
