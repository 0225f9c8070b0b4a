"""The two kinds of elections behind one set of faults."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Protocol, TypeVar

from atoll.adapters.etcd import EtcdConnection, EtcdElection
from atoll.adapters.etcd import keys as etcd_keys
from atoll.adapters.etcd.election import GENERATION_KEY
from atoll.adapters.etcd.methods import DELETE, REVOKE
from atoll.adapters.etcd.wire import etcdwire_pb2 as wire
from atoll.adapters.memory.clock import ManualClock
from atoll.adapters.memory.election import MemoryElection, MemoryElections
from atoll.adapters.system import SystemClock
from atoll.ports.election import Election
from tests.support.proxy import Proxy
from tests.support.servers import EtcdLike

TTL_S = 2.0
WITHIN_S = 40.0

Result = TypeVar("Result")


class ElectionWorld(Protocol):
    """Candidates by name, and what may happen to them. `name` is the election's."""

    async def candidate(self, identity: str, *, name: str = "e") -> Election: ...
    async def cut(self, identity: str) -> None: ...
    async def heal(self, identity: str) -> None: ...
    async def revoke(self, identity: str) -> None: ...
    async def go_down(self) -> None: ...
    async def come_back(self) -> None: ...
    async def raise_generation(self, generation: int) -> None: ...
    async def pass_time(self, seconds: float) -> None: ...
    async def until(self, awaited: Awaitable[Result]) -> Result: ...


class MemoryWorld:
    """In this process, on a clock moved by hand."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.elections = MemoryElections(self.clock)

    async def candidate(self, identity: str, *, name: str = "e") -> Election:
        return MemoryElection(self.elections, prefix=name, identity=identity, ttl_s=TTL_S)

    async def cut(self, identity: str) -> None:
        self.elections.cut(identity)

    async def heal(self, identity: str) -> None:
        self.elections.heal(identity)

    async def revoke(self, identity: str) -> None:
        self.elections.revoke(identity)

    async def go_down(self) -> None:
        self.elections.stop()

    async def come_back(self) -> None:
        self.elections.resume()

    async def raise_generation(self, generation: int) -> None:
        self.elections.generation = generation

    async def pass_time(self, seconds: float) -> None:
        await self.clock.advance(seconds)

    async def until(self, awaited: Awaitable[Result]) -> Result:
        waiting = asyncio.ensure_future(awaited)
        for _ in range(1_000):
            if waiting.done():
                break
            await self.clock.advance(TTL_S / 50)
        assert waiting.done()
        return await waiting


class EtcdWorld:
    """Real etcd; each candidate reaches it through proxies of its own."""

    def __init__(self, cluster: EtcdLike, prefix: str, exits: AsyncExitStack) -> None:
        self.cluster = cluster
        self.prefix = prefix
        self.ttl_s = TTL_S
        self.direct = EtcdConnection(cluster.endpoints)
        self.proxies: dict[str, list[Proxy]] = {}
        self._exits = exits

    async def candidate(self, identity: str, *, name: str = "e") -> EtcdElection:
        if identity not in self.proxies:
            self.proxies[identity] = [
                await self._exits.enter_async_context(Proxy(member.port))
                for member in self.cluster.members
            ]
        etcd = EtcdConnection([proxy.address for proxy in self.proxies[identity]])
        self._exits.push_async_callback(etcd.close)
        return self.election(etcd, identity, name=name)

    def election(self, etcd: EtcdConnection, identity: str, *, name: str = "e") -> EtcdElection:
        """A candidate over a connection of the test's choice."""
        made = EtcdElection(
            etcd,
            prefix=f"{self.prefix}/{name}",
            identity=identity,
            ttl_s=self.ttl_s,
            clock=SystemClock(),
        )
        self._exits.push_async_callback(made.close)
        return made

    async def cut(self, identity: str) -> None:
        for proxy in self.proxies[identity]:
            proxy.blackhole()

    async def heal(self, identity: str) -> None:
        for proxy in self.proxies[identity]:
            proxy.heal()

    async def revoke(self, identity: str) -> None:
        lease = int((await self.key_of(identity)).rpartition("/")[2], 16)
        await self.direct.call(REVOKE, wire.LeaseRevokeRequest(id=lease))

    async def delete_key(self, identity: str) -> None:
        """As an operator might; the lease stays."""
        key = await self.key_of(identity)
        await self.direct.call(DELETE, wire.DeleteRangeRequest(key=key.encode()))

    async def key_of(self, identity: str) -> str:
        """The candidate's key; fails if there is none."""
        found = await etcd_keys.list_below(self.direct, f"{self.prefix}/e/")
        return next(entry.key for entry in found.entries if entry.value == identity)

    async def go_down(self) -> None:
        for member in self.cluster.members[: len(self.cluster.members) // 2 + 1]:
            member.pause()

    async def come_back(self) -> None:
        self.cluster.resume()

    async def raise_generation(self, generation: int) -> None:
        await etcd_keys.put(self.direct, GENERATION_KEY, str(generation))

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def until(self, awaited: Awaitable[Result]) -> Result:
        return await asyncio.wait_for(awaited, WITHIN_S)


@asynccontextmanager
async def etcd_world(cluster: EtcdLike, prefix: str) -> AsyncIterator[EtcdWorld]:
    """A world of its own on a shared cluster."""
    async with AsyncExitStack() as exits:
        world = EtcdWorld(cluster, prefix, exits)
        exits.push_async_callback(world.direct.close)
        exits.push_async_callback(
            world.direct.call, DELETE, wire.DeleteRangeRequest(key=GENERATION_KEY.encode())
        )
        try:
            yield world
        finally:
            cluster.resume()
            for identity in world.proxies:
                await world.heal(identity)
