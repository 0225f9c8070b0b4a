"""Requests and releases by people, and policies that they change."""

import asyncio

import pytest

from atoll.burst.usecases.by_hand import Request
from atoll.core.model.burst import Budget, BurstPolicy, EndCause, InstanceId, InstanceState
from atoll.core.model.errors import (
    Aborted,
    AlreadyExists,
    ErrorCode,
    Exhausted,
    FailedPrecondition,
    InvalidInput,
    NotFound,
)
from tests.services.burst.worlds import DOLLAR, NLP, SMALL, World, ready


async def test_the_same_key_is_the_same_request() -> None:
    world = World()
    await world.allow()
    await world.lead()
    once = Request(2, offer=SMALL, key="k", body_hash=b"1")
    first = await world.use.by_hand.request(once, principal="ann")
    again = await world.use.by_hand.request(once, principal="ann")
    assert [row.id for row in first] == [row.id for row in again] == [1, 2]
    other = Request(1, offer=SMALL, key="k", body_hash=b"2")
    with pytest.raises(AlreadyExists, match="another request"):
        await world.use.by_hand.request(other, principal="ann")
    # Also when it could not be had any more.
    await world.allow(killed=True)
    assert len(await world.use.by_hand.request(once, principal="ann")) == 2


async def test_a_kind_is_had_where_a_device_is_cheapest() -> None:
    world = World()
    await world.allow()
    await world.lead()
    rows = await world.use.by_hand.request(Request(6, kind="H100"), principal="ann")
    assert [row.offer.instance_type for row in rows] == ["big", "big"]
    with pytest.raises(InvalidInput, match="there are: H100"):
        await world.use.by_hand.request(Request(1, kind="V100"), principal="ann")


async def test_refusals_name_the_policy_or_the_budget() -> None:
    world = World()
    await world.lead()
    ask = world.use.by_hand.request
    with pytest.raises(FailedPrecondition, match="policy of all queues does not allow") as no:
        await ask(Request(1, offer=SMALL), principal="ann")
    assert no.value.code is ErrorCode.BURST_REFUSED
    await world.allow(per_hour=2)
    with pytest.raises(Exhausted, match=r"all queues is \$2.00 an hour, .* \(2 of the 3") as short:
        await ask(Request(3, offer=SMALL), principal="ann")
    assert short.value.code is ErrorCode.BUDGET_SHORT
    assert short.value.metadata["bound"] == "per_hour"
    assert await world.store.burst.live_instances() == []
    await world.allow(NLP, allowed=False)
    with pytest.raises(FailedPrecondition, match="queue nlp"):
        await ask(Request(1, offer=SMALL, queue=NLP), principal="ann")
    with pytest.raises(NotFound):
        await ask(Request(1, offer="cloud/z/small/spot"), principal="ann")
    for wrong in (Request(1), Request(1, offer=SMALL, kind="H100"), Request(1, "x", keep_s=-1)):
        with pytest.raises(InvalidInput):
            await ask(wrong, principal="ann")


async def test_fifty_at_the_last_dollar_get_what_it_buys() -> None:
    world = World()
    await world.allow(per_hour=5)
    await world.lead()

    async def ask() -> int:
        try:
            rows = await world.use.by_hand.request(Request(1, offer=SMALL), principal="ann")
        except Exhausted:
            return 0
        return len(rows)

    assert sum(await asyncio.gather(*(ask() for _ in range(50)))) == 5
    (budget,) = await world.store.burst.budgets()
    assert budget.rate == 5 * DOLLAR


async def test_what_is_kept_by_hand_is_not_ended_for_being_idle() -> None:
    world = World()
    await world.allow()
    leader = await world.lead()
    await world.use.by_hand.request(Request(1, offer=SMALL, keep_s=7200), principal="ann")
    row = await ready(world, leader)
    assert row.keep_until == row.requested_at + 60 + 7200
    await world.clock.advance(7000)
    assert await leader.decide() == []
    await world.clock.advance(3 * 3600)
    assert await leader.decide() == ["drain"]


async def test_released_at_once_or_drained() -> None:
    world = World(instance_drain_s=100, instance_grace_s=10)
    await world.allow()
    leader = await world.lead()
    await world.use.by_hand.request(Request(2, offer=SMALL), principal="ann")
    assert await leader.live() == ["booting", "booting"]
    await world.clock.advance(60)
    await world.join(await world.row(1))
    await leader.live()
    now = world.clock.now()
    slow, never = await world.use.by_hand.release([], every=True, now=False)
    assert (slow.state, slow.stop_at, slow.drain_by) == (
        InstanceState.DRAINING, now + 100, now + 110,
    )  # fmt: skip
    assert (never.state, never.cause) == (InstanceState.TERMINATING, EndCause.BY_HAND)
    (quick,) = await world.use.by_hand.release([slow.id], every=False, now=True)
    assert (quick.stop_at, quick.drain_by) == (now, now + 10)
    with pytest.raises(NotFound, match="77"):
        await world.use.by_hand.release([InstanceId(77)], every=False, now=True)
    with pytest.raises(InvalidInput):
        await world.use.by_hand.release([], every=False, now=True)


async def test_policies_change_by_path_and_by_etag() -> None:
    world = World()
    book = world.use.policies
    first = await book.set(BurstPolicy(NLP, allowed=True, generation=0), ["allowed"])
    assert (first.allowed, first.generation, first.budget) == (True, 1, Budget())
    budget = BurstPolicy(NLP, budget=Budget(per_hour=5, per_month=7), generation=1)
    changed = await book.set(budget, ["budget.per_hour"])
    assert (changed.allowed, changed.budget) == (True, Budget(5, None))
    with pytest.raises(Aborted, match="its etag is 2, not 1"):
        await book.set(budget, ["budget"])
    assert await book.get(NLP) == changed
    with pytest.raises(NotFound, match="no policy of its own"):
        await book.get("other")  # type: ignore[arg-type]
    killed = BurstPolicy(NLP, killed=True, most_price=-1, regions=("",), generation=0)
    with pytest.raises(InvalidInput) as wrong:
        await book.set(killed, ["kiled"])
    fields = [each.field for each in wrong.value.violations]
    assert fields == [
        "update_mask.paths[0]", "policy.most_price", "policy.regions[0]", "policy.killed",
    ]  # fmt: skip
    assert [each.queue for each in await book.all()][-1] == NLP
