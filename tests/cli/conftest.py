"""The command in this process, against a fake control plane."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from atoll.adapters.system import SystemClock
from atoll.cli.main import run
from tests.client.fake import Server
from tests.client.fixtures import clean_environment as clean_environment
from tests.client.fixtures import server as server
from tests.client.fixtures import world as world


@dataclass(frozen=True)
class Done:
    """What a command line came to."""

    code: int
    out: str
    err: str


Atoll = Callable[..., Done]


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> float:
    """The time of day, which stands still: some words depend on it to the second."""
    at = float(round(SystemClock().now()))
    monkeypatch.setattr(SystemClock, "now", lambda _: at)
    return at


@pytest.fixture
def atoll(
    server: Server, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Atoll:
    monkeypatch.setenv("ATOLL_ENDPOINT", server.address)
    monkeypatch.setenv("ATOLL_PLACEMENT", server.address)
    monkeypatch.setenv("ATOLL_BURST", server.address)

    def call(*words: str) -> Done:
        capfdbinary.readouterr()
        code = run(words)
        captured = capfdbinary.readouterr()
        return Done(code, captured.out.decode(), captured.err.decode())

    return call
