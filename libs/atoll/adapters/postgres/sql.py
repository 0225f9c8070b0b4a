"""One connection for the time of one transaction or statement."""

import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, TypeAlias

import asyncpg

from atoll.adapters.postgres.failures import translated

Record: TypeAlias = asyncpg.Record
Connection: TypeAlias = "asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"
Guard: TypeAlias = Callable[[], AbstractContextManager[None]]
Chunks: TypeAlias = AsyncGenerator[list[Record], None]

CHUNK_ROWS: Final = 5_000


class Sql:
    """Statements over one connection, with the driver's errors translated."""

    def __init__(self, connection: Connection, guard: Guard = translated) -> None:
        self._connection = connection
        self._guard = guard
        self.failed = False
        """A statement failed: PostgreSQL would answer a COMMIT with a rollback."""

    async def rows(self, statement: str, *values: object) -> list[Record]:
        """All rows."""
        with self._noting():
            return await self._connection.fetch(statement, *values)

    async def row(self, statement: str, *values: object) -> Record | None:
        """The first row, if any."""
        with self._noting():
            return await self._connection.fetchrow(statement, *values)

    async def value(self, statement: str, *values: object) -> Any:
        """The first column of the first row, if any."""
        with self._noting():
            return await self._connection.fetchval(statement, *values)

    async def run(self, statement: str, *values: object) -> int:
        """How many rows it touched."""
        with self._noting():
            status = await self._connection.execute(statement, *values)
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    async def copy(
        self, table: str, columns: Sequence[str], records: Iterable[Sequence[object]]
    ) -> None:
        """Insert by COPY."""
        with self._noting():
            await self._connection.copy_records_to_table(
                table, columns=list(columns), records=[tuple(record) for record in records]
            )

    async def chunks(self, statement: str, *values: object) -> Chunks:
        """Rows of a large result, some at a time, inside a transaction."""
        with self._noting():
            cursor = await self._connection.cursor(statement, *values, timeout=60)
            while records := await cursor.fetch(CHUNK_ROWS, timeout=60):
                yield records

    @contextlib.contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            with self._guard():
                yield
        except BaseException:
            self.failed = True
            raise
