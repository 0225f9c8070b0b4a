"""A lease, renewed for as long as its holder lives and etcd answers."""

import asyncio
import contextlib
import math
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from atoll.adapters.etcd.connection import EtcdConnection
from atoll.adapters.etcd.errors import EtcdRejected, EtcdUnavailable, LeaseLost
from atoll.adapters.etcd.methods import GRANT, KEEP_ALIVE, REVOKE
from atoll.adapters.etcd.stream import Stream
from atoll.adapters.etcd.wire import etcdwire_pb2 as wire
from atoll.ports.clock import Clock

MARGIN: Final = 0.1
"""Share of the ttl by which the holder gives up before etcd can: drift and late timers."""

TRY: Final = 1 / 6
"""Share of the ttl that one endpoint gets to answer. A member without a leader keeps a renewal
for half a second before it looks for a new one; a fresh call finds that one at once."""

Result = TypeVar("Result")
KeepAlives = Stream[wire.LeaseKeepAliveRequest, wire.LeaseKeepAliveResponse]


class Lease:
    """A granted lease; made by `grant`, ended by `revoke`.

    Valid until the time of SENDING the last answered renewal + ttl - margin: etcd
    counts the ttl from a later moment, so it cannot have expired before.
    """

    def __init__(
        self, etcd: EtcdConnection, clock: Clock, *, lease_id: int, ttl_s: float, granted: float
    ) -> None:
        self.id = lease_id
        self._etcd = etcd
        self._clock = clock
        self._ttl_s = ttl_s
        self._sent = granted
        self._lost = asyncio.Event()
        self._tasks = [asyncio.create_task(self._renew()), asyncio.create_task(self._expire())]

    @classmethod
    async def grant(cls, etcd: EtcdConnection, clock: Clock, *, ttl_s: float) -> "Lease":
        """Get a lease of at least `ttl_s` seconds and begin to renew it."""
        sent = clock.monotonic()
        request = wire.LeaseGrantRequest(ttl=math.ceil(ttl_s))
        answer = await etcd.call(GRANT, request, within_s=ttl_s * TRY)
        return cls(etcd, clock, lease_id=answer.id, ttl_s=answer.ttl, granted=sent)

    def valid(self) -> bool:
        """Whether it cannot have run out; once False it stays False."""
        if self._clock.monotonic() >= self._valid_until():
            self.lose()
        return not self._lost.is_set()

    async def lost(self) -> None:
        """Return when it is not valid any more."""
        await self._lost.wait()

    def lose(self) -> None:
        """Give it up; nothing makes it valid again."""
        self._lost.set()

    async def revoke(self) -> None:
        """Give it up and tell etcd, if that answers soon; never raises."""
        self.lose()
        for task in self._tasks:
            task.cancel()
        with contextlib.suppress(EtcdUnavailable, EtcdRejected, LeaseLost):
            await self._etcd.call(
                REVOKE, wire.LeaseRevokeRequest(id=self.id), within_s=self._ttl_s * TRY
            )

    async def while_held(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of `work`; when the lease is lost, cancels it and raises LeaseLost."""
        working = asyncio.create_task(work)
        losing = asyncio.create_task(self.lost())
        try:
            await asyncio.wait({working, losing}, return_when=asyncio.FIRST_COMPLETED)
            if not self.valid():
                raise LeaseLost(f"lease {self.id:x}")
            return working.result()
        finally:
            working.cancel()
            losing.cancel()
            await asyncio.gather(working, losing, return_exceptions=True)

    def _valid_until(self) -> float:
        return self._sent + self._ttl_s * (1 - MARGIN)

    async def _expire(self) -> None:
        while self.valid():
            await self._clock.sleep(self._valid_until() - self._clock.monotonic())

    async def _renew(self) -> None:
        """Every third of the ttl, and at once elsewhere when an endpoint does not answer."""
        while self.valid():
            try:
                async with self._etcd.stream(KEEP_ALIVE) as stream:
                    await self._renew_over(stream)
            except EtcdUnavailable:
                await self._clock.sleep(self._ttl_s / 40)
            except (EtcdRejected, LeaseLost):
                self.lose()

    async def _renew_over(self, stream: KeepAlives) -> None:
        while self.valid():
            await self._clock.sleep(self._sent + self._ttl_s / 3 - self._clock.monotonic())
            sent = self._clock.monotonic()
            within_s = self._ttl_s * TRY
            await stream.send(wire.LeaseKeepAliveRequest(id=self.id), within_s=within_s)
            answer = await stream.receive(within_s=within_s)
            if answer.ttl <= 0:
                raise LeaseLost(f"lease {self.id:x} has expired or was revoked")
            if self.valid():  # late is late, even if etcd was lenient
                self._sent = sent
