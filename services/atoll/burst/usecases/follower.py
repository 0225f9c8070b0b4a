"""Follows the demand for devices: everything once, then what has changed since."""

import asyncio
from dataclasses import dataclass, field

from atoll.burst.usecases.demand_table import DemandTable
from atoll.core.model.errors import DomainError, ErrorCode
from atoll.ports.store.burst import BurstStore
from atoll.ports.store.common import Cursor
from atoll.ports.store.demand import PAGE


@dataclass(slots=True)
class Follower:
    """Of one term. Whoever needs the rows asks for them to be brought up to date."""

    history_s: float
    """How long those are kept that have ended."""
    table: DemandTable = field(default_factory=DemandTable)
    full_reads: int = 0
    """At the take-over, and whenever changes were missed."""
    _cursor: Cursor | None = None
    _following: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def follow(self, store: BurstStore, *, now: float) -> DemandTable:
        """The rows as of now."""
        async with self._following:
            if self._cursor is None or not await self._catch_up(store, self._cursor, now=now):
                await self._read_all(store, now=now)
            self.table.drop_ended(now - self.history_s)
            self.table.standing.pass_time(now)
        return self.table

    async def _catch_up(self, store: BurstStore, cursor: Cursor, *, now: float) -> bool:
        try:
            changed = await store.changed_demand(cursor)
        except DomainError as error:
            if error.code != ErrorCode.CURSOR_EXPIRED:
                raise
            return False
        for at in range(0, len(changed.jobs), PAGE):
            self.table.put(await store.demand_of(changed.jobs[at : at + PAGE]), now=now)
        self._cursor = changed.cursor
        return True

    async def _read_all(self, store: BurstStore, *, now: float) -> None:
        # The cursor comes first: what changes while pages are read is read again.
        cursor, table = await store.demand_cursor(), DemandTable()
        async for rows in store.demand(since=now - self.history_s):
            table.put(rows, now=now)
        self.table, self._cursor = table, cursor
        self.full_reads += 1
