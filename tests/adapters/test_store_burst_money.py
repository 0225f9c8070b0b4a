import asyncio
from datetime import UTC, datetime

from atoll.core.model.burst import InstanceId, InstanceState
from atoll.core.model.burst_time import HOUR_S, hour_of, month_of
from atoll.ports.store.burst import TO_END_S, BudgetShort, BudgetState, SpendEntry
from atoll.ports.store.common import Contended
from tests.adapters.burst_builders import (
    DOLLAR,
    EXAMS,
    NLP,
    VISION,
    move,
    offer,
    rent,
    set_policy,
    take,
    take_and_add,
    wish,
)
from tests.adapters.store_worlds import PostgresWorld, Store, StoreWorld


async def now(store: Store) -> float:
    async with store.burst.begin() as tx:
        return await tx.now()


async def spend(store: Store, *entries: SpendEntry) -> None:
    async with store.burst.begin() as tx:
        await tx.spend(entries)


def test_months_and_hours_begin_in_utc() -> None:
    late = datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
    assert month_of(late) == datetime(2026, 12, 1, tzinfo=UTC).timestamp()
    assert month_of(late + 1) == hour_of(late + 1) == late + 1
    assert hour_of(late) == late + 1 - HOUR_S


async def test_an_hour_binds_a_queue_and_all_above_it(world: StoreWorld) -> None:
    await set_policy(world.store, None, per_hour=10)
    await set_policy(world.store, NLP, per_hour=6)
    assert await take(world.store, EXAMS, rate=4) is None
    assert await take(world.store, NLP, rate=3) == BudgetShort(NLP, "per_hour", 6, left=2, asked=3)
    assert await take(world.store, VISION, rate=7) == BudgetShort(
        None, "per_hour", 10, left=6, asked=7
    )
    assert await take(world.store, VISION, rate=6) is None
    rates = {each.queue: each.rate for each in await world.store.burst.budgets()}
    assert rates == {None: 10, NLP: 4, EXAMS: 4, VISION: 6}
    async with world.store.burst.begin() as tx:
        await tx.give_back_budget(EXAMS, rate=4)
    rates = {each.queue: each.rate for each in await world.store.burst.budgets()}
    assert rates == {None: 6, NLP: 0, EXAMS: 0, VISION: 6}


async def test_without_a_bound_everything_goes_and_with_nothing_nothing(world: StoreWorld) -> None:
    assert await take(world.store, NLP, rate=10**12, ahead=10**12) is None
    await set_policy(world.store, None, per_hour=0)
    assert await take(world.store, VISION, rate=1) == BudgetShort(
        None, "per_hour", 0, left=0, asked=1
    )


async def test_a_month_counts_what_was_spent_and_what_is_bound(world: StoreWorld) -> None:
    store = world.store
    await set_policy(store, NLP, per_month=100 * DOLLAR)
    made = await rent(store, queue=EXAMS)
    hour = hour_of(await now(store))
    await spend(store, SpendEntry(made.id, EXAMS, hour, 30 * DOLLAR))
    assert await take(store, EXAMS, rate=40 * DOLLAR, ahead=70 * DOLLAR) is None
    bound = int(40 * DOLLAR * TO_END_S) // HOUR_S
    left = 70 * DOLLAR - bound
    short = await take(store, EXAMS, rate=1, ahead=left + 1)
    assert short == BudgetShort(NLP, "per_month", 100 * DOLLAR, left=left, asked=left + 1)
    assert await take(store, EXAMS, rate=0, ahead=left) is None


async def test_a_month_counts_what_runs_and_is_not_in_the_ledger_yet(world: StoreWorld) -> None:
    store = world.store
    await set_policy(store, NLP, per_month=100 * DOLLAR)
    made = await rent(store, queue=EXAMS, offer=offer(price=36 * DOLLAR))
    at = await now(store)
    await move(store, made, InstanceState.READY, created_at=at - 2 * HOUR_S)
    await spend(store, SpendEntry(made.id, EXAMS, hour_of(at), 36 * DOLLAR))
    # 36 are counted, and 36 more are owed.
    assert await take(store, NLP, rate=0, ahead=27 * DOLLAR) is None
    short = await take(store, NLP, rate=0, ahead=29 * DOLLAR)
    assert short is not None
    assert 27 * DOLLAR <= short.left <= 28 * DOLLAR
    assert await take(store, VISION, rate=0, ahead=29 * DOLLAR) is None


async def test_months_and_hours_roll_over(world: StoreWorld) -> None:
    store = world.store
    at = await now(store)
    before = month_of(at) - HOUR_S
    made = await rent(store, queue=NLP)
    await set_policy(store, None, per_month=10)
    await spend(store, SpendEntry(made.id, NLP, before, 10))
    assert {each.month for each in await store.burst.budgets()} == {0}
    assert await take(store, NLP, rate=0, ahead=10) is None
    await spend(
        store,
        SpendEntry(made.id, NLP, hour_of(at), 7),
        SpendEntry(made.id, NLP, before, 5),
    )
    states = {each.queue: each for each in await store.burst.budgets()}
    assert states[NLP] == BudgetState(NLP, rate=0, hour=7, month=7)
    assert await take(store, NLP, rate=0, ahead=4) is not None
    assert (await store.burst.instances([made.id]))[made.id].spent == 22


