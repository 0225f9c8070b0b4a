"""The fixtures that every other test stands on."""

import asyncpg
import pytest
from redis.asyncio import Redis

from atoll.adapters.etcd import EtcdConnection
from atoll.adapters.etcd import keys as etcd_keys
from tests.conftest import FreshDatabase
from tests.support.servers import EtcdLike, PostgresLike, ValkeyLike


async def test_a_database_is_empty_or_a_copy_of_its_template(
    postgres_dsn: str, fresh_database: FreshDatabase
) -> None:
    assert await tables(postgres_dsn) == []
    connection = await asyncpg.connect(postgres_dsn, timeout=10)
    await connection.execute("CREATE TABLE kept ()")
    await connection.close()
    copy = await fresh_database(template=postgres_dsn.rpartition("/")[2])
    assert await tables(copy) == ["kept"]
    assert await tables(await fresh_database()) == []


@pytest.mark.parametrize("fault", ["none", "killed", "paused"])
async def test_whatever_a_test_does_to_the_servers_the_next_finds_them_well(
    fault: str,
    postgres_server: PostgresLike,
    valkey_server: ValkeyLike,
    etcd_cluster: EtcdLike,
    *,
    postgres_dsn: str,
    valkey_url: str,
) -> None:
    assert await tables(postgres_dsn) == []
    async with Redis.from_url(valkey_url) as client:
        assert await client.dbsize() == 0
        await client.set("left", "behind")
    etcd = EtcdConnection(etcd_cluster.endpoints)
    await etcd_keys.get(etcd, "/")
    await etcd.close()
    for server in (postgres_server, valkey_server, *etcd_cluster.members[:2]):
        if fault == "killed":
            server.kill()
        elif fault == "paused":
            server.pause()


async def tables(dsn: str) -> list[str]:
    connection = await asyncpg.connect(dsn, timeout=10)
    found = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    await connection.close()
    return [row["tablename"] for row in found]
