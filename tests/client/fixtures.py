"""A fake control plane for every test, and an environment that knows no other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from atoll.client.config import ClientConfig
from atoll.client.sync import Client
from tests.client.both import Both, Looping, Waiting
from tests.client.fake import Server
from tests.client.world import World


@pytest.fixture(autouse=True)
def clean_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATOLL_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("ATOLL_CONFIG", str(tmp_path / "config.yaml"))
    for name in (
        "ATOLL_ENDPOINT",
        "ATOLL_PLACEMENT",
        "ATOLL_BURST",
        "ATOLL_NAME",
        "ATOLL_TLS",
        "ATOLL_TENANT",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def server(world: World) -> Iterator[Server]:
    server = Server(world)
    yield server
    server.stop()


@pytest.fixture
def config(server: Server) -> ClientConfig:
    return ClientConfig(
        endpoint=server.address,
        placement=(server.address,),
        burst=(server.address,),
        principal="tester",
        timeout_s=10.0,
    )


@pytest.fixture
def client(config: ClientConfig) -> Iterator[Client]:
    with Client(config=config) as client:
        yield client


@pytest.fixture(params=[Waiting, Looping], ids=["sync", "aio"])
def both(request: pytest.FixtureRequest, config: ClientConfig) -> Iterator[Both]:
    one: Both = request.param(config)
    yield one
    one.close()
