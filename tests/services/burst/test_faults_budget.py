"""Budgets hold: at the last dollar, when they are lowered, when a month runs out."""

import asyncio
from datetime import UTC, datetime

import pytest

from atoll.burst.usecases.by_hand import Request
from atoll.core.model.burst import EndCause, InstanceState
from atoll.core.model.burst_time import month_of
from atoll.core.model.errors import Exhausted
from atoll.core.model.ids import QueueName
from tests.services.burst.worlds import DOLLAR, NLP, SMALL, Leader, World

EXAMS, VISION = QueueName("nlp.exams"), QueueName("vision")
MINUTE, HOUR = 60.0, 3600.0


async def rates(world: World) -> dict[QueueName | None, int]:
    return {each.queue: each.rate for each in await world.store.burst.budgets()}


async def step(world: World, leader: Leader, seconds: float) -> None:
    """What the loop does all the time."""
    await world.clock.advance(seconds)
    await leader.upkeep.count_spend()
    await leader.decide()
    await leader.live()


async def join_all(world: World, leader: Leader) -> None:
    """What was asked for is READY a minute later."""
    await leader.live()
    await world.clock.advance(MINUTE)
    for row in await world.store.burst.live_instances():
        await world.join(row)
    await leader.live()


async def test_people_and_the_broker_at_the_last_dollar_get_what_it_buys() -> None:
    world = World()
    await world.allow(per_hour=5, hour_of_delay=10 * DOLLAR)
    await world.allow(NLP, per_hour=3, hour_of_delay=10 * DOLLAR)
    leader = await world.lead()
    await world.want(*range(1, 21), queue=EXAMS)
    another = world.another().use_cases

    async def ask(number: int) -> int:
        use, queue = (world.use, another)[number % 2], (NLP, EXAMS, VISION)[number % 3]
        try:
            rows = await use.by_hand.request(Request(1, SMALL, queue=queue), principal="ann")
        except Exhausted:
            return 0
        return len(rows)

    *had, _ = await asyncio.gather(*(ask(number) for number in range(50)), leader.decide())
    rows = await world.store.burst.live_instances()
    bound = await rates(world)
    assert sum(row.offer.price for row in rows) == bound[None] == 5 * DOLLAR
    below = [row for row in rows if row.queue in {NLP, EXAMS}]
    assert sum(row.offer.price for row in below) == bound[NLP] <= 3 * DOLLAR
    assert len(rows) >= sum(n for n in had if isinstance(n, int)) > 0


async def test_a_month_that_runs_out_ends_what_runs_and_the_next_one_begins() -> None:
    world = World()
    late = datetime(2027, 3, 31, 12, tzinfo=UTC).timestamp()
    world.clock.jump(late - world.clock.now())
    await world.allow(per_hour=10)
    leader = await world.lead()
    await world.use.by_hand.request(Request(2, SMALL, keep_s=40 * HOUR), principal="ann")
    await world.allow(per_hour=10, per_month=5, hour_of_delay=50 * DOLLAR)
    await join_all(world, leader)
    most = 0
    for _ in range(330):
        await step(world, leader, 30.0)
        everybody = (await world.store.burst.budgets())[0]
        most = max(most, everybody.month)
        assert everybody.month <= 5 * DOLLAR
    assert most > 3 * DOLLAR
    ended = await world.store.burst.list_instances(ended=True, before=0, limit=9)
    assert {(row.state, row.cause) for row in ended} == {
        (InstanceState.TERMINATED, EndCause.BUDGET)
    }
    await world.want(1, 2, 3)
    await leader.decide()
    assert await world.store.burst.live_instances() == []
    with pytest.raises(Exhausted, match="month"):
        await world.use.by_hand.request(Request(1, SMALL, keep_s=HOUR), principal="ann")
    world.clock.jump(month_of(world.clock.now() + 24 * HOUR) - world.clock.now())
    assert await world.use.by_hand.request(Request(1, SMALL, keep_s=HOUR), principal="ann")


async def test_a_month_lowered_below_what_was_spent_ends_everything() -> None:
    world = World()
    await world.allow(NLP, hour_of_delay=50 * DOLLAR)
    leader = await world.lead()
    await world.use.by_hand.request(Request(3, SMALL, queue=EXAMS, keep_s=1e6), principal="ann")
    await join_all(world, leader)
    for _ in range(10):
        await step(world, leader, 30 * MINUTE)
    spent = (await world.store.burst.budgets())[0].month
    assert spent > 10 * DOLLAR
    await world.allow(NLP, per_month=1, hour_of_delay=50 * DOLLAR)
    await world.want(*range(1, 9), queue=EXAMS)
    for _ in range(8):
        await step(world, leader, MINUTE)
    assert await world.store.burst.live_instances() == []
    assert set((await rates(world)).values()) == {0}
    after = (await world.store.burst.budgets())[0].month
    # What it took to end three of them, and not a request more.
    assert after - spent <= 3 * DOLLAR // 4
    assert len(world.machines()) == 3
