"""The reservation service's side of the store."""

import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from typing import Final

from atoll.adapters.postgres import event_pages
from atoll.adapters.postgres.booking_events import booking_events_after
from atoll.adapters.postgres.database import Database, take_long
from atoll.adapters.postgres.reservation_lists import (
    WITHOUT_OCCURRENCE,
    occurrences_statement,
    reservations_statement,
)
from atoll.adapters.postgres.reservation_pruning import prune_bookings
from atoll.adapters.postgres.reservation_rows import (
    OCCURRENCE_COLUMNS,
    RESERVATION_COLUMNS,
    action_from,
    kept_rows,
    occurrence_from,
    read_parts,
    request_from,
    reservation_from,
    rule_from,
    with_parts,
)
from atoll.adapters.postgres.reservation_sql import KEPT, KEPT_NUMBERED, REQUEST
from atoll.adapters.postgres.reservation_tx import PostgresReservationTx
from atoll.adapters.postgres.sql import Record, Sql
from atoll.core.model.booking import OccurrenceId
from atoll.core.model.errors import StaleEpoch
from atoll.core.model.ids import Epoch, QueueName, ShardId, Tenant
from atoll.core.model.reservation import (
    NO_RESERVATION,
    Occurrence,
    Reservation,
    ReservationId,
)
from atoll.core.model.standing_rule import Rule, RuleAction
from atoll.ports.store.bookings import (
    BookingPage,
    BookingRequest,
    BookingRetention,
    Kept,
    Listed,
    LoopFence,
    OccurrenceFilter,
    PastRun,
    ReservationFilter,
)
from atoll.ports.store.common import Cursor
from atoll.ports.store.reservation import ReservationTx
from atoll.runtime import failpoints
from atoll.wire.placement import decode_tasks

TAKE_OVER: Final = """
UPDATE booking_loop SET epoch_generation = $1, epoch_revision = $2
WHERE id = 0 AND (epoch_generation, epoch_revision) <= ($1, $2)
RETURNING epoch_generation, epoch_revision, seq
"""
FENCE: Final = """
SELECT epoch_generation, epoch_revision, seq FROM booking_loop WHERE id = 0 FOR UPDATE
"""
LIVE: Final = f"{KEPT} WHERE o.live ORDER BY o.id"
MADE_BY: Final = f"{KEPT} WHERE r.tenant = $1 AND r.created_by = $2 ORDER BY o.id"
# Names below `a` lie between `a.` and `a/`, the character after the dot.
PAST_RUNS: Final = """
SELECT a.started_at, a.ended_at, a.tasks FROM jobs j
    JOIN attempts a ON a.id BETWEEN j.id << 16 AND (j.id << 16 | 65535)
WHERE (j.queue = $1 OR j.queue > $1 || '.' AND j.queue < $1 || '/')
    AND a.started_at > 0 AND (a.ended_at = 0 OR a.ended_at > $2)
ORDER BY a.started_at
"""
FIND: Final = """
SELECT id FROM reservations WHERE tenant = $1 AND name = $2
ORDER BY state = 'ACTIVE' DESC, id DESC LIMIT 1
"""
WITH_UID: Final = """
SELECT id FROM reservations WHERE tenant = $1 AND uid = $2 AND uid <> '' AND state = 'ACTIVE'
ORDER BY id DESC LIMIT 1
"""
TO_PLAN: Final = f"""
SELECT {RESERVATION_COLUMNS} FROM reservations r
WHERE r.state = 'ACTIVE' AND r.recurs AND r.planned_until < $1 ORDER BY r.id LIMIT $2
"""
RULES: Final = """
SELECT * FROM booking_rules WHERE $1::text IS NULL OR tenant = $1 ORDER BY tenant, name
"""
ACTIONS: Final = """
SELECT * FROM booking_rule_actions WHERE tenant = $1 AND ($2 = '' OR rule = $2)
    AND ($3::bigint = 0 OR id < $3) ORDER BY id DESC LIMIT $4
"""


