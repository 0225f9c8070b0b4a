"""What became of jobs, asked of the database itself."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import asyncpg

from tools.bench_numbers import Job

LOOK_EVERY_S: Final = 0.5
LEFT: Final = """
SELECT count(*) FROM jobs WHERE id BETWEEN $1 AND $2 AND outcome IS NULL
"""
JOBS: Final = """
SELECT id, submitted_at, accepted_at, ended_at, state = 'SUCCEEDED' AS succeeded FROM jobs
WHERE id BETWEEN $1 AND $2
"""


class Rows:
    """One connection, for questions that cost little."""

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        self._connection = connection

    async def ended(self, ids: Sequence[int], *, within_s: float) -> None:
        """Wait until all have ended, at most so long."""
        if not ids:
            return
        for _ in range(int(within_s / LOOK_EVERY_S)):
            if not await self._connection.fetchval(LEFT, min(ids), max(ids)):
                return
            await asyncio.sleep(LOOK_EVERY_S)

    async def jobs(self, ids: Sequence[int]) -> list[Job]:
        """The rows of jobs; those that do not exist are left out."""
        if not ids:
            return []
        wanted = set(ids)
        rows: list[Any] = await self._connection.fetch(JOBS, min(ids), max(ids))
        return [Job(*list(row)[1:]) for row in rows if row["id"] in wanted]
