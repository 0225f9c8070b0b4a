"""The two kinds of stores behind one suite."""

import asyncio
from typing import Protocol

from atoll.adapters.memory.clock import ManualClock
from atoll.adapters.memory.store import MemoryDatabase, MemoryStore
from atoll.adapters.postgres.store import PostgresStore
from atoll.adapters.system import SystemIds
from atoll.ports.store.burst import BurstStore
from atoll.ports.store.dispatch import DispatchStore
from atoll.ports.store.placement import PlacementStore
from atoll.ports.store.reservation import ReservationStore
from atoll.ports.store.submission import SubmissionStore
from atoll.ports.store.upkeep import UpkeepStore


class Store(Protocol):
    """One process's way to the database."""

    @property
    def submission(self) -> SubmissionStore: ...
    @property
    def placement(self) -> PlacementStore: ...
    @property
    def dispatch(self) -> DispatchStore: ...
    @property
    def reservation(self) -> ReservationStore: ...
    @property
    def burst(self) -> BurstStore: ...
    @property
    def upkeep(self) -> UpkeepStore: ...
    async def close(self) -> None: ...


class StoreWorld(Protocol):
    """A database, and processes that use it."""

    @property
    def store(self) -> Store: ...
    def another(self) -> Store: ...
    async def pass_time(self, seconds: float) -> None: ...
    async def close(self) -> None: ...


class MemoryWorld:
    """Time passes when it is told to."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.database = MemoryDatabase()
        self.store: Store = self.another()

    def another(self) -> Store:
        return MemoryStore(self.database, self.clock)

    async def pass_time(self, seconds: float) -> None:
        await self.clock.advance(seconds)

    async def close(self) -> None:
        pass


class PostgresWorld:
    """Time passes by itself."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self._opened: list[Store] = []
        self.store: Store = self.another()

    def another(self, *, dsn: str = "", pool_size: int = 12, wait_s: float = 5.0) -> Store:
        store = PostgresStore.open(
            dsn or self.dsn, ids=SystemIds(), pool_size=pool_size, wait_s=wait_s
        )
        self._opened.append(store)
        return store

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        for store in self._opened:
            await store.close()
