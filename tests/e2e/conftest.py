"""A whole Atoll of each test's own, over the shared real servers."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from atoll.adapters.postgres.migrate import upgrade
from tests.conftest import FreshDatabase
from tests.e2e.stack import Stack
from tests.support.background import Background
from tests.support.databases import create_database
from tests.support.servers import EtcdLike, PostgresLike

TEMPLATE = "e2e_template"


@pytest.fixture(scope="session")
def e2e_template(shared_postgres: PostgresLike, background: Background) -> str:
    """Name of a database with the schema."""
    dsn = background.run(create_database(shared_postgres, TEMPLATE))
    background.run(asyncio.to_thread(upgrade, dsn))
    return TEMPLATE


@pytest.fixture
async def stack(
    tmp_path: Path,
    e2e_template: str,
    fresh_database: FreshDatabase,
    etcd_cluster: EtcdLike,
    valkey_url: str,
    etcd_prefix: str,
) -> AsyncIterator[Stack]:
    """Not started yet; ended with the test."""
    made = Stack(
        folder=tmp_path,
        dsn=await fresh_database(template=e2e_template),
        etcd_endpoints=etcd_cluster.endpoints,
        redis_url=valkey_url,
        etcd_prefix=etcd_prefix,
    )
    yield made
    await asyncio.to_thread(made.stop)
