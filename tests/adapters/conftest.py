"""A database with the schema in it, made once and copied for each test."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from atoll.adapters.postgres.migrate import upgrade
from tests.adapters.store_worlds import MemoryWorld, PostgresWorld, StoreWorld
from tests.conftest import FreshDatabase
from tests.support.background import Background
from tests.support.databases import create_database
from tests.support.servers import PostgresLike

TEMPLATE = "store_template"


@pytest.fixture(scope="session")
def store_template(shared_postgres: PostgresLike, background: Background) -> str:
    """Name of a database with the schema."""
    dsn = background.run(create_database(shared_postgres, TEMPLATE))
    background.run(_migrated(dsn))
    return TEMPLATE


async def _migrated(dsn: str) -> None:
    await asyncio.to_thread(upgrade, dsn)


@pytest.fixture
def store_dsn(store_template: str, fresh_database: FreshDatabase, background: Background) -> str:
    """A database of the test's own, with the schema."""
    return background.run(fresh_database(template=store_template))


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
