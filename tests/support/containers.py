"""The same servers out of container images. They use the host's network, so Linux only.

ATOLL_TEST_POSTGRES_IMAGE, ATOLL_TEST_VALKEY_IMAGE and ATOLL_TEST_ETCD_IMAGE replace the images.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence

import asyncpg
from testcontainers.core.container import DockerContainer

from atoll.adapters.etcd import EtcdConnection, EtcdUnavailable
from atoll.adapters.etcd.keys import get
from atoll.adapters.redis_streams import RedisDecisionStream
from atoll.ports.streams import StreamUnavailable
from atoll.runtime.servers.ports import LOOPBACK, free_ports
from tests.support.waiting import eventually

PASSWORD = "for-tests-on-loopback-only"


class Container:
    """One server in a container that listens on `port` of the host's loopback."""

    def __init__(self, image: str, command: Sequence[str], env: dict[str, str], port: int) -> None:
        self.port = port
        self._container = DockerContainer(image).with_command(list(command))
        self._container.with_kwargs(network_mode="host")
        for key, text in env.items():
            self._container.with_env(key, text)
        self._created = False

    def running(self) -> bool:
        """Whether it runs, be it paused."""
        if not self._created:
            return False
        wrapped = self._container.get_wrapped_container()
        wrapped.reload()
        return wrapped.status in {"running", "paused"}

    async def start(self) -> None:
        """Create it at first, start it again later; returns when it serves."""
        if not self._created:
            await asyncio.to_thread(self._container.start)
            self._created = True
        elif not self.running():
            self._container.get_wrapped_container().start()
        await eventually(self._serves, within_s=60)

    async def stop(self) -> None:
        """Stop it; its data stays until the container is removed at the end of the run."""
        if self.running():
            await asyncio.to_thread(self._container.get_wrapped_container().stop)

    async def restart(self) -> None:
        """Stop and start."""
        await self.stop()
        await self.start()

    def kill(self) -> None:
        """SIGKILL."""
        self._container.get_wrapped_container().kill()
        self._container.get_wrapped_container().wait()

    def pause(self) -> None:
        """Freeze every process."""
        self._container.get_wrapped_container().pause()

    def resume(self) -> None:
        """Thaw, if frozen."""
        self._container.get_wrapped_container().reload()
        if self._container.get_wrapped_container().status == "paused":
            self._container.get_wrapped_container().unpause()

    async def _serves(self) -> bool:
        raise NotImplementedError


class PostgresContainer(Container):
    """PostgreSQL 18."""

    def __init__(self) -> None:
        (port,) = free_ports(1)
        super().__init__(
            os.environ.get("ATOLL_TEST_POSTGRES_IMAGE", "postgres:18"),
            ("postgres", "-c", f"listen_addresses={LOOPBACK}", "-c", f"port={port}",
             "-c", "max_connections=200"),
            {"POSTGRES_USER": "atoll", "POSTGRES_PASSWORD": PASSWORD, "POSTGRES_DB": "atoll"},
            port,
        )  # fmt: skip

    @property
    def dsn(self) -> str:
        """The database `atoll`."""
        return self.dsn_of("atoll")

    def dsn_of(self, database: str) -> str:
        """Another database."""
        return f"postgresql://atoll:{PASSWORD}@{LOOPBACK}:{self.port}/{database}"

    async def _serves(self) -> bool:
        return await _succeeds(self._select, OSError, asyncpg.PostgresError)

    async def _select(self) -> None:
        connection = await asyncpg.connect(self.dsn, timeout=5)
        await connection.close()


class ValkeyContainer(Container):
    """Valkey 9."""

    def __init__(self) -> None:
        (port,) = free_ports(1)
        super().__init__(
            os.environ.get("ATOLL_TEST_VALKEY_IMAGE", "valkey/valkey:9"),
            ("valkey-server", "--bind", LOOPBACK, "--port", str(port), "--requirepass", PASSWORD,
             "--appendonly", "yes"),
            {},
            port,
        )  # fmt: skip

    @property
    def url(self) -> str:
        """Database 0."""
        return f"redis://:{PASSWORD}@{LOOPBACK}:{self.port}/0"

    async def _serves(self) -> bool:
        return await _succeeds(self._drop, StreamUnavailable)

    async def _drop(self) -> None:
        stream = RedisDecisionStream(self.url)
        try:
            await stream.drop("nobody")
        finally:
            await stream.close()


class EtcdContainer(Container):
    """One member."""

    def __init__(self, member: str, ports: tuple[int, int], peers: str) -> None:
        client, peer = (f"http://{LOOPBACK}:{port}" for port in ports)
        super().__init__(
            os.environ.get("ATOLL_TEST_ETCD_IMAGE", "quay.io/coreos/etcd:v3.5.21"),
            ("etcd", "--name", member, "--data-dir", "/tmp/etcd",
             "--listen-client-urls", client, "--advertise-client-urls", client,
             "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
             "--initial-cluster", peers, "--initial-cluster-state", "new",
             "--heartbeat-interval", "50", "--election-timeout", "500"),
            {},
            ports[0],
        )  # fmt: skip

    @property
    def endpoints(self) -> tuple[str, ...]:
        """`host:port` of this member."""
        return (f"{LOOPBACK}:{self.port}",)

    async def _serves(self) -> bool:
        return await _succeeds(self._read, EtcdUnavailable)

    async def _read(self) -> None:
        etcd = EtcdConnection(self.endpoints)
        try:
            await get(etcd, "/")
        finally:
            await etcd.close()


class EtcdContainers:
    """A cluster."""

    def __init__(self, *, members: int) -> None:
        ports = free_ports(2 * members)
        pairs = list(zip(ports[::2], ports[1::2], strict=True))
        peers = ",".join(f"m{i}=http://{LOOPBACK}:{peer}" for i, (_, peer) in enumerate(pairs))
        self.members = [EtcdContainer(f"m{i}", pair, peers) for i, pair in enumerate(pairs)]

    @property
    def endpoints(self) -> tuple[str, ...]:
        """`host:port` of every member."""
        return tuple(endpoint for member in self.members for endpoint in member.endpoints)

    def resume(self) -> None:
        """Thaw all that run."""
        for member in self.members:
            if member.running():
                member.resume()

    async def start(self) -> None:
        """Start those that do not run."""
        await asyncio.gather(*(member.start() for member in self.members))

    async def stop(self) -> None:
        """Stop all."""
        await asyncio.gather(*(member.stop() for member in self.members))


async def _succeeds(probe: Callable[[], Awaitable[None]], *failures: type[Exception]) -> bool:
    try:
        await probe()
    except Exception as error:
        if not isinstance(error, (TimeoutError, *failures)):
            raise
        return False
    return True
