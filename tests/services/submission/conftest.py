"""The service over PostgreSQL, and over the store in memory."""

from collections.abc import AsyncIterator

import pytest

from atoll.adapters.memory.store import MemoryDatabase, MemoryStore
from atoll.adapters.postgres.store import PostgresStore
from atoll.adapters.system import SystemClock, SystemIds
from tests.services.submission.worlds import Caller, Stores, World


@pytest.fixture
async def postgres_store(store_dsn: str) -> AsyncIterator[PostgresStore]:
    """Over a database of the test's own."""
    store = PostgresStore.open(store_dsn, ids=SystemIds(), pool_size=6, application="test")
    yield store
    await store.close()


@pytest.fixture
def memory_store() -> MemoryStore:
    """With nothing but the default queue."""
    return MemoryStore(MemoryDatabase(), SystemClock())


@pytest.fixture(params=["memory_store", "postgres_store"])
def stores(request: pytest.FixtureRequest) -> Stores:
    """Each store in turn."""
    chosen: Stores = request.getfixturevalue(request.param)
    return chosen


@pytest.fixture
async def world(stores: Stores) -> AsyncIterator[World]:
    """The service, serving."""
    made = World(stores)
    await made.start()
    yield made
    await made.close()


@pytest.fixture
def ann(world: World) -> Caller:
    """A user of the default tenant."""
    return world.caller("ann")