class PostgresReservationStore:
    """The reservation service's side of the store. `reader` is a name that nobody writes under."""

    def __init__(self, database: Database, reader: str) -> None:
        self._database = database
        self._reader = reader

    @contextlib.asynccontextmanager
    async def begin(self) -> AsyncIterator[ReservationTx]:
        """One transaction; retried by the caller, never inside."""
        async with self._database.transaction() as sql:
            yield PostgresReservationTx(sql, self._reader)
            failpoints.hit("reservation.before_commit")
        failpoints.hit("reservation.after_commit")

    async def shards(self) -> list[ShardId]:
        """All shards, ascending."""
        async with self._database.reading() as sql:
            rows = await sql.rows("SELECT id FROM shards ORDER BY id")
        return [ShardId(row["id"]) for row in rows]

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
            row = await sql.row(FENCE)
        assert row is not None
        return _fence(row)

    async def get(self, tenant: Tenant, reservation: ReservationId) -> Listed | None:
        """One reservation."""
        wanted = ReservationFilter(tenant, over=True)
        async with self._database.reading() as sql:
            found = await _listed(sql, wanted, only=reservation, limit=1)
        return found[0] if found else None

    async def find(self, tenant: Tenant, name: str) -> ReservationId | None:
        """The live reservation of a name, else the last one."""
        return await self._number(FIND, tenant, name)

    async def with_uid(self, tenant: Tenant, uid: str) -> ReservationId | None:
        """The live reservation that came of a calendar's event."""
        return await self._number(WITH_UID, tenant, uid)

    async def standing(self, tenant: Tenant, key: str) -> BookingRequest | None:
        """What came of a request key."""
        async with self._database.reading() as sql:
            row = await sql.row(REQUEST, tenant, key)
        return None if row is None else request_from(row)

    async def list_reservations(
        self, wanted: ReservationFilter, *, after: tuple[float, int], limit: int
    ) -> list[Listed]:
        """Reservations by (key, number), only those after `after`."""
        async with self._database.reading() as sql:
            return await _listed(sql, wanted, after=after, limit=limit)

    async def list_occurrences(
        self, wanted: OccurrenceFilter, *, after: tuple[float, int], limit: int
    ) -> list[Occurrence]:
        """Occurrences by (start, number), only those after `after`."""
        statement, values = occurrences_statement(wanted, after=after, limit=limit)
        async with self._database.reading() as sql:
            return await with_parts(sql, await sql.rows(statement, *values))

    async def live(self) -> list[Kept]:
        """All occurrences of all tenants that are not over, by number."""
        found: list[Kept] = []
        async with self._database.snapshot() as sql:
            await take_long(sql)
            async with aclosing(sql.chunks(LIVE)) as chunks:
                async for rows in chunks:
                    found += await kept_rows(sql, rows)
        return found

    async def kept(self, ids: Iterable[OccurrenceId]) -> dict[OccurrenceId, Kept]:
        """Occurrences by number; those that do not exist are left out."""
        async with self._database.reading() as sql:
            rows = await sql.rows(KEPT_NUMBERED, sorted(set(ids)))
            return {each.occurrence.id: each for each in await kept_rows(sql, rows)}

    async def made_by(self, tenant: Tenant, created_by: str) -> list[Kept]:
        """All occurrences of somebody's reservations, those that are over too, by number."""
        async with self._database.reading() as sql:
            return await kept_rows(sql, await sql.rows(MADE_BY, tenant, created_by))

    async def past_runs(self, queue: QueueName, since: float) -> list[PastRun]:
        """Runs of a queue and of those below it that had not ended by `since`, by start."""
        async with self._database.reading() as sql:
            rows = await sql.rows(PAST_RUNS, queue, since)
        return [
            PastRun(row["started_at"], row["ended_at"], decode_tasks(row["tasks"])) for row in rows
        ]

    async def to_plan(self, until: float, *, limit: int) -> list[Reservation]:
        """Live recurring reservations that are planned to less than `until`, by number."""
        async with self._database.reading() as sql:
            return [reservation_from(row) for row in await sql.rows(TO_PLAN, until, limit)]

    async def live_without_occurrence(self, *, limit: int) -> list[Reservation]:
        """Live reservations none of whose occurrences is to come, by number."""
        async with self._database.reading() as sql:
            return [reservation_from(row) for row in await sql.rows(WITHOUT_OCCURRENCE, limit)]

    async def rules(self, tenant: Tenant | None = None) -> list[Rule]:
        """Rules of one tenant, or of all, by tenant and name."""
        async with self._database.reading() as sql:
            return [rule_from(row) for row in await sql.rows(RULES, tenant)]

    async def rule_actions(
        self, tenant: Tenant, rule: str, *, before: int, limit: int
    ) -> list[tuple[int, RuleAction]]:
        """What rules did, numbered, the latest first, only numbers below `before` (0: all)."""
        async with self._database.reading() as sql:
            rows = await sql.rows(ACTIONS, tenant, rule, before, limit)
        return [action_from(row) for row in rows]

    async def events_now(self) -> Cursor:
        """The cursor from which only later events are seen."""
        return await event_pages.now(self._database)

    async def events_after(
        self,
        cursor: Cursor,
        *,
        tenant: Tenant,
        queue: str = "",
        reservation: ReservationId = NO_RESERVATION,
        limit: int = 1000,
    ) -> BookingPage:
        """The next events after a cursor, complete and without repeats; raises CURSOR_EXPIRED."""
        return await booking_events_after(
            self._database, cursor, tenant=tenant, queue=queue, reservation=reservation, limit=limit
        )

    async def prune(self, keep: BookingRetention, *, limit: int = 1000) -> int:
        """Delete what is older than `keep`, at most `limit` rows of each kind; how many."""
        return await prune_bookings(self._database, keep, limit=limit)

    async def _number(self, statement: str, *values: object) -> ReservationId | None:
        async with self._database.reading() as sql:
            found = await sql.value(statement, *values)
        return None if found is None else ReservationId(found)


async def _listed(
    sql: Sql,
    wanted: ReservationFilter,
    *,
    limit: int,
    after: tuple[float, int] | None = None,
    only: ReservationId = NO_RESERVATION,
) -> list[Listed]:
    statement, values = reservations_statement(wanted, after=after, only=only, limit=limit)
    rows = await sql.rows(statement, *values)
    coming = await _coming(sql, [row["following"] for row in rows if row["following"]])
    return [
        Listed(
            reservation_from(row),
            coming.get(row["following"]),
            planned=row["planned"],
            key=row["key"],
        )
        for row in rows
    ]


async def _coming(sql: Sql, ids: Sequence[int]) -> dict[int, Occurrence]:
    if not ids:
        return {}
    statement = (
        f"SELECT {OCCURRENCE_COLUMNS} FROM occurrences o JOIN reservations r"
        " ON r.id = o.reservation WHERE o.id = ANY($1::bigint[])"
    )
    rows = await sql.rows(statement, ids)
    parts = await read_parts(sql, ids)
    return {
        row["occurrence"]: occurrence_from(row, parts.get(row["occurrence"], ())) for row in rows
    }


def _fence(row: Record) -> LoopFence:
    epoch = Epoch(row["epoch_generation"], row["epoch_revision"])
    return LoopFence(epoch, row["seq"])
