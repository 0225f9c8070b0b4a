"""The burst service's side of the store."""

import contextlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import Final

from atoll.adapters.postgres.burst_pruning import prune_burst
from atoll.adapters.postgres.burst_rows import DECISION, WANTS, instance_from, queue_from
from atoll.adapters.postgres.burst_sql import BUDGETS, INSTANCES
from atoll.adapters.postgres.burst_tx import PostgresBurstTx
from atoll.adapters.postgres.burst_use import read_capacities, read_uses
from atoll.adapters.postgres.burst_views import read_offers, read_policies
from atoll.adapters.postgres.cursors import Position
from atoll.adapters.postgres.database import Database
from atoll.adapters.postgres.demand import (
    read_changed,
    read_cores,
    read_numbered,
    read_pages,
    read_parts,
)
from atoll.adapters.postgres.sql import Record
from atoll.adapters.postgres.views import read_here
from atoll.core.model.burst import BurstPolicy, Instance, InstanceId, Offer
from atoll.core.model.burst_time import hour_of
from atoll.core.model.burst_wants import BurstDecision, Want
from atoll.core.model.errors import StaleEpoch
from atoll.core.model.ids import Epoch, JobId, NodeId, QueueName
from atoll.ports.store.bookings import LoopFence
from atoll.ports.store.burst import BudgetState, BurstTx, Capacity, InstanceUse
from atoll.ports.store.common import Cursor
from atoll.ports.store.demand import PAGE, ChangedDemand, DemandRow, NodeParts
from atoll.runtime import failpoints

TAKE_OVER: Final = """
UPDATE burst_loop SET epoch_generation = $1, epoch_revision = $2
WHERE id = 0 AND (epoch_generation, epoch_revision) <= ($1, $2)
RETURNING epoch_generation, epoch_revision, seq
"""
READ_FENCE: Final = """
SELECT epoch_generation, epoch_revision, seq FROM burst_loop WHERE id = 0 FOR UPDATE
"""
LIVE: Final = f"{INSTANCES} WHERE i.live ORDER BY i.id"
NUMBERED: Final = f"{INSTANCES} WHERE i.id = ANY($1::bigint[]) ORDER BY i.id"
WITH_TOKEN: Final = f"{INSTANCES} WHERE i.token = ANY($1::text[])"
LATEST: Final = f"""
{INSTANCES} WHERE ($1::bigint = 0 OR i.id < $1) ORDER BY i.id DESC LIMIT $2
"""
LATEST_LIVE: Final = f"""
{INSTANCES} WHERE i.live AND ($1::bigint = 0 OR i.id < $1) ORDER BY i.id DESC LIMIT $2
"""
WANTED: Final = "SELECT wants FROM burst_wants ORDER BY shard"
DECISIONS: Final = "SELECT id, decision FROM burst_decisions"
# Names below `a` lie between `a.` and `a/`, the character after the dot.
SPENT: Final = """
SELECT hour, sum(amount)::bigint AS amount FROM burst_ledger
WHERE hour >= $2::bigint AND hour < $3::double precision
    AND ($1 = '' OR queue = $1 OR queue > $1 || '.' AND queue < $1 || '/')
GROUP BY hour HAVING sum(amount) <> 0 ORDER BY hour
"""


