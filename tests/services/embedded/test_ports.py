"""Which ports a stack gets."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from atoll.embedded import ports
from atoll.embedded.ports import PortBook
from atoll.runtime.servers.ports import free_ports


@pytest.fixture
def usual(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Usual ports that are free whatever else runs on this machine."""
    first, second, third = free_ports(3)
    chosen = {"submission": first, "postgres": second, "submission.metrics": third}
    monkeypatch.setattr(ports, "USUAL", chosen)
    return chosen


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket() as held:
        # As servers do: a connection that lingers from before keeps nobody from listening.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        yield held


def take(listener: socket.socket, port: int) -> None:
    listener.bind(("127.0.0.1", port))
    listener.listen()


def test_the_usual_port_is_taken_when_it_is_free(tmp_path: Path, usual: dict[str, int]) -> None:
    assert PortBook(tmp_path / "ports").port("submission") == usual["submission"]


def test_another_is_taken_when_somebody_has_the_usual_one(
    tmp_path: Path, usual: dict[str, int], listener: socket.socket
) -> None:
    take(listener, usual["submission"])
    port = PortBook(tmp_path / "ports").port("submission")
    assert port not in usual.values()


def test_a_port_is_kept_over_restarts_even_when_the_usual_one_is_free_again(
    tmp_path: Path, usual: dict[str, int], listener: socket.socket
) -> None:
    take(listener, usual["submission"])
    first = PortBook(tmp_path / "ports").port("submission")
    listener.close()
    assert PortBook(tmp_path / "ports").port("submission") == first


def test_a_remembered_port_that_somebody_took_is_given_up(
    tmp_path: Path, usual: dict[str, int], listener: socket.socket
) -> None:
    first = PortBook(tmp_path / "ports").port("submission")
    assert first == usual["submission"]
    take(listener, first)
    assert PortBook(tmp_path / "ports").port("submission") != first


def test_no_port_is_given_twice(tmp_path: Path) -> None:
    book = PortBook(tmp_path / "ports")
    names = [f"agent-{number}" for number in range(20)]
    assert len({book.port(name) for name in names}) == 20
    again = PortBook(tmp_path / "ports")
    assert len({again.port(name) for name in (*names, "agent-new")}) == 21


def test_a_file_that_is_no_port_book_is_as_none(tmp_path: Path, usual: dict[str, int]) -> None:
    (tmp_path / "ports").write_text("[]")
    assert PortBook(tmp_path / "ports").port("postgres") == usual["postgres"]


def test_who_asks_again_while_coming_up_gets_another(tmp_path: Path, usual: dict[str, int]) -> None:
    book = PortBook(tmp_path / "ports")
    asked = [book.port("submission") for _ in range(3)]
    assert asked[0] == usual["submission"]
    assert len(set(asked)) == 3
    assert PortBook(tmp_path / "ports").port("submission") == asked[-1]


def test_what_is_not_settled_keeps_its_port_unless_somebody_took_it(
    tmp_path: Path, usual: dict[str, int], listener: socket.socket
) -> None:
    book = PortBook(tmp_path / "ports")
    first = book.port("submission.metrics")
    assert first == usual["submission.metrics"]
    book.settle(["submission"])
    assert book.port("submission.metrics") == first
    take(listener, first)
    assert book.port("submission.metrics") != first


def test_settled_ports_do_not_change(
    tmp_path: Path, usual: dict[str, int], listener: socket.socket
) -> None:
    book = PortBook(tmp_path / "ports")
    assert book.port("submission") == usual["submission"]
    book.settle(["submission"])
    take(listener, usual["submission"])
    assert book.port("submission") == usual["submission"]
