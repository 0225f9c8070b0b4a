"""The service registry over etcd: a key per instance, which goes when its process does."""

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from atoll.adapters.etcd import keys
from atoll.adapters.etcd.connection import EtcdConnection
from atoll.adapters.etcd.errors import EtcdRejected, EtcdUnavailable, LeaseLost
from atoll.adapters.etcd.lease import Lease
from atoll.adapters.etcd.watch import until_gone
from atoll.ports.clock import Clock
from atoll.ports.registry import Endpoint

PREFIX: Final = "/atoll/registry"
AGAIN_AFTER_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class _Entry:
    key: str
    address: str
    ttl_s: float


class EtcdRegistration:
    """An entry, made again under a new lease whenever it got lost."""

    def __init__(self, etcd: EtcdConnection, clock: Clock, *, entry: _Entry) -> None:
        self._etcd = etcd
        self._clock = clock
        self._entry = entry
        self._lease: Lease | None = None
        self._keeping: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Make the entry for the first time; raises EtcdUnavailable or EtcdRejected."""
        revision = await self._enter()
        self._keeping = asyncio.create_task(self._keep(revision))

    async def close(self) -> None:
        """Remove the entry if etcd answers; never raises."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        await self._drop_lease()

    async def _keep(self, revision: int) -> None:
        while True:
            await self._until_lost(revision)
            await self._drop_lease()
            with contextlib.suppress(EtcdUnavailable, EtcdRejected, LeaseLost):
                revision = await self._enter()
                continue
            await self._clock.sleep(AGAIN_AFTER_S)

    async def _until_lost(self, revision: int) -> None:
        if self._lease is None:
            return
        with contextlib.suppress(EtcdRejected, LeaseLost):
            gone = until_gone(self._etcd, self._entry.key, revision=revision, clock=self._clock)
            await self._lease.while_held(gone)

    async def _enter(self) -> int:
        lease = await Lease.grant(self._etcd, self._clock, ttl_s=self._entry.ttl_s)
        self._lease = lease
        try:
            await keys.put(self._etcd, self._entry.key, self._entry.address, lease=lease.id)
            return (await keys.get(self._etcd, self._entry.key)).revision
        except BaseException:
            await self._drop_lease()
            raise

    async def _drop_lease(self) -> None:
        if self._lease is not None:
            await self._lease.revoke()
            self._lease = None


class EtcdRegistry:
    """A `RegistryPort` below `prefix`. The connection stays its owner's."""

    def __init__(self, etcd: EtcdConnection, *, clock: Clock, prefix: str = PREFIX) -> None:
        self._etcd = etcd
        self._clock = clock
        self._prefix = prefix.rstrip("/")

    async def register(
        self, service: str, identity: str, *, address: str, ttl_s: float
    ) -> EtcdRegistration:
        """Enter an instance and keep it entered; raises EtcdUnavailable or EtcdRejected."""
        entry = _Entry(self._below(service) + quote(identity, safe=""), address, ttl_s)
        registration = EtcdRegistration(self._etcd, self._clock, entry=entry)
        await registration.begin()
        return registration

    async def list(self, service: str) -> tuple[Endpoint, ...]:
        """The instances of `service`, ordered by identity."""
        below = self._below(service)
        found = await keys.list_below(self._etcd, below)
        return tuple(
            sorted(
                Endpoint(unquote(entry.key.removeprefix(below)), entry.value)
                for entry in found.entries
            )
        )

    def _below(self, service: str) -> str:
        return f"{self._prefix}/{quote(service, safe='')}/"
