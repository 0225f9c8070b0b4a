"""Real servers for the tests, started once, and a clean place in them for each test.

A server that cannot start fails the tests that need it; none is ever skipped. A test
may kill, pause or stop them: the next one finds them well again.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from atoll.adapters.postgres.migrate import upgrade
from tests.support import servers
from tests.support.background import Background
from tests.support.databases import create_database, drop_database

FreshDatabase = Callable[..., Coroutine[Any, Any, str]]
VALKEY_DATABASES = 16
MIGRATED = "migrated"

_numbers = count(1)


@pytest.fixture(scope="session")
def background() -> Background:
    """Runs coroutines for fixtures that outlive a test, even inside another fixture's loop."""
    return Background()


@pytest.fixture(scope="session")
def server_folder() -> Iterator[Path]:
    """Where the shared servers keep their data."""
    with servers.reachable_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def shared_postgres(server_folder: Path, background: Background) -> Iterator[servers.PostgresLike]:
    """For fixtures that outlive a test; a test asks for `postgres_server`."""
    server = servers.postgres(server_folder / "postgres")
    background.run(server.start())
    yield server
    background.run(server.stop())


@pytest.fixture(scope="session")
def shared_valkey(server_folder: Path, background: Background) -> Iterator[servers.ValkeyLike]:
    """For fixtures that outlive a test; a test asks for `valkey_server`."""
    server = servers.valkey(server_folder / "valkey")
    background.run(server.start())
    yield server
    background.run(server.stop())


@pytest.fixture(scope="session")
def shared_etcd(server_folder: Path, background: Background) -> Iterator[servers.EtcdLike]:
    """For fixtures that outlive a test; a test asks for `etcd_server`."""
    cluster = servers.etcd(server_folder / "etcd", members=1)
    background.run(cluster.start())
    yield cluster
    background.run(cluster.stop())


@pytest.fixture(scope="session")
def shared_etcd_cluster(server_folder: Path, background: Background) -> Iterator[servers.EtcdLike]:
    """For fixtures that outlive a test; a test asks for `etcd_cluster`."""
    cluster = servers.etcd(server_folder / "etcd3", members=3)
    background.run(cluster.start())
    yield cluster
    for member in cluster.members:  # in good order, each would wait for a leader to follow
        if member.running():
            member.kill()


@pytest.fixture
def postgres_server(
    shared_postgres: servers.PostgresLike, background: Background
) -> servers.PostgresLike:
    """PostgreSQL, up."""
    background.run(_revive(shared_postgres))
    return shared_postgres


@pytest.fixture
def valkey_server(shared_valkey: servers.ValkeyLike, background: Background) -> servers.ValkeyLike:
    """Valkey, up."""
    background.run(_revive(shared_valkey))
    return shared_valkey


@pytest.fixture
def etcd_server(shared_etcd: servers.EtcdLike, background: Background) -> servers.EtcdLike:
    """A cluster of one etcd member, up."""
    background.run(_revive_all(shared_etcd))
    return shared_etcd


@pytest.fixture
def etcd_cluster(shared_etcd_cluster: servers.EtcdLike, background: Background) -> servers.EtcdLike:
    """A cluster of three etcd members, up."""
    background.run(_revive_all(shared_etcd_cluster))
    return shared_etcd_cluster


@pytest.fixture
def fresh_database(
    postgres_server: servers.PostgresLike, background: Background
) -> Iterator[FreshDatabase]:
    """`await fresh_database(template=...)` gives the DSN of a database that goes with the test."""
    made: list[str] = []

    async def create(template: str = "template0") -> str:
        made.append(f"test_{next(_numbers)}")
        return await create_database(postgres_server, made[-1], template=template)

    yield create
    if made:
        background.run(_revive(postgres_server))
    for name in made:
        background.run(drop_database(postgres_server, name))


@pytest.fixture
def postgres_dsn(fresh_database: FreshDatabase, background: Background) -> str:
    """An empty database of the test's own."""
    return background.run(fresh_database())


@pytest.fixture(scope="session")
def migrated_template(shared_postgres: servers.PostgresLike, background: Background) -> str:
    """Name of a database with the newest schema, to be copied."""
    dsn = background.run(create_database(shared_postgres, MIGRATED))
    background.run(asyncio.to_thread(upgrade, dsn))
    return MIGRATED


@pytest.fixture
def store_dsn(fresh_database: FreshDatabase, migrated_template: str, background: Background) -> str:
    """A database of the test's own, with the newest schema."""
    return background.run(fresh_database(template=migrated_template))


@pytest.fixture
def etcd_endpoints(etcd_server: servers.EtcdLike) -> tuple[str, ...]:
    """Of the single member."""
    return etcd_server.endpoints


@pytest.fixture
def etcd_prefix() -> str:
    """A place for keys that no other test uses."""
    return f"/atoll-test/{next(_numbers)}"


@pytest.fixture
def valkey_url(valkey_server: servers.ValkeyLike, background: Background) -> str:
    """One of Valkey's databases, emptied. Hints know no databases: they reach all of them."""
    url = valkey_server.url.rpartition("/")[0] + f"/{next(_numbers) % VALKEY_DATABASES}"
    background.run(_flush(url))
    return url


async def _revive(server: servers.ServerLike) -> None:
    if server.running():
        server.resume()
    await server.start()


async def _revive_all(cluster: servers.EtcdLike) -> None:
    cluster.resume()
    await cluster.start()


async def _flush(url: str) -> None:
    async with Redis.from_url(url) as client:
        await client.flushdb()
