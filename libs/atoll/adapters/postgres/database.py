"""The pool of connections, and what a transaction is over it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import asyncpg

from atoll.adapters.postgres.failures import (
    DRIVER_ERRORS,
    committing,
    meaning,
    overloaded,
    translated,
)
from atoll.adapters.postgres.sql import Connection, Sql
from atoll.core.model.errors import ErrorCode
from atoll.ports.store.common import StoreUnavailable

SESSION: Final = {
    # A client that stands still between a lock and its COMMIT must not hold the lock for ever.
    "idle_in_transaction_session_timeout": "2s",
    "transaction_timeout": "5s",
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "10s",
    "timezone": "UTC",
    "jit": "off",
    # Plans are made once: planning the partitions of `changes` takes longer than reading them.
    "plan_cache_mode": "force_generic_plan",
    # And some are made while a table is small that is large soon.
    "enable_seqscan": "off",
}
# A clock that runs already is not set anew by a longer time.
LONG_READ: Final = "SET LOCAL transaction_timeout = 0; SET LOCAL transaction_timeout = '120s'"
COMMAND_TIMEOUT_S: Final = 10.0
CACHED_STATEMENTS: Final = 256


@dataclass(frozen=True, slots=True)
class PoolSize:
    """How many connections there may be, and how long one is waited for."""

    connections: int
    wait_s: float = 5.0
    connect_s: float = 5.0


class Database:
    """Connections to one database. Nothing is opened before it is needed."""

    def __init__(self, dsn: str, *, size: PoolSize, application: str) -> None:
        self._dsn = dsn
        self._size = size
        self._application = application
        self._opening = asyncio.Lock()
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncIterator[Sql]:
        """A connection for single statements that only read."""
        async with self._lease() as connection:
            yield Sql(connection)

    @contextlib.asynccontextmanager
    async def writing(self) -> AsyncIterator[Sql]:
        """A connection for one statement that commits itself; raises UnknownOutcome."""
        async with self._lease() as connection:
            yield Sql(connection, committing)

    @contextlib.asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Sql]:
        """Many reads of one instant; `take_long` allows more time than other transactions have."""
        async with self._lease() as connection:
            reading = connection.transaction(isolation="repeatable_read", readonly=True)
            with translated():
                await reading.start()
            try:
                yield Sql(connection)
            finally:
                await _roll_back(reading)

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Sql]:
        """Committed when the block ends without an exception, else rolled back.

        Raises StoreUnavailable or Contended when nothing was committed, UnknownOutcome when
        nobody knows, Exhausted when no connection is free.
        """
        async with self._lease() as connection:
            writing = connection.transaction()
            with translated():
                await writing.start()
            sql = Sql(connection)
            try:
                yield sql
            except BaseException:
                await _roll_back(writing)
                raise
            if sql.failed:
                await _roll_back(writing)
                raise StoreUnavailable(
                    "a statement failed before; nothing was committed", code=ErrorCode.UNAVAILABLE
                )
            with committing():
                await writing.commit()

    async def close(self) -> None:
        """Close all connections; those in use are cut off after a moment."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        try:
            async with asyncio.timeout(self._size.wait_s):
                await pool.close()
        except (*DRIVER_ERRORS, TimeoutError):
            pool.terminate()

    @contextlib.asynccontextmanager
    async def _lease(self) -> AsyncIterator[Connection]:
        pool = await self._opened()
        connection = await self._acquire(pool)
        try:
            yield connection
        finally:
            with contextlib.suppress(*DRIVER_ERRORS):
                await pool.release(connection, timeout=self._size.wait_s)

    async def _acquire(self, pool: "asyncpg.Pool[asyncpg.Record]") -> Connection:
        try:
            return await pool.acquire(timeout=self._size.wait_s)
        except TimeoutError as error:
            if pool.get_size() == pool.get_max_size() and pool.get_idle_size() == 0:
                raise overloaded() from error
            raise meaning(error) from error
        except DRIVER_ERRORS as error:
            raise meaning(error) from error

    async def _opened(self) -> "asyncpg.Pool[asyncpg.Record]":
        if self._pool is None:
            async with self._opening:
                if self._pool is None:
                    self._pool = await self._open()
        return self._pool

    async def _open(self) -> "asyncpg.Pool[asyncpg.Record]":
        return await asyncpg.create_pool(
            self._dsn,
            min_size=0,
            max_size=self._size.connections,
            max_queries=1_000_000_000,
            reset=_keep,
            timeout=self._size.connect_s,
            command_timeout=COMMAND_TIMEOUT_S,
            statement_cache_size=CACHED_STATEMENTS,
            server_settings=SESSION | {"application_name": self._application},
        )


async def take_long(snapshot: Sql) -> None:
    """Let the reads of a snapshot take two minutes from now."""
    await snapshot.run(LONG_READ)


async def _keep(_: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Nothing is ever set for a session here, so nothing has to be reset: saves a round trip."""


async def _roll_back(transaction: "asyncpg.transaction.Transaction") -> None:
    with contextlib.suppress(*DRIVER_ERRORS):
        await transaction.rollback()
