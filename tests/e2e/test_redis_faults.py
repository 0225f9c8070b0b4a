"""Losing all of Redis costs latency, never a job."""

import asyncio

from redis.asyncio import Redis

from tests.e2e.load import Load, quiet
from tests.e2e.oracle import check
from tests.e2e.stack import Stack, metrics_of
from tests.support.servers import ValkeyLike
from tests.support.waiting import eventually

DOWN_S = 10.0


async def test_flushall_in_load(stack: Stack) -> None:
    await stack.start(("alpha", "beta"))
    async with stack.client() as client:
        async with Load(client) as load:
            for _ in range(5):
                await load.reach(len(load.acknowledged) + 40)
                async with Redis.from_url(stack.redis_url) as redis:
                    await eventually(lambda: holds_something(redis))
                    await redis.flushall()
        await quiet(stack, load.acknowledged)
    await check(stack, load.acknowledged)


async def holds_something(redis: Redis) -> bool:
    """Whether there is anything to lose."""
    return bool(await redis.dbsize())


async def test_redis_down_for_ten_seconds(stack: Stack, valkey_server: ValkeyLike) -> None:
    await stack.start(("alpha", "beta"))
    async with stack.client() as client:
        async with Load(client, pause_s=0.5) as load:
            await load.reach(40)
            valkey_server.kill()
            before = len(load.acknowledged)
            await asyncio.sleep(DOWN_S)
            await load.reach(before + 80)
            during = load.acknowledged[before:-40]
            # Decisions go on by way of PostgreSQL while Redis is away.
            await quiet(stack, during[: len(during) // 2])
            assert not valkey_server.running()
            await valkey_server.start()
            await load.reach(len(load.acknowledged) + 40)
        await quiet(stack, load.acknowledged)
    assert len(during) > 0
    assert metrics_of(stack.placements[0])["atoll_placement_unpublished_decisions_total"] > 0
    await check(stack, load.acknowledged)
