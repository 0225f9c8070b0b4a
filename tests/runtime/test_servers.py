"""Real servers as child processes: their life, and what is kept of them."""

import asyncio
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import psutil
import pytest
from redis.asyncio import Redis
from redis.exceptions import AuthenticationError

from atoll.adapters.etcd import EtcdConnection, EtcdUnavailable
from atoll.adapters.etcd import keys as etcd_keys
from atoll.runtime.servers import (
    EtcdCluster,
    EtcdServer,
    PostgresServer,
    Server,
    ServerError,
    ValkeyServer,
)
from atoll.runtime.servers.ports import is_free
from tests.support.servers import reachable_folder
from tests.support.waiting import eventually

START_ONE = """
import asyncio, sys, time
from pathlib import Path
from atoll.runtime.servers import ValkeyServer

server = ValkeyServer(Path(sys.argv[1]), detached=sys.argv[2] == "detached")
asyncio.run(server.start())
print(server.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """For one test's servers."""
    with reachable_folder() as made:
        yield made


async def write(server: Server) -> None:
    """Store something, acknowledged."""
    match server:
        case PostgresServer():
            connection = await asyncpg.connect(server.dsn, timeout=10)
            await connection.execute("CREATE TABLE kept AS SELECT 1 AS x")
            await connection.close()
        case ValkeyServer():
            async with Redis.from_url(server.url) as client:
                await client.set("kept", "1")
        case EtcdServer():
            etcd = EtcdConnection(server.endpoints)
            await etcd_keys.put(etcd, "kept", "1")
            await etcd.close()
        case _:
            raise AssertionError(server)


async def read(server: Server) -> str:
    """What was stored."""
    match server:
        case PostgresServer():
            connection = await asyncpg.connect(server.dsn, timeout=10)
            found = await connection.fetchval("SELECT x FROM kept")
            await connection.close()
            return str(found)
        case ValkeyServer():
            async with Redis.from_url(server.url, decode_responses=True) as client:
                return str(await client.get("kept"))
        case EtcdServer():
            etcd = EtcdConnection(server.endpoints)
            found = await etcd_keys.get(etcd, "kept")
            await etcd.close()
            return found.entries[0].value
        case _:
            raise AssertionError(server)


@pytest.mark.parametrize("kind", [PostgresServer, ValkeyServer, EtcdServer])
async def test_data_and_port_outlive_stop_and_kill(kind: type[Server], folder: Path) -> None:
    async with kind(folder / "s") as server:
        port = server.port
        await write(server)
        await server.restart()
        assert await read(server) == "1"
        server.kill()
        assert not server.running()
        await server.start()
        assert await read(server) == "1"
        assert server.port == port
    assert not server.running()
    assert is_free(port)


@pytest.mark.parametrize("kind", [PostgresServer, ValkeyServer, EtcdServer])
async def test_a_paused_server_runs_and_serves_nobody(kind: type[Server], folder: Path) -> None:
    async with kind(folder / "s") as server:
        server.pause()
        everybody = [
            psutil.Process(server.pid),
            *psutil.Process(server.pid).children(recursive=True),
        ]
        # A backend that ended before the pause cannot be reaped during it.
        still = {psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE}
        await eventually(lambda: all(each.status() in still for each in everybody))
        assert server.running()
        server.resume()
        await eventually(server.serves)


@pytest.mark.parametrize("kind", [PostgresServer, ValkeyServer, EtcdServer])
async def test_servers_listen_on_loopback_only(kind: type[Server], folder: Path) -> None:
    async with kind(folder / "s") as server:
        listening = [
            connection.laddr.ip
            for connection in psutil.Process(server.pid).net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        ]
        assert set(listening) == {"127.0.0.1"}


async def test_a_detached_server_lives_on_and_is_found_again(folder: Path) -> None:
    started, pid = start_one(folder / "s", "detached")
    started.kill()
    started.wait()
    found = ValkeyServer(folder / "s", detached=True)
    assert found.pid == pid
    await found.start()
    assert found.pid == pid
    await write(found)
    await found.stop()
    assert not found.running()


async def test_other_servers_end_with_the_process_that_started_them(folder: Path) -> None:
    started, pid = start_one(folder / "s", "attached")
    assert ValkeyServer(folder / "s").running()
    started.kill()
    started.wait()
    await eventually(lambda: not ValkeyServer(folder / "s").running())
    await eventually(lambda: ended(pid))


def ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def test_a_pid_that_is_another_process_now_is_left_alone(folder: Path) -> None:
    async with ValkeyServer(folder / "s") as server:
        await server.stop()
    state = json.loads((folder / "s" / "server.json").read_text())
    (folder / "s" / "server.json").write_text(json.dumps(state | {"pid": os.getpid()}))
    again = ValkeyServer(folder / "s")
    assert not again.running()
    await again.stop()
    with pytest.raises(ServerError, match="does not run"):
        again.kill()


async def test_a_server_that_cannot_start_shows_the_end_of_its_log(folder: Path) -> None:
    server = PostgresServer(folder / "s", settings={"shared_buffers": "plenty"})
    with pytest.raises(ServerError, match='invalid value for parameter "shared_buffers"'):
        await server.start()
    assert not server.running()


async def test_a_port_asked_for_is_not_exchanged(folder: Path) -> None:
    async with ValkeyServer(folder / "first") as first:
        with pytest.raises(ServerError, match="in use"):
            await ValkeyServer(folder / "second", port=first.port).start()
        async with ValkeyServer(folder / "third") as third:
            assert third.port != first.port


async def test_a_remembered_port_that_another_took_is_exchanged(folder: Path) -> None:
    async with ValkeyServer(folder / "first") as first:
        port = first.port
    async with ValkeyServer(folder / "other", port=port), ValkeyServer(folder / "first") as again:
        assert again.port != port


async def test_passwords_are_needed_and_kept_from_others(folder: Path) -> None:
    async with PostgresServer(folder / "pg") as postgres, ValkeyServer(folder / "v") as valkey:
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(postgres.dsn.replace("atoll:", "atoll:x"), timeout=10)
        refused = valkey.url.replace("redis://:", "redis://:x")
        with pytest.raises(AuthenticationError):
            await Redis.from_url(refused).ping()
        for server in (postgres, valkey):
            secret = (server.data_dir / "password").read_text()
            everything = " ".join(psutil.Process(server.pid).cmdline())
            assert secret not in everything
            for path in server.data_dir.iterdir():
                mode = stat.S_IMODE(path.stat().st_mode)
                assert path.name in {"run", "server.json"} or not mode & 0o077, path


async def test_commits_are_durable(folder: Path) -> None:
    async with PostgresServer(folder / "pg") as server:
        connection = await asyncpg.connect(server.dsn, timeout=10)
        for name in ("fsync", "synchronous_commit", "full_page_writes"):
            assert await connection.fetchval(f"SHOW {name}") == "on"
        assert await connection.fetchval("SHOW max_connections") == "200"
        found = await connection.fetchrow(
            "SELECT datlocprovider, datlocale FROM pg_database WHERE datname = 'atoll'"
        )
        assert found is not None
        assert tuple(found) == (b"b", "C.UTF-8")
        await connection.close()


async def test_postgres_listens_on_a_unix_socket_too(folder: Path) -> None:
    async with PostgresServer(folder / "pg") as server:
        assert server.socket_dir is not None
        connection = await asyncpg.connect(
            server.dsn, host=str(server.socket_dir), port=server.port, timeout=10
        )
        assert await connection.fetchval("SELECT inet_server_addr() IS NULL")
        await connection.close()
    deep = PostgresServer(folder / ("d" * 90))
    assert deep.socket_dir is None
    async with deep:
        assert await deep.serves()


async def test_an_interrupted_initdb_is_begun_again(folder: Path) -> None:
    server = PostgresServer(folder / "pg")
    starting = asyncio.ensure_future(server.start())
    await eventually((folder / "pg" / "data.new" / "base").exists)
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    async with server:
        assert await server.serves()


async def test_three_members_elect_one_and_outlive_one(folder: Path) -> None:
    async with EtcdCluster(folder / "e", members=3) as cluster:
        etcd = EtcdConnection(cluster.endpoints)
        await etcd_keys.put(etcd, "kept", "1")
        cluster.members[0].kill()
        assert not cluster.running()
        await eventually(lambda: readable(etcd))
        await cluster.start()
        await cluster.restart()
        assert [await read(member) for member in cluster.members] == ["1", "1", "1"]
        await etcd.close()
        for member in cluster.members:
            member.kill()


async def readable(etcd: EtcdConnection) -> bool:
    """Whether a majority has somebody who leads it."""
    try:
        return bool((await etcd_keys.get(etcd, "kept")).entries)
    except EtcdUnavailable:
        return False


def start_one(folder: Path, how: str) -> "tuple[subprocess.Popen[bytes], int]":
    """A process that started a server, and the server's pid."""
    process = subprocess.Popen(
        [sys.executable, "-c", START_ONE, str(folder), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())
