"""The servers that tests share: child processes, or containers with ATOLL_TEST_CONTAINERS=1."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from atoll.runtime.servers import EtcdCluster, PostgresServer, ValkeyServer


class ServerLike(Protocol):
    """What tests do with any of them."""

    @property
    def port(self) -> int: ...
    def running(self) -> bool: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def restart(self) -> None: ...
    def kill(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...


class PostgresLike(ServerLike, Protocol):
    """PostgreSQL, with a superuser."""

    @property
    def dsn(self) -> str: ...
    def dsn_of(self, database: str) -> str: ...


class ValkeyLike(ServerLike, Protocol):
    """Valkey."""

    @property
    def url(self) -> str: ...


class EtcdMemberLike(ServerLike, Protocol):
    """A member of an etcd cluster."""

    @property
    def endpoints(self) -> tuple[str, ...]: ...


class EtcdLike(Protocol):
    """A cluster of etcd members."""

    @property
    def members(self) -> Sequence[EtcdMemberLike]: ...
    @property
    def endpoints(self) -> tuple[str, ...]: ...
    def resume(self) -> None: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...


def postgres(folder: Path) -> PostgresLike:
    """One that has not been started; `folder` takes its data."""
    if _in_containers():
        from tests.support.containers import PostgresContainer

        return PostgresContainer()
    return PostgresServer(folder)


def valkey(folder: Path) -> ValkeyLike:
    """The same for Valkey."""
    if _in_containers():
        from tests.support.containers import ValkeyContainer

        return ValkeyContainer()
    return ValkeyServer(folder)


def etcd(folder: Path, *, members: int) -> EtcdLike:
    """The same for etcd."""
    if _in_containers():
        from tests.support.containers import EtcdContainers

        return EtcdContainers(members=members)
    return EtcdCluster(folder, members=members)


@contextmanager
def reachable_folder() -> Iterator[Path]:
    """A folder for servers: pytest's own is closed to nobody, who runs them for root."""
    folder = Path(tempfile.mkdtemp(prefix="atoll-test-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _in_containers() -> bool:
    return os.environ.get("ATOLL_TEST_CONTAINERS") == "1"
