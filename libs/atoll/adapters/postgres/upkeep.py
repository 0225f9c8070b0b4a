"""What has to be done now and then. Any process may, and several may at once."""

from typing import Final

from atoll.adapters.postgres.cursors import CHANGES_KEPT_S
from atoll.adapters.postgres.database import Database
from atoll.adapters.postgres.retention import prune
from atoll.adapters.postgres.sql import Sql
from atoll.ports.store.common import Contended
from atoll.ports.store.upkeep import Pruned, Retention

LOCK_TIMEOUT: Final = "SET LOCAL lock_timeout = '50ms'"
TRY_LOCK: Final = "SELECT pg_try_advisory_xact_lock($1)"
PARTITIONS_LOCK: Final = 0x61746F6C01
TALLIES_LOCK: Final = 0x61746F6C02
MINUTES_AHEAD: Final = 10
FEWEST_AHEAD: Final = 5

# Minutes that have no partition yet and no row in the default one, which would be in its way.
MISSING: Final = """
SELECT to_char(m, 'YYYYMMDDHH24MI') AS minute, m::text AS first,
    (m + interval '1 minute')::text AS next
FROM generate_series(
    date_trunc('minute', clock_timestamp()) + interval '1 minute',
    date_trunc('minute', clock_timestamp()) + make_interval(mins => $1), interval '1 minute'
) AS m
WHERE to_regclass('changes_' || to_char(m, 'YYYYMMDDHH24MI')) IS NULL AND NOT EXISTS (
    SELECT 1 FROM changes_default d WHERE d.at >= m AND d.at < m + interval '1 minute'
)
"""
OLD: Final = """
SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'changes'::regclass AND c.relname < 'changes_' || to_char(
    clock_timestamp() - make_interval(secs => $1) - interval '1 minute', 'YYYYMMDDHH24MI'
) AND c.relname <> 'changes_default'
ORDER BY c.relname
"""
RAISE_HORIZON: Final = """
WITH {gone}
UPDATE horizons h SET xid = greatest(h.xid, g.xid), until = greatest(h.until, g.until)
FROM (SELECT max(xid), extract(epoch FROM max(at)) FROM gone) AS g(xid, until)
WHERE h.name = 'changes' AND g.xid IS NOT NULL
"""
CLEAR_DEFAULT: Final = RAISE_HORIZON.format(
    gone="""gone AS (
        DELETE FROM changes_default
        WHERE at < clock_timestamp() - make_interval(secs => $1) RETURNING xid, at
    )"""
)
# A single row per queue and state takes the place of many, in one statement.
FOLD: Final = """
WITH folded AS (
    DELETE FROM queue_tallies WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM queue_tallies LIMIT 50000
    )) RETURNING queue, state, jobs
)
INSERT INTO queue_tallies
SELECT queue, state, sum(jobs) FROM folded GROUP BY queue, state HAVING sum(jobs) <> 0
"""


class Upkeep:
    """Partitions of `changes`, tallies of queues, retention."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def maintain(self, *, changes_kept_s: float = CHANGES_KEPT_S) -> None:
        """Make partitions, drop old ones, fold tallies. Wanted every few seconds.

        What cannot be locked within 50 ms is left for the next call. Raises StoreUnavailable.
        """
        await self._fold()
        await self._make_partitions()
        await self._drop_partitions(changes_kept_s)

    async def prune(self, keep: Retention, *, limit: int = 1000) -> Pruned:
        """Delete what is older than `keep`, at most `limit` rows of each kind; what it was."""
        return await prune(self._database, keep, limit=limit)

    async def _fold(self) -> None:
        async with self._database.transaction() as sql:
            if await sql.value(TRY_LOCK, TALLIES_LOCK):
                await sql.run(FOLD)

    async def _make_partitions(self) -> None:
        try:
            async with self._database.transaction() as sql:
                if await self._alone(sql) and await self._few_ahead(sql):
                    for row in await sql.rows(MISSING, MINUTES_AHEAD):
                        await sql.run(_create(row["minute"], row["first"], row["next"]))
        except Contended:
            return

    async def _drop_partitions(self, kept_s: float) -> None:
        async with self._database.reading() as sql:
            old = [row["name"] for row in await sql.rows(OLD, kept_s)]
        try:
            for name in old:
                async with self._database.transaction() as sql:
                    if await self._alone(sql):
                        await self._drop(sql, name)
            async with self._database.transaction() as sql:
                if await self._alone(sql):
                    await sql.run(CLEAR_DEFAULT, kept_s)
        except Contended:
            return

    @staticmethod
    async def _alone(sql: Sql) -> bool:
        await sql.run(LOCK_TIMEOUT)
        return bool(await sql.value(TRY_LOCK, PARTITIONS_LOCK))

    @staticmethod
    async def _few_ahead(sql: Sql) -> bool:
        ahead = await sql.value(
            "SELECT to_regclass('changes_' || to_char(clock_timestamp()"
            " + make_interval(mins => $1), 'YYYYMMDDHH24MI')) IS NOT NULL",
            FEWEST_AHEAD,
        )
        return not ahead

    @staticmethod
    async def _drop(sql: Sql, name: str) -> None:
        if await sql.value("SELECT to_regclass($1) IS NULL", name):
            return
        await sql.run(f'LOCK TABLE changes, "{name}" IN ACCESS EXCLUSIVE MODE')
        gone = f'gone AS (SELECT xid, at FROM "{name}")'
        await sql.run(RAISE_HORIZON.format(gone=gone))
        await sql.run(f'DROP TABLE "{name}"')


def _create(minute: str, first: str, following: str) -> str:
    return (
        f"CREATE TABLE changes_{minute} PARTITION OF changes"
        f" FOR VALUES FROM ('{first}') TO ('{following}')"
    )