async def test_spend_is_told_by_hour_with_the_queues_below(world: StoreWorld) -> None:
    store = world.store
    first, second, third = [
        await rent(store, token, queue=queue)
        for token, queue in (("a", NLP), ("b", EXAMS), ("c", None))
    ]
    hour = 100 * HOUR_S
    await spend(
        store,
        SpendEntry(first.id, NLP, hour, 1),
        SpendEntry(first.id, NLP, hour, 1),
        SpendEntry(second.id, EXAMS, hour, 10),
        SpendEntry(second.id, EXAMS, hour + HOUR_S, 20),
        SpendEntry(third.id, None, hour + 2 * HOUR_S, 100),
    )
    burst, span = store.burst, {"since": hour + 5.0, "until": hour + 3.0 * HOUR_S}
    assert await burst.spent(NLP, **span) == [(hour, 12), (hour + HOUR_S, 20)]
    assert await burst.spent(EXAMS, **span) == [(hour, 10), (hour + HOUR_S, 20)]
    assert [amount for _, amount in await burst.spent(None, **span)] == [12, 20, 100]
    assert await burst.spent(None, since=hour + HOUR_S, until=hour + HOUR_S + 1.0) == [
        (hour + HOUR_S, 20)
    ]
    assert await burst.spent(VISION, **span) == []
    assert (await burst.instances([second.id]))[second.id].spent == 30


async def test_a_budget_that_is_lowered_below_what_runs_binds_no_more(world: StoreWorld) -> None:
    store = world.store
    await set_policy(store, NLP, per_hour=10)
    assert await take(store, NLP, rate=10) is None
    await set_policy(store, NLP, per_hour=4)
    assert await take(store, NLP, rate=1) == BudgetShort(NLP, "per_hour", 4, left=0, asked=1)
    async with store.burst.begin() as tx:
        await tx.give_back_budget(NLP, rate=7)
    assert await take(store, NLP, rate=1) is None
    async with store.burst.begin() as tx:
        await tx.give_back_budget(NLP, rate=1000)
    assert {each.rate for each in await store.burst.budgets()} == {0}


async def test_ledgers_go_a_year_after_the_instances(world: StoreWorld) -> None:
    store = world.store
    made = await rent(store)
    day = 24 * HOUR_S
    await spend(store, *(SpendEntry(made.id, None, at * day, 1) for at in (1, 400)))
    assert await store.burst.prune(before=380.0 * day) == 1
    assert [at for at, _ in await store.burst.spent(None, since=0, until=1e9)] == [400 * day]


async def test_fifty_at_the_last_dollar_never_spend_more(postgres_world: PostgresWorld) -> None:
    store = postgres_world.store
    await set_policy(store, None, per_hour=10 * DOLLAR)
    await set_policy(store, NLP, per_hour=7 * DOLLAR)

    async def ask(number: int) -> list[InstanceId]:
        queue = (EXAMS, NLP, VISION)[number % 3]
        wanted = wish(f"t{number}", queue=queue, offer=offer(price=DOLLAR))
        while True:
            try:
                async with store.burst.begin() as tx:
                    return [each.id for each in await take_and_add(tx, [wanted])]
            except Contended:
                continue

    async with asyncio.timeout(60):
        made = await asyncio.gather(*(ask(number) for number in range(50)))
    live = await store.burst.live_instances()
    assert sorted(each.id for each in live) == sorted(i for ids in made for i in ids)
    assert sum(each.offer.price for each in live) == 10 * DOLLAR
    below = [each for each in live if each.queue in (NLP, EXAMS)]
    assert sum(each.offer.price for each in below) <= 7 * DOLLAR
    rates = {each.queue: each.rate for each in await store.burst.budgets()}
    assert rates[None] == 10 * DOLLAR
    assert rates[NLP] == len(below) * DOLLAR


async def test_whoever_lowers_a_budget_is_not_overtaken(postgres_world: PostgresWorld) -> None:
    store = postgres_world.store
    await set_policy(store, None, per_hour=10)
    policy = (await store.burst.policies())[0]
    async with store.burst.begin() as tx:
        await tx.lock_policy(None)
        asking = asyncio.create_task(take(postgres_world.another(), NLP, rate=10))
        await asyncio.sleep(0.1)
        assert not asking.done()
        lowered = type(policy)(None, allowed=True, budget=type(policy.budget)(per_hour=3))
        await tx.put_policy(lowered)
    async with asyncio.timeout(60):
        assert await asking == BudgetShort(None, "per_hour", 3, left=3, asked=10)
