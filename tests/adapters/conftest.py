"""A store of each kind, and what only a real server can do."""

from collections.abc import AsyncIterator

import pytest

from tests.adapters.store_worlds import MemoryWorld, PostgresWorld, StoreWorld


@pytest.fixture(params=["memory", "postgres"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[StoreWorld]:
    """A store of each kind."""
    found: StoreWorld
    if request.param == "memory":
        found = MemoryWorld()
    else:
        found = PostgresWorld(request.getfixturevalue("store_dsn"))
    yield found
    await found.close()


@pytest.fixture
async def postgres_world(store_dsn: str) -> AsyncIterator[PostgresWorld]:
    """For what only a real server can do."""
    found = PostgresWorld(store_dsn)
    yield found
    await found.close()
