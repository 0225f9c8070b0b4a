"""Fifty people at the last dollar, over a real server."""

import asyncio

from pydantic import SecretStr

from atoll.adapters.memory.streams import MemoryHints
from atoll.adapters.postgres.store import PostgresStore
from atoll.adapters.system import SystemClock, SystemIds
from atoll.burst.settings import BurstSettings
from atoll.burst.usecases.by_hand import Request
from atoll.burst.wiring import Broker
from atoll.core.model.burst import MICROS, Budget, BurstPolicy
from atoll.core.model.errors import ErrorCode, Exhausted
from atoll.core.model.ids import QueueName
from tests.adapters.burst_builders import offer

NLP, VISION = QueueName("nlp"), QueueName("vision")
CHEAP = offer(price=MICROS)


def replica(store: PostgresStore) -> Broker:
    """One process of the service."""

    async def nobody() -> str | None:
        return None

    settings = BurstSettings.model_validate({
        "providers": {"cloud": {}}, "join_secret": SecretStr("a secret of tests")
    })  # fmt: skip
    return Broker(
        store.burst, {}, hints=MemoryHints(), settings=settings, clock=SystemClock(),
        ids=SystemIds(), who_leads=nobody,
    )  # fmt: skip


async def ask(broker: Broker, number: int) -> int:
    """How many instances somebody got; refused is only who is short of money."""
    asked = Request(1, CHEAP.key, queue=(None, NLP, VISION)[number // 2 % 3], key=f"k{number // 2}")
    try:
        return len(await broker.use_cases.by_hand.request(asked, principal="ann"))
    except Exhausted as short:
        if short.code is not ErrorCode.BUDGET_SHORT:
            raise
        return 0


async def test_fifty_requests_from_two_replicas_at_the_last_dollar(store_dsn: str) -> None:
    stores = [PostgresStore.open(store_dsn, ids=SystemIds(), pool_size=8) for _ in range(2)]
    brokers = [replica(store) for store in stores]
    async with stores[0].burst.begin() as tx:
        await tx.put_offers("cloud", [CHEAP])
        for queue, dollars in ((None, 9), (NLP, 4)):
            limit = Budget(per_hour=dollars * MICROS, per_month=100 * MICROS)
            await tx.put_policy(BurstPolicy(queue, allowed=True, budget=limit))
    async with asyncio.timeout(60):
        had = await asyncio.gather(*(ask(brokers[n % 2], n) for n in range(50)))
    rows = await stores[0].burst.live_instances()
    rates = {each.queue: each.rate for each in await stores[0].burst.budgets()}
    assert sum(row.offer.price for row in rows) == rates[None] == 9 * MICROS
    assert len([row for row in rows if row.queue == NLP]) * MICROS == rates[NLP] <= 4 * MICROS
    # Who asked twice with one key got the same.
    assert 9 <= sum(had) <= 18
    for store in stores:
        await store.close()
