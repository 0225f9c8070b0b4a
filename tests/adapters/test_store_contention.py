"""What other transactions, roles and limits of a real server do to the store."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import asyncpg
import pytest

from atoll.adapters.memory.clock import ManualClock
from atoll.adapters.system import SystemClock, SystemIds
from atoll.core.model.errors import ErrorCode, Exhausted
from atoll.core.model.ids import DEFAULT_SHARD
from atoll.ports.store.common import Contended
from atoll.ports.store.dispatch import Beat
from atoll.ports.store.retry import retrying
from tests.adapters.store_builders import (
    NORTH,
    SOUTH,
    TENANT,
    claim,
    submit,
)
from tests.adapters.store_worlds import PostgresWorld


@contextlib.asynccontextmanager
async def foreign(world: PostgresWorld) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """Somebody else's connection."""
    connection = await asyncpg.connect(world.dsn)
    try:
        yield connection
    finally:
        await connection.close()


async def test_when_all_connections_are_in_use_the_caller_is_told(
    postgres_world: PostgresWorld,
) -> None:
    store = postgres_world.another(pool_size=1, wait_s=0.1)
    async with store.submission.begin() as tx:
        await tx.now()
        with pytest.raises(Exhausted) as refused:
            await store.submission.clusters()
    assert refused.value.code is ErrorCode.OVERLOADED
    assert await store.submission.clusters() == []


PLAIN = (
    "CREATE ROLE {name} LOGIN PASSWORD 'plain' CONNECTION LIMIT 1",
    "GRANT ALL ON SCHEMA public TO {name}",
    "GRANT ALL ON ALL TABLES IN SCHEMA public TO {name}",
    "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {name}",
)
GONE = ("DROP OWNED BY {name}", "DROP ROLE {name}")


async def test_an_ordinary_role_is_enough_and_its_limit_is_told(
    postgres_world: PostgresWorld,
) -> None:
    name = f"plain_{postgres_world.dsn.rpartition('/')[2]}"
    async with foreign(postgres_world) as admin:
        for statement in PLAIN:
            await admin.execute(statement.format(name=name))
        server = postgres_world.dsn.partition("@")[2]
        store = postgres_world.another(dsn=f"postgresql://{name}:plain@{server}")
        cursor = (await store.placement.load(DEFAULT_SHARD)).cursor
        watched = await store.submission.events_now()
        [mine] = await submit(store)
        seen = await store.placement.catch_up(DEFAULT_SHARD, cursor)
        assert [view.pending.id for view in seen.jobs] == [mine.id]
        page = await store.submission.events_after(watched, tenant=TENANT)
        assert len(page.events) == 1
        async with store.submission.begin() as tx:
            await tx.now()
            with pytest.raises(Exhausted):
                await store.submission.clusters()
        await store.close()
        for statement in GONE:
            await admin.execute(statement.format(name=name))


async def test_reversed_batches_do_not_deadlock(postgres_world: PostgresWorld) -> None:
    jobs = await submit(postgres_world.store, 40)
    await postgres_world.store.dispatch.open_session(claim())
    await postgres_world.store.dispatch.open_session(claim(SOUTH))

    async def touch(turn: int) -> None:
        batch = jobs[:: -1 if turn % 2 else 1][turn : turn + 20]
        async with postgres_world.store.submission.begin() as tx:
            rows = await tx.lock_jobs([each.id for each in batch])
            await tx.update_jobs([replace(row, priority=turn) for row in rows.values()])

    async def beat(turn: int) -> None:
        beats = [Beat(name, 1, turn, lease_s=30) for name in (NORTH, SOUTH)]
        await postgres_world.store.dispatch.beat(beats[:: -1 if turn % 2 else 1])

    async with asyncio.TaskGroup() as group:
        for turn in range(20):
            group.create_task(touch(turn))
            group.create_task(beat(turn))
    [last, *_] = await postgres_world.store.submission.clusters()
    assert last.acked_seq == 19