class PostgresBurstStore:
    """The burst service's side of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextlib.asynccontextmanager
    async def begin(self) -> AsyncIterator[BurstTx]:
        """One transaction; retried by the caller, never inside."""
        async with self._database.transaction() as sql:
            yield PostgresBurstTx(sql)
            failpoints.hit("burst.before_commit")
        failpoints.hit("burst.after_commit")

    async def take_over(self, epoch: Epoch) -> LoopFence:
        """Commit a new epoch of the loop; raises StaleEpoch when a later one stands."""
        async with self._database.transaction() as sql:
            row = await sql.row(TAKE_OVER, epoch.generation, epoch.revision)
        if row is None:
            raise StaleEpoch
        return _fence(row)

    async def read_fence(self) -> LoopFence:
        """The loop's fence as it stands, read under its lock: waits for a commit in flight."""
        async with self._database.transaction() as sql:
            row = await sql.row(READ_FENCE)
        assert row is not None
        return _fence(row)

    async def policies(self) -> list[BurstPolicy]:
        """All, that of all together first, then by queue."""
        async with self._database.reading() as sql:
            return await read_policies(sql)

    async def budgets(self) -> list[BudgetState]:
        """All, in the same order."""
        async with self._database.reading() as sql:
            rows = await sql.rows(BUDGETS)
        return [
            BudgetState(queue_from(row["queue"]), row["rate"], row["hour"], row["month"])
            for row in rows
        ]

    async def live_instances(self) -> list[Instance]:
        """Those that are neither TERMINATED nor FAILED, by number."""
        return await self._instances(LIVE)

    async def instances(self, ids: Iterable[InstanceId]) -> dict[InstanceId, Instance]:
        """By number, unlocked; those that do not exist are left out."""
        return {each.id: each for each in await self._instances(NUMBERED, sorted(set(ids)))}

    async def list_instances(self, *, ended: bool, before: int, limit: int) -> list[Instance]:
        """The latest first, only numbers below `before` (0: all)."""
        return await self._instances(LATEST if ended else LATEST_LIVE, before, limit)

    async def with_token(self, tokens: Iterable[str]) -> dict[str, Instance]:
        """By idempotency token, also those that are ended."""
        return {each.token: each for each in await self._instances(WITH_TOKEN, list(tokens))}

    async def uses(self) -> list[InstanceUse]:
        """Of all instances that are not ended, by cluster."""
        async with self._database.reading() as sql:
            return await read_uses(sql)

    async def offers(self) -> list[Offer]:
        """What providers offered last, by key."""
        async with self._database.reading() as sql:
            return await read_offers(sql)

    async def wants(self) -> list[Want]:
        """What placement leaders wrote last, in the order of their queues."""
        async with self._database.reading() as sql:
            rows = await sql.rows(WANTED)
        return [want for row in rows for want in WANTS.validate_json(row["wants"])]

    async def decisions(
        self,
        *,
        job: JobId | None = None,
        instance: InstanceId | None = None,
        limit: int = 20,
    ) -> list[BurstDecision]:
        """The latest first."""
        wheres, values = _decided(job, instance)
        statement = f"{DECISIONS}{wheres} ORDER BY id DESC LIMIT ${len(values) + 1}"
        async with self._database.reading() as sql:
            rows = await sql.rows(statement, *values, limit)
        return [replace(DECISION.validate_json(row["decision"]), id=row["id"]) for row in rows]

    async def spent(
        self, queue: QueueName | None, *, since: float, until: float
    ) -> list[tuple[int, int]]:
        """(unix seconds of the full hour, micro-dollars), ascending; hours without are left out."""
        async with self._database.reading() as sql:
            rows = await sql.rows(SPENT, queue or "", hour_of(since), until)
        return [(row["hour"], row["amount"]) for row in rows]

    async def capacities(self) -> list[Capacity]:
        """By cluster and kind, of nodes that take work."""
        async with self._database.reading() as sql:
            return await read_capacities(sql)

    async def demand_cursor(self) -> Cursor:
        """From which later changes are seen."""
        async with self._database.reading() as sql:
            return (await read_here(sql)).cursor()

    def demand(self, *, since: float, page: int = PAGE) -> AsyncIterator[list[DemandRow]]:
        """Jobs that are not ended, by shard and number; then those that ended after `since`."""
        return read_pages(self._database, since=since, page=page)

    async def changed_demand(self, cursor: Cursor) -> ChangedDemand:
        """Jobs that were written since, whoever wrote them; raises CURSOR_EXPIRED."""
        start = Position.parse(cursor)
        async with self._database.reading() as sql:
            return await read_changed(sql, start)

    async def cores(self) -> float:
        """Processors of all nodes that take work and are not rented."""
        async with self._database.reading() as sql:
            return await read_cores(sql)

    async def node_parts(self, nodes: Iterable[NodeId]) -> dict[NodeId, NodeParts]:
        """By number; those that do not exist are left out."""
        async with self._database.reading() as sql:
            return await read_parts(sql, nodes)

    async def demand_of(self, jobs: Iterable[JobId]) -> list[DemandRow]:
        """Jobs as they are, by number; those that do not exist are left out."""
        async with self._database.reading() as sql:
            return await read_numbered(sql, jobs)

    async def memory(self, name: str) -> bytes | None:
        """What the forecaster keeps under a name."""
        async with self._database.reading() as sql:
            found = await sql.value("SELECT content FROM burst_memory WHERE name = $1", name)
        return None if found is None else bytes(found)

    async def prune(self, *, before: float, limit: int = 1000) -> int:
        """Delete ended instances, decisions and requests older than `before`; how many rows."""
        return await prune_burst(self._database, before=before, limit=limit)

    async def _instances(self, statement: str, *values: object) -> list[Instance]:
        async with self._database.reading() as sql:
            return [instance_from(row) for row in await sql.rows(statement, *values)]


def _decided(job: JobId | None, instance: InstanceId | None) -> tuple[str, list[object]]:
    wanted = {"job = ": job, "instances @> ": None if instance is None else [instance]}
    given = [(what, value) for what, value in wanted.items() if value is not None]
    wheres = " AND ".join(f"{what}${at}" for at, (what, _) in enumerate(given, 1))
    return (f" WHERE {wheres}" if wheres else ""), [value for _, value in given]


def _fence(row: Record) -> LoopFence:
    epoch = Epoch(row["epoch_generation"], row["epoch_revision"])
    return LoopFence(epoch, row["seq"])
