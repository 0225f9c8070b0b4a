"""Pages of a history that watches show: complete, without repeats, whatever table it is in."""

from collections.abc import Callable
from typing import TypeVar

from atoll.adapters.postgres.cursors import HERE, MARGIN_S, Position, expired
from atoll.adapters.postgres.database import Database
from atoll.adapters.postgres.sql import Record, Sql
from atoll.ports.store.common import Cursor

EventT = TypeVar("EventT")


def pages_of(table: str, columns: str, wanted: str) -> str:
    """The statement that reads a page: rows `e` of `table` for which `wanted` holds.

    $1 to $5 are taken; what `wanted` compares with begins at $6. One statement, so one snapshot:
    what is read, up to where, and whether rows were pruned that the cursor had not seen. The
    first unseen row is found by transaction, the rest go by id: what the events are about is
    locked while they are written, so that its events are in the order of their commits.
    """
    return f"""
WITH here AS MATERIALIZED (SELECT {HERE}),
    lost AS MATERIALIZED (
        SELECT xid >= pg_snapshot_xmax($1::text::pg_snapshot) OR $3 < until + {MARGIN_S} AS lost
        FROM horizons WHERE name = '{table}' AND until > 0
    ),
    bounds AS MATERIALIZED (
        SELECT CASE WHEN $4::bigint > 0 THEN $4 + 1 ELSE (
            SELECT coalesce(min(id), 9223372036854775807) FROM (
                SELECT id FROM {table}
                WHERE xid >= pg_snapshot_xmin($1::text::pg_snapshot)
                    AND NOT pg_visible_in_snapshot(xid, $1::text::pg_snapshot)
                OFFSET 0  -- else the planner looks for the least id among all rows
            ) AS unseen
        ) END AS first
    )
SELECT here.*, coalesce((SELECT lost FROM lost), false) AS lost, e.id, e.at AS event_at, {columns}
FROM here LEFT JOIN LATERAL (
    SELECT e.* FROM {table} e
    WHERE e.id >= (SELECT first FROM bounds)
        AND NOT pg_visible_in_snapshot(e.xid, $1::text::pg_snapshot)
        AND ($2 = '' OR pg_visible_in_snapshot(e.xid, nullif($2, '')::pg_snapshot))
        AND {wanted}
    ORDER BY e.id LIMIT $5
) AS e ON true
"""


async def now(database: Database) -> Cursor:
    """The cursor from which only later events are seen."""
    async with database.reading() as sql:
        row = await sql.row(f"SELECT {HERE}")
    assert row is not None
    return Position.of(row).cursor()


async def page_after(
    database: Database,
    statement: str,
    cursor: Cursor,
    *wanted: object,
    build: Callable[[Record], EventT],
    limit: int,
) -> tuple[list[EventT], Cursor]:
    """The next page and the cursor after it; one that is not full has all there is.

    `wanted`: parameters of the statement from $6 on. Raises CURSOR_EXPIRED.
    """
    place = Position.parse(cursor)
    async with database.reading() as sql:
        rows, place = await _read(sql, statement, place, *wanted, limit=limit)
        while place.upto and len(rows) < limit:
            # The pages of one snapshot are through; what was committed since comes after them.
            left = limit - len(rows)
            more, place = await _read(sql, statement, place.reached(), *wanted, limit=left)
            rows += more
    return [build(row) for row in rows], place.cursor()


async def _read(
    sql: Sql, statement: str, start: Position, *wanted: object, limit: int
) -> tuple[list[Record], Position]:
    rows = await sql.rows(
        statement, start.snapshot, start.upto, start.at, start.after_id, limit, *wanted
    )
    here = Position.of(rows[0])
    start.require_same_life(here)
    if rows[0]["lost"]:
        raise expired("events after it were pruned")
    found = [row for row in rows if row["id"] is not None]
    if len(found) == limit:
        return found, start.amid(upto=start.upto or here.snapshot, after_id=found[-1]["id"])
    return found, start if start.upto else here
