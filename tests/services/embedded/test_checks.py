"""What `atoll doctor` is told about a machine."""

import socket
from pathlib import Path

import pytest

from atoll.embedded import checks, checks_machine
from atoll.embedded.layout import Layout
from atoll.embedded.told import Told
from atoll.runtime.servers.errors import ServerError
from atoll.runtime.servers.ports import free_ports


@pytest.fixture
def layout(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.setattr(checks_machine, "USUAL", {})  # others' servers are nothing to the tests
    monkeypatch.setattr(checks_machine, "SLOW_FSYNC_MS", 60_000)  # nor is what else the disk does
    return Layout(name="default", data=folder / "not" / "yet" / "there")


def one(told: list[Told], word: str) -> Told:
    (found,) = [item for item in told if word in item.what]
    return found


async def test_this_machine_is_fit_and_nothing_is_created(layout: Layout) -> None:
    told = await checks.run(layout)
    assert all(item.ok for item in told), told
    words = (
        "PostgreSQL",
        "etcd",
        "Valkey",
        "data folder",
        "disk",
        "GiB of memory",
        "fsync",
    )
    assert all(one(told, word) for word in (*words, "cgroups", "clock", "does not run"))
    assert not layout.data.exists()


def test_a_program_that_is_missing_is_told_with_what_to_do(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise ServerError("no etcd")

    monkeypatch.setattr(checks_machine, "find_etcd", missing)
    told = one(list(checks_machine.run(layout, up=False)), "etcd")
    assert not told.ok
    assert "atoll[embedded]" in told.hint


def test_ports_that_are_taken_are_named(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1)
    monkeypatch.setattr(checks_machine, "USUAL", {"submission": port})
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        told = one(list(checks_machine.run(layout, up=False)), "taken")
    assert f"{port} (submission)" in told.what


def test_too_little_room_is_no_good(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks_machine, "LEAST_DISK_BYTES", 1 << 62)
    monkeypatch.setattr(checks_machine, "LEAST_MEMORY_BYTES", 1 << 62)
    monkeypatch.setattr(checks_machine, "SLOW_FSYNC_MS", 0.0)
    told = list(checks_machine.run(layout, up=True))
    assert {item.ok for item in told if item.what.split()[0] == "fsync" or "GiB" in item.what} == {
        False
    }
    assert all(item.hint for item in told if not item.ok)
