"""The broker is killed between what it does and what it writes: nothing twice, nothing left."""

from collections.abc import Callable
from itertools import count

import pytest

from atoll.adapters.memory.store_rows import Rows
from atoll.burst.usecases.by_hand import Request
from atoll.core.model.burst import InstanceState
from atoll.core.model.errors import ErrorCode
from atoll.ports.provider import CreateOrder, Phase, Sighting
from atoll.ports.store.common import UnknownOutcome
from tests.services.burst.worlds import DOLLAR, NLP, SMALL, Leader, World, ready

REQUESTED, BOOTING = InstanceState.REQUESTED, InstanceState.BOOTING
TERMINATING, TERMINATED = InstanceState.TERMINATING, InstanceState.TERMINATED


class Killed(Exception):
    """The process is gone at this point."""


def whenever(state: InstanceState, error: Exception) -> Callable[[Rows], None]:
    """What happens to the commit that moves an instance to a state."""

    def hook(rows: Rows) -> None:
        changed = (after for _, _, after in rows.burst.instances.changes())
        if any(row is not None and row.instance.state is state for row in changed):
            raise error

    return hook


def no_reply() -> UnknownOutcome:
    return UnknownOutcome("no reply", code=ErrorCode.UNAVAILABLE)


async def rate(world: World) -> int:
    return (await world.store.burst.budgets())[0].rate


async def rented(world: World, count: int = 1) -> Leader:
    """So many small instances are asked for, and somebody leads."""
    await world.allow(per_hour=count)
    leader = await world.lead()
    await world.use.by_hand.request(Request(count, offer=SMALL, keep_s=86_400), principal="ann")
    return leader


async def die(world: World, leader: Leader, *, before: InstanceState, seconds: float = 0.0) -> None:
    """Killed when it would write that an instance is in a state."""
    world.database.before_commit = whenever(before, Killed())
    with pytest.raises(Killed):
        await leader.live(seconds)
    world.database.before_commit = None


def standing(world: World) -> list[str]:
    now, cloud = world.clock.now(), world.clouds["cloud"].cloud
    return [m.token for m in world.machines() if cloud.phase(m, now) is not Phase.GONE]


async def test_killed_before_the_provider_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    leader = await rented(world)

    async def die_first(order: CreateOrder) -> Sighting:
        raise Killed(order.token)

    with monkeypatch.context() as patched:
        patched.setattr(world.clouds["cloud"], "create", die_first)
        with pytest.raises(Killed):
            await leader.live()
    assert ((await world.row()).state, world.machines()) == (REQUESTED, [])
    assert await rate(world) == DOLLAR
    assert await (await world.lead()).live() == ["booting"]
    assert standing(world) == [(await world.row()).token]


async def test_killed_between_the_creation_and_its_record() -> None:
    world = World()
    leader = await rented(world)
    await die(world, leader, before=BOOTING)
    row = await world.row()
    assert (row.state, row.provider_id, standing(world)) == (REQUESTED, "", [row.token])
    # The reaper of whoever leads next finds the machine first: it has a row, so it stays.
    heir = await world.lead()
    assert await heir.reap() == []
    await ready(world, heir)
    assert standing(world) == [row.token]
    assert (await rate(world), len(await world.store.burst.live_instances())) == (DOLLAR, 1)


async def test_what_a_dead_broker_created_and_nobody_wants_any_more_is_ended() -> None:
    world = World()
    leader = await rented(world)
    await die(world, leader, before=BOOTING)
    await world.use.by_hand.release([], every=True, now=True)
    heir = await world.lead()
    assert await heir.live() == ["terminate"] or (await world.row()).state is TERMINATING
    for _ in range(4):
        await heir.live(30)
    row = await world.row()
    assert (row.state, standing(world), await rate(world)) == (TERMINATED, [], 0)
    assert row.spent == int(row.ended_at - row.created_at) * DOLLAR // 3600 > 0


@pytest.mark.parametrize("told", [False, True], ids=["before it is told", "after it is told"])
async def test_killed_between_the_wish_to_end_it_and_the_confirmation(
    told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    leader = await rented(world, 2)
    assert await leader.live() == ["booting", "booting"]
    first, second = await world.store.burst.live_instances()
    await world.use.by_hand.release([first.id], every=False, now=True)

    async def die_first(provider_id: str) -> None:
        raise Killed(provider_id)

    with monkeypatch.context() as patched:
        if not told:
            patched.setattr(world.clouds["cloud"], "terminate", die_first)
            with pytest.raises(Killed):
                await leader.live()
        else:
            await leader.live()
    assert (await world.row(first.id)).state is TERMINATING
    assert [bool(m.end_told_at) for m in world.machines()] == [told, False]
    heir = await world.lead()
    await heir.live()
    await die(world, heir, before=TERMINATED, seconds=10)
    assert (await rate(world), (await world.row(first.id)).spent) == (2 * DOLLAR, 0)
    last = await world.lead()
    assert await last.live() == ["ended"]
    row = await world.row(first.id)
    # Given back once, paid once, and the other one lives on.
    assert (row.state, await rate(world), standing(world)) == (TERMINATED, DOLLAR, [second.token])
    assert row.spent == int(row.ended_at - row.created_at) * DOLLAR // 3600
    assert await (await world.lead()).live() == []
    assert await rate(world) == DOLLAR


async def test_a_reply_to_a_commit_that_is_lost_makes_nothing_twice() -> None:
    world = World()
    leader = await rented(world)

    for state, seconds in ((BOOTING, 0.0), (TERMINATED, 30.0)):
        world.database.after_commit = whenever(state, no_reply())
        with pytest.raises(UnknownOutcome):
            await leader.live(seconds)
        world.database.after_commit = None
        assert (await world.row()).state is state
        await world.use.by_hand.release([], every=True, now=True)
        await leader.live()
    row = await world.row()
    assert (len(world.machines()), standing(world), await rate(world)) == (1, [], 0)
    assert row.spent == int(row.ended_at - row.created_at) * DOLLAR // 3600


async def test_a_reply_to_a_decision_that_is_lost_rents_nothing_twice() -> None:
    world = World()
    await world.allow(per_hour=10, hour_of_delay=10 * DOLLAR)
    await world.want(7)
    leader = await world.lead()

    world.database.after_commit = whenever(REQUESTED, no_reply())
    with pytest.raises(UnknownOutcome):
        await leader.decide()
    world.database.after_commit = None
    assert [row.jobs for row in await world.store.burst.live_instances()] == [(7,)]
    assert await leader.decide() == []
    assert await (await world.lead()).decide() == []
    assert await rate(world) == DOLLAR


async def test_a_request_by_hand_whose_reply_is_lost_is_made_once() -> None:
    world = World()
    await world.allow(per_hour=2)
    await world.lead()

    replies = count()

    def lost(_: Rows) -> None:
        if next(replies) == 0:
            raise no_reply()

    world.database.after_commit = lost
    rows = await world.use.by_hand.request(Request(1, offer=SMALL, queue=NLP), principal="ann")
    assert rows == await world.store.burst.live_instances()
    assert {each.rate for each in await world.store.burst.budgets()} == {DOLLAR}
