"""How PostgreSQL carries the hot statements out: by index, and in place."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest

from atoll.adapters.postgres import (
    burst,
    burst_pruning,
    burst_sql,
    burst_views,
    demand,
    dispatch,
    events,
    live,
    placement_tx,
    retention,
    sessions,
    submission,
    submission_tx,
    views,
)
from atoll.adapters.postgres.database import SESSION
from atoll.adapters.postgres.listing import list_statement
from atoll.core.model.ids import JobId, Tenant
from atoll.core.model.lifecycle import JobState
from atoll.ports.store.submission import JobFilter
from tests.adapters.store_builders import TENANT, submit
from tests.adapters.store_worlds import PostgresWorld

GROWING = frozenset({
    "jobs", "attempts", "allocations", "decisions", "events", "requests", "burst_instances",
    "burst_decisions", "burst_ledger", "burst_requests",
})  # fmt: skip

# Ended jobs of four tenants, some live ones, and all that goes with them.
FILL = (
    """INSERT INTO jobs (
        id, tenant, principal, queue, name, labels, array_index, depends_on, begin_at,
        spec_priority, trace, submitted_at, shard, priority, state, wish, message, attempts,
        failures, rollbacks, placed_at, accepted_at, started_at, ended_at, revision, generation,
        shape, spec
    ) SELECT n, 't' || n % 4, '', 'q' || n % 7, '', jsonb_build_object('n', (n % 1000)::text), 0,
        CASE WHEN n % 50 = 0 THEN ARRAY[1::bigint] ELSE '{}' END, 0, 0, '', 0, 0, 0,
        CASE WHEN n > 19000 THEN 'QUEUED' WHEN n % 200 = 0 THEN 'FAILED' ELSE 'SUCCEEDED' END,
        'RUN', '', 1, 0, 0, 0, 0, 0, n, 1, 1, '', repeat('x', 300)::bytea
    FROM generate_series(1, 20000) AS n""",
    """INSERT INTO attempts (
        id, cluster, shard, epoch_generation, epoch_revision, number, tasks, created_at, bind_by,
        state, wish, cause, message, accepted_at, started_at, ended_at, revision
    ) SELECT n << 16 | 1, 'c' || n % 5, 0, 1, 1, n, '', 0, 0,
        CASE WHEN n > 19800 THEN 'RUNNING' ELSE 'FINISHED' END, 'RUN', 'NONE', '', 0, 0, 0, 1
    FROM generate_series(1, 20000) AS n""",
    """INSERT INTO allocations
    SELECT n << 16 | 1, 0, -1, 0, n % 5000, 1, 1, 0, '' FROM generate_series(1, 20000) AS n""",
    """INSERT INTO decisions (
        cluster, number, kind, attempt, epoch_generation, epoch_revision, payload
    ) SELECT 'c' || n % 5, n / 5, 'START', n << 16 | 1, 1, 1, ''
    FROM generate_series(1, 20000) AS n""",
    """INSERT INTO events (job, tenant, queue, state, at, message, principal)
    SELECT n, 't' || n % 4, 'q', 'QUEUED', 0, '', '' FROM generate_series(1, 20000) AS n""",
    """INSERT INTO requests (tenant, key, body_hash, jobs)
    SELECT 't' || n % 4, n::text, '', '{}' FROM generate_series(1, 20000) AS n""",
    """INSERT INTO clusters (name) SELECT 'c' || n FROM generate_series(0, 4) AS n""",
    "INSERT INTO sessions (cluster) SELECT name FROM clusters",
    """INSERT INTO burst_instances (
        token, cluster, shard, offer, price, queue, join_hash, expected_at, give_up_at,
        requested_at, state, jobs, why, provider_id, created_at, ready_at, idle_since, stop_at,
        drain_by, keep_until, ended_at, cause, message, spent, revision
    ) SELECT n::text, 'burst-' || n, 0, '', 1, '', '', 0, 0, 0,
        CASE WHEN n > 19980 THEN 'READY' ELSE 'TERMINATED' END, '{}', '', '', 1, 0, 0, 0, 0, 0, n,
        'NONE', '', 0, 1
    FROM generate_series(1, 20000) AS n""",
    """INSERT INTO burst_decisions (at, job, instances, decision)
    SELECT n, n, ARRAY[n::bigint], '' FROM generate_series(1, 20000) AS n""",
    """INSERT INTO burst_ledger SELECT n / 10 * 3600, n, 'q', 1
    FROM generate_series(1, 20000) AS n""",
    """INSERT INTO burst_requests (key, body_hash, created_at)
    SELECT n::text, '', n FROM generate_series(1, 20000) AS n""",
    "ANALYZE",
)

HOT_STATEMENTS = {
    "jobs are locked": live.LOCK_JOBS,
    "attempts are locked": live.LOCK_ATTEMPTS,
    "jobs are updated": live.UPDATE_JOBS,
    "attempts are updated": live.UPDATE_ATTEMPTS,
    "events are added": live.ADD_EVENTS,
    "jobs are placed": placement_tx.PLACE,
    "decisions are voided": placement_tx.VOID,
    "requests are found": submission_tx.REQUESTS,
    "last attempts are found": submission.LAST_ATTEMPTS,
    "specs are read": dispatch.STARTS,
    "decisions are read": dispatch.DECISIONS,
    "live decisions are read": sessions.LIVE_DECISIONS,
    "changed jobs are read": views.JOBS_NUMBERED,
    "changed attempts are read": views.ATTEMPTS_NUMBERED,
    "live jobs are loaded": views.LIVE_JOBS,
    "live attempts are loaded": views.LIVE_ATTEMPTS,
    "events are watched": events.EVENTS_AFTER,
    "allocations end": live.END_ALLOCATIONS,
    "ended jobs are pruned": retention.JOBS,
    "requests are pruned": retention.REQUESTS,
    "events are pruned": retention.EVENTS,
    "live demand is read": demand.LIVE,
    "ended demand is read": demand.ENDED,
    "some demand is read": demand.NUMBERED,
    "parts of nodes are read": demand.PARTS,
    "changed demand is found": demand.CHANGED,
    "instances are locked": burst_sql.LOCK_INSTANCES,
    "budgets are bound": burst_sql.TAKE_BUDGET,
    "rentals are loaded": burst_views.NEEDED,
    "changed rentals are read": burst_views.CHANGED,
    "instances are listed": burst.LATEST,
    "live instances are listed": burst.LATEST_LIVE,
    "tokens are looked up": burst.WITH_TOKEN,
    "spend is read": burst.SPENT,
    "ended instances are pruned": burst_pruning.OLD,
    "broker's decisions are pruned": burst_pruning.DECISIONS,
    "broker's requests are pruned": burst_pruning.REQUESTS,
    "ledgers are pruned": burst_pruning.LEDGER,
    "rented clusters join": sessions.RENTED,
}
LISTS = {
    "all of a tenant": JobFilter(TENANT),
    "by queue": JobFilter(TENANT, queue="q3"),
    "by state, ended": JobFilter(TENANT, states=frozenset({JobState.FAILED})),
    "by state, live": JobFilter(TENANT, states=frozenset({JobState.QUEUED})),
    "by labels": JobFilter(TENANT, labels=(("n", "17"),)),
    "by ids": JobFilter(TENANT, ids=(JobId(1), JobId(2))),
    "by array": JobFilter(TENANT, array_id=JobId(7)),
}


@pytest.fixture
async def filled(store_dsn: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    connection = await asyncpg.connect(store_dsn)
    for statement in FILL:
        await connection.execute(statement)
    yield connection
    await connection.close()


async def test_hot_statements_scan_no_table_that_grows(
    filled: "asyncpg.Connection[asyncpg.Record]",
) -> None:
    """As prepared statements, whose plans are made for any values."""
    scanned = {}
    for name, statement in HOT_STATEMENTS.items():
        if found := set(await scanned_for_any_values(filled, statement)) & GROWING:
            scanned[name] = found
    assert scanned == {}


async def test_plans_that_were_made_while_nothing_was_there_scan_nothing_either(
    store_dsn: str,
) -> None:
    """A plan is kept, and the table it is for grows."""
    connection = await asyncpg.connect(store_dsn, server_settings=SESSION)
    await connection.execute("VACUUM")
    scanned = {}
    for name, statement in HOT_STATEMENTS.items():
        if found := set(await scanned_for_any_values(connection, statement)) & GROWING:
            scanned[name] = found
    await connection.close()
    assert scanned == {}


async def test_lists_scan_no_table_that_grows(
    filled: "asyncpg.Connection[asyncpg.Record]",
) -> None:
    scanned = {}
    for name, wanted in LISTS.items():
        asked = JobFilter(Tenant("t1"), *_rest(wanted))
        statement, values = list_statement(asked, before=JobId(15_000), limit=20)
        plan = await filled.fetchval(f"EXPLAIN (FORMAT JSON) {statement}", *values)
        found = {*tables_scanned(json.loads(plan))}
        found |= {*await scanned_for_any_values(filled, statement)}
        if found & GROWING:
            scanned[name] = found
    assert scanned == {}


async def scanned_for_any_values(
    connection: "asyncpg.Connection[asyncpg.Record]", statement: str
) -> list[str]:
    count = max(int(number) for number in re.findall(r"\$(\d+)", statement))
    values = ", ".join(["NULL"] * count)
    await connection.execute("SET plan_cache_mode = force_generic_plan")
    await connection.execute(f"PREPARE hot AS {statement}")
    plan = await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE hot({values})")
    await connection.execute("DEALLOCATE hot")
    return list(tables_scanned(json.loads(plan)))


def _rest(wanted: JobFilter) -> tuple[Any, ...]:
    return (
        wanted.queue, wanted.states, wanted.labels, wanted.ids, wanted.array_id, wanted.cluster,
    )  # fmt: skip


def tables_scanned(plan: Any) -> Iterator[str]:
    """Tables that a plan reads from end to end."""
    if isinstance(plan, list):
        for part in plan:
            yield from tables_scanned(part)
    elif isinstance(plan, dict):
        if plan.get("Node Type") == "Seq Scan":
            yield plan["Relation Name"]
        for part in plan.values():
            yield from tables_scanned(part)


def test_the_check_sees_a_scan() -> None:
    scan = {"Node Type": "Seq Scan", "Relation Name": "jobs"}
    assert list(tables_scanned([{"Plan": {"Node Type": "Limit", "Plans": [scan]}}])) == ["jobs"]


async def test_a_live_job_is_updated_in_place(postgres_world: PostgresWorld) -> None:
    """Heap-only: placing and starting a job touches no index."""
    jobs = await submit(postgres_world.store, 5)
    connection = await asyncpg.connect(postgres_world.dsn)
    async with connection.transaction():
        ids = [each.id for each in jobs]
        attempts = [number << 16 | 1 for number in ids]
        placed = await connection.fetch(placement_tx.PLACE, ids, [1] * 5, attempts, ["n"] * 5)
        assert len(placed) == 5
        counted = await connection.fetch(
            "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = 'jobs'"
        )
    await connection.close()
    assert [tuple(row) for row in counted] == [(5, 5)]


async def test_cursors_read_changes_by_index(
    filled: "asyncpg.Connection[asyncpg.Record]",
) -> None:
    await filled.execute(
        "INSERT INTO changes (kind, shard, ids, names)"
        " SELECT 1, 0, ARRAY[n], '{}' FROM generate_series(1, 20000) AS n"
    )
    await filled.execute("ANALYZE changes")
    scanned = await scanned_for_any_values(filled, views.CHANGES_SINCE)
    assert not [name for name in scanned if name.startswith("changes")]
