"""The two kinds of streams behind one set of faults."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from redis.asyncio import Redis

from atoll.adapters.memory.streams import MemoryDecisionStream, MemoryHints
from atoll.adapters.redis_streams import RedisDecisionStream, RedisHints
from atoll.adapters.system import SystemClock
from atoll.ports.streams import DecisionStream, Hints
from tests.support.proxy import Proxy
from tests.support.servers import ValkeyLike

KEPT = 50


class StreamWorld(Protocol):
    """A stream and hints, and what may happen to them."""

    stream: DecisionStream
    hints: Hints

    def poisoned(self) -> int: ...
    async def spoil(self, cluster: str, number: int) -> None: ...
    async def lose_everything(self) -> None: ...
    async def go_down(self) -> None: ...
    async def come_back(self) -> None: ...


class MemoryWorld:
    """In this process."""

    def __init__(self) -> None:
        self._stream = MemoryDecisionStream(SystemClock(), kept=KEPT)
        self._hints = MemoryHints()
        self.stream: DecisionStream = self._stream
        self.hints: Hints = self._hints

    def poisoned(self) -> int:
        return self._stream.poisoned

    async def spoil(self, cluster: str, number: int) -> None:
        self._stream.spoil(cluster, number)

    async def lose_everything(self) -> None:
        self._stream.lose_everything()

    async def go_down(self) -> None:
        self._stream.down = self._hints.down = True

    async def come_back(self) -> None:
        self._stream.down = False
        self._hints.reconnect()


class ValkeyWorld:
    """A real server, reached through a proxy that can refuse."""

    def __init__(self, url: str, server: ValkeyLike, proxy: Proxy) -> None:
        self.server = server
        self.proxy = proxy
        self.client = Redis.from_url(url)
        there = url.replace(f":{server.port}/", f":{proxy.port}/")
        self._stream = RedisDecisionStream(there, kept=KEPT)
        self._hints = RedisHints(there, clock=SystemClock())
        self.stream: DecisionStream = self._stream
        self.hints: Hints = self._hints

    def poisoned(self) -> int:
        return self._stream.poisoned

    async def spoil(self, cluster: str, number: int) -> None:
        await self.client.xadd(f"atoll:decisions:{cluster}", {"x": b"\x00\xff"}, id=f"{number}-0")

    async def lose_everything(self) -> None:
        await self.client.flushall()

    async def go_down(self) -> None:
        self.proxy.refuse()

    async def come_back(self) -> None:
        self.proxy.heal()

    async def close(self) -> None:
        await self._stream.close()
        await self._hints.close()
        await self.client.aclose()


@asynccontextmanager
async def valkey_world(url: str, server: ValkeyLike) -> AsyncIterator[ValkeyWorld]:
    """A world of its own on a shared server."""
    async with Proxy(server.port) as proxy:
        world = ValkeyWorld(url, server, proxy)
        try:
            yield world
        finally:
            await world.close()
