"""etcd, as one member or as a cluster of several on this machine."""

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Final, Self

from atoll.runtime.servers.account import inner_folder
from atoll.runtime.servers.errors import ServerError
from atoll.runtime.servers.programs import CORRUPTING_ETCD, Program, find_etcd, reachable
from atoll.runtime.servers.server import Server

ANSWER_WITHIN_S: Final = 2.0
HEARTBEAT_MS: Final = 50
ELECTION_MS: Final = 500
BACKEND_QUOTA_BYTES: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class EtcdTls:
    """Files for serving clients over TLS; clients must show a certificate of the same CA."""

    ca: Path
    cert: Path
    key: Path


class EtcdServer(Server):
    """One member; on its own it is a cluster of one.

    `peers` tells, once all members have their ports, the value of --initial-cluster.
    """

    name: ClassVar[str] = "etcd"
    port_count: ClassVar[int] = 2

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int | None = None,
        detached: bool = False,
        member: str = "m1",
        peers: Callable[[], str] | None = None,
        tls: EtcdTls | None = None,
    ) -> None:
        super().__init__(data_dir, port=port, detached=detached)
        self.member = member
        self._peers = peers or self.as_peer
        self._tls = tls

    @property
    def endpoints(self) -> tuple[str, ...]:
        """`host:port` of this member."""
        return (f"{self.host}:{self.port}",)

    def as_peer(self) -> str:
        """This member as --initial-cluster names it."""
        return f"{self.member}={self._peer_url}"

    def settle_ports(self) -> None:
        """Choose the ports once and for all before the start: the other members are told them."""
        self._choose_ports()
        self._asked_port = self.port

    async def serves(self) -> bool:
        """Ask /health, which reads through the cluster's quorum."""
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(ANSWER_WITHIN_S):
                reader, writer = await asyncio.open_connection(
                    self.host, self.port, ssl=self._client_tls()
                )
                with contextlib.closing(writer):
                    writer.write(b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n")
                    return b'"health":"true"' in await reader.read()
        return False

    async def _prepare(self) -> None:
        inner_folder(self._store, self._account)

    def _command(self) -> tuple[str, ...]:
        client = f"{'https' if self._tls else 'http'}://{self.host}:{self.port}"
        return (
            str(self._etcd),
            "--name", self.member,
            "--data-dir", self._marker(),
            "--listen-client-urls", client,
            "--advertise-client-urls", client,
            "--listen-peer-urls", self._peer_url,
            "--initial-advertise-peer-urls", self._peer_url,
            "--initial-cluster", self._peers(),
            "--initial-cluster-state", "new",
            "--heartbeat-interval", str(HEARTBEAT_MS),
            "--election-timeout", str(ELECTION_MS),
            "--quota-backend-bytes", str(BACKEND_QUOTA_BYTES),
            "--auto-compaction-mode", "periodic",
            "--auto-compaction-retention", "1h",
            "--logger", "zap",
            "--log-level", "warn",
            "--pre-vote",
            *self._tls_options(),
            *self._precautions(),
        )  # fmt: skip

    def _marker(self) -> str:
        return str(self._store)

    @property
    def _peer_url(self) -> str:
        return f"http://{self.host}:{self._known_ports()[1]}"

    def _tls_options(self) -> tuple[str, ...]:
        if self._tls is None:
            return ()
        return (
            "--client-cert-auth",
            "--trusted-ca-file", str(self._tls.ca),
            "--cert-file", str(self._tls.cert),
            "--key-file", str(self._tls.key),
        )  # fmt: skip

    def _client_tls(self) -> ssl.SSLContext | None:
        if self._tls is None:
            return None
        context = ssl.create_default_context(cafile=str(self._tls.ca))
        context.load_cert_chain(self._tls.cert, self._tls.key)
        context.check_hostname = False
        return context

    def _precautions(self) -> tuple[str, ...]:
        if self._program.version in CORRUPTING_ETCD:
            return ("--experimental-initial-corrupt-check",)
        return ()

    @cached_property
    def _program(self) -> Program:
        return find_etcd()

    @cached_property
    def _etcd(self) -> Path:
        return reachable(self._program, account=self._account, copies=self.data_dir / "programs")


class EtcdCluster:
    """`members` etcd processes that elect one of them; below `data_dir` each has a folder.

    Signals go to single members: `cluster.members[1].pause()`.
    """

    def __init__(self, data_dir: Path, *, members: int = 1, detached: bool = False) -> None:
        self.members: Sequence[EtcdServer] = tuple(
            EtcdServer(
                data_dir / f"m{number}",
                detached=detached,
                member=f"m{number}",
                peers=self._initial_cluster,
            )
            for number in range(1, members + 1)
        )

    @property
    def endpoints(self) -> tuple[str, ...]:
        """`host:port` of every member."""
        return tuple(endpoint for member in self.members for endpoint in member.endpoints)

    def running(self) -> bool:
        """Whether every member's process lives."""
        return all(member.running() for member in self.members)

    async def start(self) -> None:
        """Start the members that do not run and return when all of them serve."""
        for member in self.members:
            if not member.running():
                member.settle_ports()
        started = await asyncio.gather(
            *(member.start() for member in self.members), return_exceptions=True
        )
        failures = [outcome for outcome in started if isinstance(outcome, BaseException)]
        if failures:
            await self.stop()
            raise ServerError("; ".join(map(str, failures))) from failures[0]

    async def stop(self) -> None:
        """Stop all members, one by one: a leader that goes with its followers waits for one."""
        for member in self.members:
            await member.stop()

    async def restart(self) -> None:
        """Stop and start all members on the same data."""
        await self.stop()
        await self.start()

    def resume(self) -> None:
        """SIGCONT every member that runs."""
        for member in self.members:
            if member.running():
                member.resume()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _initial_cluster(self) -> str:
        return ",".join(member.as_peer() for member in self.members)