async def test_a_deadlock_is_told_and_helped_by_another_try(
    postgres_world: PostgresWorld,
) -> None:
    first, second = await submit(postgres_world.store, 2)
    tries = 0

    async def lock_in_a_bad_order(other: "asyncpg.Connection[asyncpg.Record]") -> None:
        nonlocal tries
        tries += 1
        async with postgres_world.store.submission.begin() as tx:
            await tx.lock_jobs([second.id])
            if tries == 1:
                waiting.append(asyncio.create_task(other.execute(lock, second.id)))
                await asyncio.sleep(0.1)
            await tx.lock_jobs([first.id])

    waiting: list[asyncio.Task[str]] = []
    lock = "SELECT 1 FROM jobs WHERE id = $1 FOR UPDATE"
    async with foreign(postgres_world) as other:
        # It must not be this one that finds the deadlock and gives way.
        await other.execute("SET deadlock_timeout = '20s'")
        transaction = other.transaction()
        await transaction.start()
        await other.execute(lock, first.id)
        with pytest.raises(Contended):
            await lock_in_a_bad_order(other)
        await waiting[0]
        await transaction.commit()
        tries = 0
        again = other.transaction()
        await again.start()
        await other.execute(lock, first.id)

        async def attempt() -> None:
            try:
                await lock_in_a_bad_order(other)
            except Contended:
                await waiting[-1]
                await again.commit()
                raise

        await retrying(attempt, clock=SystemClock(), ids=SystemIds())
    assert tries == 2


async def test_tries_are_bounded() -> None:
    clock, calls = ManualClock(), 0

    async def contended() -> None:
        nonlocal calls
        calls += 1
        raise Contended("again")

    trying = asyncio.ensure_future(retrying(contended, clock=clock, ids=SystemIds(), attempts=4))
    for _ in range(4):
        await clock.advance(1)
    with pytest.raises(Contended):
        await trying
    assert calls == 4


async def test_a_slow_foreign_transaction_hides_nothing_and_is_not_missed(
    postgres_world: PostgresWorld,
) -> None:
    """It began before the cursor was taken, and commits after others were seen."""
    store = postgres_world.store
    [early] = await submit(store)
    async with foreign(postgres_world) as other:
        slow = other.transaction()
        await slow.start()
        await other.execute(
            "INSERT INTO changes (kind, shard, ids, names) VALUES (1, 0, ARRAY[$1::bigint], '{}')",
            early.id,
        )
        await other.execute(
            "INSERT INTO events (job, tenant, queue, state, at, message, principal)"
            " VALUES ($1, $2, 'default', 'HELD', 1, 'slow', '')",
            early.id,
            TENANT,
        )
        changes = (await store.placement.load(DEFAULT_SHARD)).cursor
        events = await store.submission.events_now()
        [quick] = await submit(store)
        delta = await store.placement.catch_up(DEFAULT_SHARD, changes)
        page = await store.submission.events_after(events, tenant=TENANT)
        assert [view.pending.id for view in delta.jobs] == [quick.id]
        assert [event.job for event in page.events] == [quick.id]
        still = await store.placement.catch_up(DEFAULT_SHARD, delta.cursor)
        assert still.jobs == ()
        await slow.commit()
    late = await store.placement.catch_up(DEFAULT_SHARD, still.cursor)
    late_page = await store.submission.events_after(page.cursor, tenant=TENANT)
    assert [view.pending.id for view in late.jobs] == [early.id]
    assert [event.message for event in late_page.events] == ["slow"]
    assert (await store.placement.catch_up(DEFAULT_SHARD, late.cursor)).jobs == ()
    after = await store.submission.events_after(late_page.cursor, tenant=TENANT)
    assert after.events == ()


async def test_a_failover_makes_cursors_useless(postgres_world: PostgresWorld) -> None:
    cursor = (await postgres_world.store.placement.load(DEFAULT_SHARD)).cursor
    version, system, timeline, *rest = cursor.text.split("/")
    promoted = "/".join([version, system, f"{int(timeline, 16) + 1:08X}", *rest])
    with pytest.raises(Exception, match="failover") as refused:
        await postgres_world.store.placement.catch_up(DEFAULT_SHARD, replace(cursor, text=promoted))
    assert getattr(refused.value, "code", None) is ErrorCode.CURSOR_EXPIRED
