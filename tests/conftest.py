"""Real servers for the tests, started once, and a clean place in them for each test.

A server that cannot start fails the tests that need it; none is ever skipped. A test
may kill, pause or stop them: the next one finds them well again.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tests.support import servers
from tests.support.databases import create_database, drop_database

FreshDatabase = Callable[..., Awaitable[str]]
VALKEY_DATABASES = 16

_numbers = count(1)


@pytest.fixture(scope="session")
def server_folder() -> Iterator[Path]:
    """Where the shared servers keep their data."""
    with servers.reachable_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def shared_postgres(server_folder: Path) -> Iterator[servers.PostgresLike]:
    """For fixtures that outlive a test; a test asks for `postgres_server`."""
    server = servers.postgres(server_folder / "postgres")
    asyncio.run(server.start())
    yield server
    asyncio.run(server.stop())


@pytest.fixture(scope="session")
def shared_valkey(server_folder: Path) -> Iterator[servers.ValkeyLike]:
    """For fixtures that outlive a test; a test asks for `valkey_server`."""
    server = servers.valkey(server_folder / "valkey")
    asyncio.run(server.start())
    yield server
    asyncio.run(server.stop())


@pytest.fixture(scope="session")
def shared_etcd(server_folder: Path) -> Iterator[servers.EtcdLike]:
    """For fixtures that outlive a test; a test asks for `etcd_server`."""
    cluster = servers.etcd(server_folder / "etcd", members=1)
    asyncio.run(cluster.start())
    yield cluster
    asyncio.run(cluster.stop())


@pytest.fixture(scope="session")
def shared_etcd_cluster(server_folder: Path) -> Iterator[servers.EtcdLike]:
    """For fixtures that outlive a test; a test asks for `etcd_cluster`."""
    cluster = servers.etcd(server_folder / "etcd3", members=3)
    asyncio.run(cluster.start())
    yield cluster
    for member in cluster.members:  # in good order, each would wait for a leader to follow
        if member.running():
            member.kill()


@pytest.fixture
async def postgres_server(shared_postgres: servers.PostgresLike) -> servers.PostgresLike:
    """PostgreSQL, up."""
    await _revive(shared_postgres)
    return shared_postgres


@pytest.fixture
async def valkey_server(shared_valkey: servers.ValkeyLike) -> servers.ValkeyLike:
    """Valkey, up."""
    await _revive(shared_valkey)
    return shared_valkey


@pytest.fixture
async def etcd_server(shared_etcd: servers.EtcdLike) -> servers.EtcdLike:
    """A cluster of one etcd member, up."""
    shared_etcd.resume()
    await shared_etcd.start()
    return shared_etcd


@pytest.fixture
async def etcd_cluster(shared_etcd_cluster: servers.EtcdLike) -> servers.EtcdLike:
    """A cluster of three etcd members, up."""
    shared_etcd_cluster.resume()
    await shared_etcd_cluster.start()
    return shared_etcd_cluster


@pytest.fixture
async def fresh_database(postgres_server: servers.PostgresLike) -> AsyncIterator[FreshDatabase]:
    """`await fresh_database(template=...)` gives the DSN of a database that goes with the test."""
    made: list[str] = []

    async def create(template: str = "template0") -> str:
        made.append(f"test_{next(_numbers)}")
        return await create_database(postgres_server, made[-1], template=template)

    yield create
    if made:
        await _revive(postgres_server)
    for name in made:
        await drop_database(postgres_server, name)


@pytest.fixture
async def postgres_dsn(fresh_database: FreshDatabase) -> str:
    """An empty database of the test's own."""
    return await fresh_database()


@pytest.fixture
def etcd_endpoints(etcd_server: servers.EtcdLike) -> tuple[str, ...]:
    """Of the single member."""
    return etcd_server.endpoints


@pytest.fixture
def etcd_prefix() -> str:
    """A place for keys that no other test uses."""
    return f"/atoll-test/{next(_numbers)}"


@pytest.fixture
async def valkey_url(valkey_server: servers.ValkeyLike) -> str:
    """One of Valkey's databases, emptied. Hints know no databases: they reach all of them."""
    url = valkey_server.url.rpartition("/")[0] + f"/{next(_numbers) % VALKEY_DATABASES}"
    async with Redis.from_url(url) as client:
        await client.flushdb()
    return url


async def _revive(server: servers.ServerLike) -> None:
    if server.running():
        server.resume()
    await server.start()
