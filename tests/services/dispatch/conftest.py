"""A world around dispatch: in memory, over real servers, and over ways to them that can break."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest

from atoll.adapters.memory.store import MemoryDatabase, MemoryStore
from atoll.adapters.memory.streams import MemoryDecisionStream, MemoryHints
from atoll.adapters.postgres.store import PostgresStore
from atoll.adapters.redis_streams import RedisDecisionStream, RedisHints
from atoll.adapters.system import SystemClock, SystemIds
from tests.services.dispatch.worlds import Outside, World
from tests.support.proxy import Proxy
from tests.support.servers import PostgresLike, ValkeyLike


@dataclass(frozen=True)
class Ways:
    """How dispatch reaches its servers."""

    database: Proxy
    redis: Proxy


@pytest.fixture
async def memory_world() -> AsyncIterator[World]:
    """Everything in this process."""
    clock = SystemClock()
    stores = MemoryStore(MemoryDatabase(), clock)
    world = World(stores, Outside(stores, MemoryDecisionStream(clock), MemoryHints()))
    async with world.exits:
        yield world


@pytest.fixture
async def real_world(store_dsn: str, valkey_url: str) -> AsyncIterator[World]:
    """Over PostgreSQL and Valkey."""
    async with AsyncExitStack() as exits:
        outside = _outside(exits, store_dsn, valkey_url)
        world = World(outside.stores, outside)
        async with world.exits:
            yield world


@pytest.fixture
async def ways(postgres_server: PostgresLike, valkey_server: ValkeyLike) -> AsyncIterator[Ways]:
    """Proxies to both servers."""
    async with Proxy(postgres_server.port) as database, Proxy(valkey_server.port) as redis:
        yield Ways(database, redis)


@pytest.fixture
async def broken_world(
    store_dsn: str,
    valkey_url: str,
    ways: Ways,
    postgres_server: PostgresLike,
    valkey_server: ValkeyLike,
) -> AsyncIterator[World]:
    """Replicas go through the proxies; the test's own hands do not."""
    async with AsyncExitStack() as exits:
        mine = _outside(exits, store_dsn, valkey_url)
        theirs = _outside(
            exits,
            store_dsn.replace(f":{postgres_server.port}/", f":{ways.database.port}/"),
            valkey_url.replace(f":{valkey_server.port}/", f":{ways.redis.port}/"),
        )
        world = World(mine.stores, mine, replicas=theirs)
        async with world.exits:
            yield world
        ways.database.heal()
        ways.redis.heal()


@pytest.fixture(params=["memory", "real"])
def world(request: pytest.FixtureRequest) -> World:
    """Either, for what has to hold over both."""
    found: World = request.getfixturevalue(f"{request.param}_world")
    return found


def _outside(exits: AsyncExitStack, dsn: str, url: str) -> Outside:
    store = PostgresStore.open(dsn, ids=SystemIds(), pool_size=8, application="test-dispatch")
    stream, hints = RedisDecisionStream(url), RedisHints(url, clock=SystemClock())
    for closing in (store.close, stream.close, hints.close):
        exits.push_async_callback(closing)
    return Outside(store, stream, hints)
