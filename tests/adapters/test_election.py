"""One suite over every `Election`."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from atoll.ports.election import ElectionUnavailable, Leadership
from tests.adapters.election_worlds import TTL_S, ElectionWorld, MemoryWorld, etcd_world


@pytest.fixture(params=["memory", "one member", "three members"])
async def world(request: pytest.FixtureRequest, etcd_prefix: str) -> AsyncIterator[ElectionWorld]:
    """Each kind in turn."""
    if request.param == "memory":
        yield MemoryWorld()
        return
    servers = {"one member": "etcd_server", "three members": "etcd_cluster"}
    cluster = request.getfixturevalue(servers[request.param])
    async with etcd_world(cluster, etcd_prefix) as real:
        yield real


async def elected(world: ElectionWorld, identity: str) -> Leadership:
    return await world.until((await world.candidate(identity)).campaign())


async def standing_by(
    world: ElectionWorld, *identities: str
) -> dict[str, "asyncio.Task[Leadership]"]:
    """Candidates in this order, waiting behind somebody."""
    waiting = {}
    for identity in identities:
        candidate = await world.candidate(identity)
        waiting[identity] = asyncio.ensure_future(candidate.campaign())
        await world.pass_time(0.3)
    return waiting


async def test_one_of_three_leads_and_the_others_wait(world: ElectionWorld) -> None:
    leadership = await elected(world, "a")
    waiting = await standing_by(world, "b", "c")
    await world.pass_time(2 * TTL_S)
    assert leadership.valid()
    assert not any(task.done() for task in waiting.values())
    assert await (await world.candidate("c")).leader() == "a"
    await abandon(waiting)


async def test_who_resigns_is_followed_at_once_by_who_waited_longest(
    world: ElectionWorld,
) -> None:
    first = await elected(world, "a")
    waiting = await standing_by(world, "b", "c")
    await first.resign()
    second = await world.until(waiting["b"])
    await world.until(first.lost())
    assert not first.valid()
    assert second.valid()
    assert second.epoch > first.epoch
    assert not waiting["c"].done()
    await abandon(waiting)


async def test_a_leader_cut_off_steps_down_before_its_lease_can_have_expired(
    world: ElectionWorld,
) -> None:
    first = await elected(world, "a")
    waiting = await standing_by(world, "b")
    await world.cut("a")
    await world.until(first.lost())
    assert not first.valid()
    assert not waiting["b"].done()
    second = await world.until(waiting["b"])
    assert second.epoch > first.epoch
    await second.resign()


async def test_a_short_silence_ends_nothing(world: ElectionWorld) -> None:
    leadership = await elected(world, "a")
    await world.cut("a")
    await world.pass_time(TTL_S / 4)
    await world.heal("a")
    await world.pass_time(2 * TTL_S)
    assert leadership.valid()
    await leadership.resign()


async def test_a_revoked_lease_is_a_lost_leadership(world: ElectionWorld) -> None:
    first = await elected(world, "a")
    waiting = await standing_by(world, "b")
    await world.revoke("a")
    await world.until(first.lost())
    assert not first.valid()
    second = await world.until(waiting["b"])
    assert second.epoch > first.epoch
    await second.resign()


async def test_who_lost_may_stand_again_behind_the_others(world: ElectionWorld) -> None:
    candidate = await world.candidate("a")
    first = await world.until(candidate.campaign())
    waiting = await standing_by(world, "b")
    await world.revoke("a")
    second = await world.until(waiting["b"])
    again = asyncio.ensure_future(candidate.campaign())
    await world.pass_time(TTL_S)
    assert not again.done()
    await second.resign()
    third = await world.until(again)
    assert first.epoch < second.epoch < third.epoch
    assert third.valid()
    assert not first.valid()
    await candidate.close()
    assert not third.valid()


async def test_a_candidate_that_gives_up_leaves_the_line(world: ElectionWorld) -> None:
    first = await elected(world, "a")
    waiting = await standing_by(world, "b", "c")
    await abandon({"b": waiting["b"]})
    await first.resign()
    third = await world.until(waiting["c"])
    assert third.epoch > first.epoch
    await third.resign()


async def test_a_candidate_that_dies_in_line_is_passed_over(world: ElectionWorld) -> None:
    first = await elected(world, "a")
    waiting = await standing_by(world, "b", "c")
    await world.cut("b")
    await first.resign()
    third = await world.until(waiting["c"])
    assert third.epoch > first.epoch
    assert not waiting["b"].done()
    await abandon(waiting)


async def test_a_raised_generation_outranks_every_revision(world: ElectionWorld) -> None:
    first = await elected(world, "a")
    await first.resign()
    await world.raise_generation(1)
    second = await elected(world, "a")
    assert (first.epoch.generation, second.epoch.generation) == (0, 1)
    assert second.epoch > first.epoch
    await second.resign()


async def test_elections_with_a_common_beginning_know_nothing_of_each_other(
    world: ElectionWorld,
) -> None:
    leaderships = [
        await world.until((await world.candidate("a", name=name)).campaign())
        for name in ("shard-1", "shard-10", "shard")
    ]
    assert all(leadership.valid() for leadership in leaderships)
    for leadership in leaderships:
        await leadership.resign()


async def test_who_leads_is_told_or_that_nobody_does(world: ElectionWorld) -> None:
    asker = await world.candidate("asker")
    assert await asker.leader() is None
    leadership = await elected(world, "a")
    assert await asker.leader() == "a"
    await leadership.resign()
    assert await asker.leader() is None
    await world.cut("asker")
    with pytest.raises(ElectionUnavailable):
        await asker.leader()


async def test_without_the_service_nobody_leads_and_with_it_again_somebody_does(
    world: ElectionWorld,
) -> None:
    first = await elected(world, "a")
    waiting = await standing_by(world, "b")
    await world.go_down()
    await world.until(first.lost())
    await world.pass_time(TTL_S)
    assert not waiting["b"].done()
    await world.come_back()
    second = await world.until(waiting["b"])
    assert second.epoch > first.epoch
    assert not first.valid()
    await second.resign()


async def abandon(waiting: "dict[str, asyncio.Task[Leadership]]") -> None:
    for task in waiting.values():
        task.cancel()
    await asyncio.gather(*waiting.values(), return_exceptions=True)
