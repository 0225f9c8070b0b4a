"""Migrations, partitions, sessions: what only PostgreSQL has."""

import asyncio
import sys

import asyncpg
import pytest
from alembic.script import ScriptDirectory

from atoll.adapters.postgres.cursors import Position
from atoll.adapters.postgres.database import SESSION
from atoll.adapters.postgres.migrate import newest, scripts, upgrade
from atoll.core.model.errors import ErrorCode, FailedPrecondition
from atoll.core.model.ids import DEFAULT_SHARD
from tests.adapters.store_builders import submit
from tests.adapters.store_worlds import PostgresWorld

PARTITIONS = """
SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'changes'::regclass ORDER BY 1
"""
OLD_PARTITION = """
CREATE TABLE changes_202001010000 PARTITION OF changes
FOR VALUES FROM ('2020-01-01 00:00+00') TO ('2020-01-01 00:01+00')
"""
OLD_CHANGE = """
INSERT INTO changes (at, kind, shard, ids, names)
VALUES ('2020-01-01 00:00:30+00', 1, 0, '{}', '{}')
"""


UPGRADE = "import sys; from atoll.adapters.postgres.migrate import upgrade; upgrade(sys.argv[1])"


async def test_an_empty_database_is_brought_up_by_many_at_once(postgres_dsn: str) -> None:
    async def another_process() -> int | None:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", UPGRADE, postgres_dsn)
        return await process.wait()

    async with asyncio.timeout(60):
        codes = await asyncio.gather(*(another_process() for _ in range(3)))
    assert codes == [0, 0, 0]
    await asyncio.gather(*(asyncio.to_thread(upgrade, postgres_dsn) for _ in range(3)))
    connection = await asyncpg.connect(postgres_dsn)
    assert await connection.fetchval("SELECT version_num FROM alembic_version") == newest()
    assert await connection.fetchval("SELECT name FROM queues") == "default"
    await connection.close()


def test_migrations_have_one_head() -> None:
    assert ScriptDirectory(str(scripts())).get_heads() == [newest()]


async def test_every_connection_has_its_limits(postgres_world: PostgresWorld) -> None:
    async with postgres_world.store.submission.begin() as tx:
        await tx.now()
        connection = await asyncpg.connect(postgres_world.dsn)
        settings = await connection.fetch(
            "SELECT application_name, state FROM pg_stat_activity WHERE application_name = 'atoll'"
        )
        await connection.close()
    assert [row["state"] for row in settings] == ["idle in transaction"]
    assert SESSION["idle_in_transaction_session_timeout"] == "2s"
    assert SESSION["transaction_timeout"] == "5s"


async def partitions(world: PostgresWorld) -> list[str]:
    connection = await asyncpg.connect(world.dsn)
    rows = await connection.fetch(PARTITIONS)
    await connection.close()
    return [row["relname"] for row in rows]


async def run(world: PostgresWorld, *statements: str) -> None:
    connection = await asyncpg.connect(world.dsn)
    for statement in statements:
        await connection.execute(statement)
    await connection.close()


async def test_changes_are_written_where_no_partition_is_and_where_one_is(
    postgres_world: PostgresWorld,
) -> None:
    store = postgres_world.store
    cursor = (await store.placement.load(DEFAULT_SHARD)).cursor
    await submit(store)
    assert await partitions(postgres_world) == ["changes_default"]
    await store.upkeep.maintain()
    ahead = await partitions(postgres_world)
    assert len(ahead) == 11
    await store.upkeep.maintain()
    assert await partitions(postgres_world) == ahead
    await submit(store)
    assert len((await store.placement.catch_up(DEFAULT_SHARD, cursor)).jobs) == 2


async def test_old_partitions_are_dropped_and_older_cursors_refused(
    postgres_world: PostgresWorld,
) -> None:
    store = postgres_world.store
    old = (await store.placement.load(DEFAULT_SHARD)).cursor
    await run(postgres_world, OLD_PARTITION, OLD_CHANGE)
    young = (await store.placement.load(DEFAULT_SHARD)).cursor
    await store.upkeep.maintain()
    assert "changes_202001010000" not in await partitions(postgres_world)
    with pytest.raises(FailedPrecondition) as refused:
        await store.placement.catch_up(DEFAULT_SHARD, old)
    assert refused.value.code is ErrorCode.CURSOR_EXPIRED
    with pytest.raises(FailedPrecondition):
        await store.burst.changed_demand(old)
    assert (await store.placement.catch_up(DEFAULT_SHARD, young)).jobs == ()


async def test_a_cursor_that_is_merely_old_is_refused(postgres_world: PostgresWorld) -> None:
    store = postgres_world.store
    position = Position.parse((await store.placement.load(DEFAULT_SHARD)).cursor)
    hours_ago = Position(
        position.system, position.timeline, position.at - 3600, snapshot=position.snapshot
    )
    with pytest.raises(FailedPrecondition):
        await store.placement.catch_up(DEFAULT_SHARD, hours_ago.cursor())
    later = Position(position.system, position.timeline, position.at, snapshot="900000:900000:")
    with pytest.raises(FailedPrecondition, match="restored"):
        await store.placement.catch_up(DEFAULT_SHARD, later.cursor())


async def test_what_strays_into_the_default_partition_is_cleared(
    postgres_world: PostgresWorld,
) -> None:
    await run(postgres_world, OLD_CHANGE)
    await postgres_world.store.upkeep.maintain()
    connection = await asyncpg.connect(postgres_world.dsn)
    assert await connection.fetchval("SELECT count(*) FROM changes") == 0
    assert await connection.fetchval("SELECT until FROM horizons WHERE name = 'changes'") > 0
    await connection.close()


async def test_a_partition_in_use_is_dropped_another_time(postgres_world: PostgresWorld) -> None:
    store = postgres_world.store
    await run(postgres_world, OLD_PARTITION)
    reader = await asyncpg.connect(postgres_world.dsn)
    reading = reader.transaction()
    await reading.start()
    await reader.fetch("SELECT 1 FROM changes")
    await store.upkeep.maintain()
    assert "changes_202001010000" in await partitions(postgres_world)
    await reading.commit()
    await reader.close()
    await store.upkeep.maintain()
    assert "changes_202001010000" not in await partitions(postgres_world)


async def test_tallies_are_folded_into_one_row_each(postgres_world: PostgresWorld) -> None:
    for _ in range(5):
        await submit(postgres_world.store, 2)
    await postgres_world.store.upkeep.maintain()
    connection = await asyncpg.connect(postgres_world.dsn)
    rows = await connection.fetch("SELECT * FROM queue_tallies")
    await connection.close()
    assert [tuple(row) for row in rows] == [("default", "QUEUED", 10)]


async def test_a_large_load_comes_in_pieces(postgres_world: PostgresWorld) -> None:
    for _ in range(12):
        await submit(postgres_world.store, 1000)
    delta = await postgres_world.store.placement.load(DEFAULT_SHARD)
    ids = [view.pending.id for view in delta.jobs]
    assert ids == sorted(ids)
    assert len(ids) == 12_000
    assert len({id(view.pending.request) for view in delta.jobs}) == 1
