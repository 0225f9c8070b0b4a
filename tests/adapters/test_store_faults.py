"""What a real server, a network and other transactions do to the store."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from atoll.core.model.errors import StaleEpoch
from atoll.core.model.ids import DEFAULT_SHARD, Epoch, JobId
from atoll.core.model.lifecycle import JobState
from atoll.ports.store.common import StoreUnavailable, UnknownOutcome
from tests.adapters.store_builders import (
    NORTH,
    TENANT,
    cluster_with,
    job,
    lead,
    node,
    node_ids,
    place,
    placement,
    submit,
)
from tests.adapters.store_worlds import PostgresWorld, Store
from tests.support.proxy import Proxy
from tests.support.servers import PostgresLike
from tests.support.waiting import eventually


@contextlib.asynccontextmanager
async def proxied(world: PostgresWorld, server: PostgresLike) -> AsyncIterator[tuple[Store, Proxy]]:
    """A store behind a network that can be broken."""
    async with Proxy(server.port) as proxy:
        dsn = world.dsn.replace(f":{server.port}/", f":{proxy.port}/")
        store = world.another(dsn=dsn)
        yield store, proxy
        await store.close()


async def test_a_lost_reply_to_a_commit_is_an_unknown_outcome(
    postgres_world: PostgresWorld, postgres_server: PostgresLike
) -> None:
    """The commit happened; reading the fence tells."""
    await cluster_with(postgres_world.store, node("n1"))
    at = (await node_ids(postgres_world.store))["n1"]
    [waits] = await submit(postgres_world.store)
    fence = await lead(postgres_world.store)
    async with proxied(postgres_world, postgres_server) as (store, proxy):

        async def cut_the_reply() -> None:
            async with store.placement.begin() as tx:
                await tx.require(fence)
                await tx.place_jobs([placement(waits, at)])
                proxy.drop_server_bytes()

        cutting = asyncio.create_task(cut_the_reply())
        await eventually(lambda: proxy.dropped_bytes > 0)
        proxy.heal()
        with pytest.raises(UnknownOutcome):
            await cutting
    after = await postgres_world.store.placement.read_fence(DEFAULT_SHARD)
    assert after.commit_seq == fence.commit_seq + 1
    states = await postgres_world.store.placement.job_states([waits.id])
    assert states == {waits.id: JobState.ASSIGNED}


async def test_a_commit_that_never_arrived_is_an_unknown_outcome_too(
    postgres_world: PostgresWorld, postgres_server: PostgresLike
) -> None:
    fence = await lead(postgres_world.store)
    async with proxied(postgres_world, postgres_server) as (store, proxy):

        async def cut_the_request() -> None:
            async with store.placement.begin() as tx:
                await tx.require(fence)
                proxy.blackhole()

        cutting = asyncio.create_task(cut_the_request())
        await eventually(lambda: proxy.held_chunks > 0)
        proxy.reset()
        with pytest.raises(UnknownOutcome):
            await cutting
        proxy.heal()
    assert await postgres_world.store.placement.read_fence(DEFAULT_SHARD) == fence


async def test_a_connection_that_breaks_before_the_commit_commits_nothing(
    postgres_world: PostgresWorld, postgres_server: PostgresLike
) -> None:
    async with proxied(postgres_world, postgres_server) as (store, proxy):

        async def broken() -> None:
            async with store.submission.begin() as tx:
                await tx.add_jobs([job(50)])
                proxy.reset()
                await tx.now()

        with pytest.raises(StoreUnavailable):
            await broken()
        assert proxy.connections == 1
        # The next transaction gets a connection that works.
        await submit(store)
        assert proxy.connections == 2
        proxy.refuse()
        with pytest.raises(StoreUnavailable):
            await store.submission.clusters()
    assert await postgres_world.store.submission.get_job(TENANT, JobId(50)) is None


async def test_a_single_statement_that_writes_may_have_been_committed(
    postgres_world: PostgresWorld, postgres_server: PostgresLike
) -> None:
    await cluster_with(postgres_world.store)
    async with proxied(postgres_world, postgres_server) as (store, proxy):
        await store.dispatch.live_in([])
        proxy.drop_server_bytes()
        marking = asyncio.create_task(store.dispatch.mark_sent([(NORTH, 1, 4)]))
        await eventually(lambda: proxy.dropped_bytes > 0)
        proxy.heal()
        with pytest.raises(UnknownOutcome):
            await marking
        assert await store.dispatch.mark_sent([(NORTH, 1, 4)]) == {NORTH}


async def test_a_leader_that_stands_still_before_its_commit_loses_its_locks(
    postgres_world: PostgresWorld,
) -> None:
    fence = await lead(postgres_world.store)
    held = asyncio.Event()

    async def stand_still() -> None:
        async with postgres_world.store.placement.begin() as tx:
            await tx.require(fence)
            held.set()
            await asyncio.sleep(3)

    standing = asyncio.create_task(stand_still())
    await held.wait()
    newer = await lead(postgres_world.another(), Epoch(1, 11))
    assert newer.commit_seq == fence.commit_seq
    with pytest.raises((UnknownOutcome, StoreUnavailable)):
        await standing
    with pytest.raises(StaleEpoch):
        await place(postgres_world.store, fence)
