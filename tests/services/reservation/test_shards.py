"""Two clusters in a shard each: a booking waits for nobody who has nothing to do with it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from atoll.core.model.ids import DEFAULT_SHARD, Epoch, ShardId
from atoll.core.model.refusal import BookingRefused
from atoll.core.model.reservation import ReservationSpec, What, WholeNodes
from atoll.reservation.usecases.change import Update
from atoll.reservation.usecases.create import Draft
from atoll.reservation.usecases.give_back import Which
from tests.adapters.store_builders import NORTH, SOUTH, cluster_with, lead, node
from tests.services.reservation.worlds import ANN, HOUR, World, places, postgres_world, spec

SOON = 2 * HOUR
SECOND = ShardId(1)


@pytest.fixture
async def sharded(store_dsn: str) -> AsyncIterator[World]:
    """North is in the first shard, south in the second; both have two nodes."""
    world = postgres_world(store_dsn)
    await lead(world.store)
    await world.store.placement.take_over(SECOND, Epoch(1, 1))
    await cluster_with(world.store, node("n1", gpus=8), node("n2", gpus=8))
    connection = await asyncpg.connect(store_dsn)
    await connection.execute("INSERT INTO clusters (name, shard) VALUES ($1, $2)", SOUTH, SECOND)
    await connection.close()
    await cluster_with(world.store, node("s1", gpus=8), node("s2", gpus=8), name=SOUTH)
    await world.begin()
    yield world
    await world.service.close()
    await world.store.close()


def on(cluster: str, name: str, start: float, **given: object) -> ReservationSpec:
    return spec(name, start, what=What(nodes=WholeNodes(1), clusters=(cluster,)), **given)  # type: ignore[arg-type]


@asynccontextmanager
async def held(world: World, shard: ShardId) -> AsyncIterator[None]:
    """A shard that somebody has locked, as its leader does in a long commit."""
    async with world.store.reservation.begin() as tx:
        await tx.lock_shards([shard])
        yield


async def revisions(world: World) -> tuple[int, int]:
    first = await world.store.placement.read_fence(DEFAULT_SHARD)
    return first.booking_rev, (await world.store.placement.read_fence(SECOND)).booking_rev


async def test_a_booking_waits_only_for_the_shard_that_it_lies_in(sharded: World) -> None:
    start = sharded.clock.now() + SOON
    other = sharded.another()
    async with held(sharded, SECOND), asyncio.timeout(30):
        made = await sharded.book(on(NORTH, "north", start))
        draft = Draft(on(SOUTH, "south", start))
        waits = asyncio.create_task(other.use_cases.booker.create(ANN, draft))
        assert not (await asyncio.wait([waits], timeout=0.2))[0]
    await waits
    assert places(made.occurrences)[0] <= {"n1", "n2"}
    assert await revisions(sharded) == (1, 1)
    await sharded.use.changer.update(
        ANN, Which(made.reservation.id), Update(on(NORTH, "x", start), ("name",))
    )
    assert await revisions(sharded) == (2, 2)
    await other.close()


async def test_the_loop_starts_what_lies_in_one_shard_under_its_lock(sharded: World) -> None:
    made = await sharded.book(on(NORTH, "north", sharded.clock.now() + 0.2))
    term = await sharded.term()
    await sharded.pass_time(0.25)
    async with held(sharded, SECOND), asyncio.timeout(30):
        assert "started" in await sharded.look(term)
    assert [e.event.value for e in await sharded.events(made.reservation.id)][-1] == "started"


async def test_what_was_free_and_is_taken_by_then_is_booked_in_another_shard(
    sharded: World,
) -> None:
    """It is found in the first shard, and has to go to the second when it holds the lock."""
    start = sharded.clock.now() + SOON
    for name in ("a", "b", "c"):
        await sharded.book(on(NORTH if name != "c" else SOUTH, name, start + 9 * SOON))
    other = sharded.another()
    anywhere = [Draft(spec(f"b{n}", start)) for n in range(4)]
    uses = (sharded.use, other.use_cases)
    made = await asyncio.gather(*(uses[n % 2].booker.create(ANN, anywhere[n]) for n in range(4)))
    taken = [name for each in made for name in places(each.occurrences)[0]]
    assert sorted(taken) == ["n1", "n2", "s1", "s2"]
    await other.close()


async def test_a_hundred_at_once_for_the_last_windows_of_two_shards(sharded: World) -> None:
    start = sharded.clock.now() + SOON
    other = sharded.another()
    uses = (sharded.use, other.use_cases)
    changed = await sharded.book(on(NORTH, "changed", start + 9 * SOON))
    wanted = [on((NORTH, SOUTH)[n // 2 % 2], f"b{n}", start) for n in range(100)]
    async with asyncio.timeout(120):
        results = await asyncio.gather(
            *(uses[n % 2].booker.create(ANN, Draft(each)) for n, each in enumerate(wanted)),
            # Takes all shards, between those that take one.
            other.use_cases.ender.cancel(ANN, Which(changed.reservation.id), reason=""),
            return_exceptions=True,
        )
    refused = [each for each in results if isinstance(each, BookingRefused)]
    assert len(refused) == 96
    assert not [each for each in results if isinstance(each, BaseException) and each not in refused]
    taken = [places([kept.occurrence])[0] for kept in await sharded.store.reservation.live()]
    assert sorted(taken, key=min) == [{"n1"}, {"n2"}, {"s1"}, {"s2"}]
    await other.close()
