"""One suite over every `DecisionStream` and `Hints`; the real ones also meet server faults."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, cast

import pytest

from atoll.ports.streams import StreamEntry, StreamUnavailable
from tests.adapters.stream_worlds import KEPT, MemoryWorld, StreamWorld, ValkeyWorld, valkey_world
from tests.support.servers import ValkeyLike
from tests.support.waiting import eventually


@pytest.fixture(params=["memory", "valkey"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[StreamWorld]:
    """Each kind in turn."""
    if request.param == "memory":
        yield MemoryWorld()
        return
    url, server = (request.getfixturevalue(name) for name in ("valkey_url", "valkey_server"))
    async with valkey_world(url, server) as real:
        yield real


@pytest.fixture
async def valkey(valkey_url: str, valkey_server: ValkeyLike) -> AsyncIterator[ValkeyWorld]:
    """The real kind alone."""
    async with valkey_world(valkey_url, valkey_server) as real:
        yield real


def entries(cluster: str, *numbers: int) -> list[StreamEntry]:
    return [StreamEntry(cluster, number, b"decision %d" % number) for number in numbers]


async def read(world: StreamWorld, cluster: str, after: int = 0) -> list[int]:
    return [entry.number for entry in await world.stream.read({cluster: after}, wait_ms=0)]


async def test_entries_come_back_in_order_with_their_payload(world: StreamWorld) -> None:
    await world.stream.publish(entries("c", 1, 2, 3))
    assert await world.stream.read({"c": 0}, wait_ms=0) == entries("c", 1, 2, 3)
    assert await world.stream.read({"c": 2}, wait_ms=0) == entries("c", 3)
    assert await world.stream.read({"c": 3}, wait_ms=0) == []


async def test_any_bytes_pass_unchanged(world: StreamWorld) -> None:
    payloads = [b"", bytes(range(256)), b"\r\n$5\r\n" * 1_000]
    sent = [StreamEntry("c", number, payload) for number, payload in enumerate(payloads, 1)]
    await world.stream.publish(sent)
    assert await world.stream.read({"c": 0}, wait_ms=0) == sent


async def test_a_late_or_repeated_entry_changes_nothing(world: StreamWorld) -> None:
    await world.stream.publish(entries("c", 4, 5))
    await world.stream.publish([StreamEntry("c", 5, b"another"), *entries("c", 3, 6)])
    assert await world.stream.read({"c": 0}, wait_ms=0) == entries("c", 4, 5, 6)


async def test_several_clusters_are_read_at_once_each_from_its_position(
    world: StreamWorld,
) -> None:
    await world.stream.publish([*entries("a", 1, 2), *entries("b", 7), *entries("other", 1)])
    found = await world.stream.read({"a": 1, "b": 0, "empty": 0}, wait_ms=0)
    assert sorted(found, key=lambda entry: entry.cluster) == [*entries("a", 2), *entries("b", 7)]


async def test_a_reader_that_waits_is_woken_by_the_next_entry(world: StreamWorld) -> None:
    await world.stream.publish(entries("c", 1))
    reading = asyncio.ensure_future(world.stream.read({"c": 1, "d": 0}, wait_ms=120_000))
    await asyncio.sleep(0.05)
    assert not reading.done()
    await world.stream.publish(entries("d", 1))
    assert await asyncio.wait_for(reading, 60) == entries("d", 1)


async def test_a_reader_that_waits_in_vain_gets_nothing(world: StreamWorld) -> None:
    assert await world.stream.read({"c": 0}, wait_ms=30) == []
    assert await world.stream.read({}, wait_ms=30) == []


async def test_a_reader_that_is_cancelled_leaves_the_stream_usable(world: StreamWorld) -> None:
    for _ in range(5):
        reading = asyncio.ensure_future(world.stream.read({"c": 0}, wait_ms=20_000))
        await asyncio.sleep(0.02)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    await world.stream.publish(entries("c", 1))
    assert await read(world, "c") == [1]


async def test_a_batch_is_bounded_and_the_next_goes_on_behind_it(world: StreamWorld) -> None:
    total = KEPT - 10
    await world.stream.publish(entries("c", *range(1, total + 1)))
    seen: list[int] = []
    while batch := await read(world, "c", seen[-1] if seen else 0):
        seen += batch
    assert seen == list(range(1, total + 1))


async def test_a_stream_forgets_its_oldest_entries(world: StreamWorld) -> None:
    await world.stream.publish(entries("c", *range(1, 2_001)))
    left = await read(world, "c", 1)
    assert left[0] > 1  # the rest of a bounded stream comes from PostgreSQL
    assert (await read(world, "c", 1_999)) == [2_000]


async def test_a_dropped_stream_takes_numbers_from_the_beginning(world: StreamWorld) -> None:
    await world.stream.publish([*entries("c", 8, 9), *entries("other", 4)])
    await world.stream.drop("c")
    assert await read(world, "c") == []
    await world.stream.publish(entries("c", 1))
    assert await read(world, "c") == [1]
    assert await read(world, "other") == [4]


async def test_a_loss_of_everything_is_a_gap_and_no_more(world: StreamWorld) -> None:
    await world.stream.publish(entries("c", 1, 2))
    await world.lose_everything()
    assert await read(world, "c") == []
    await world.stream.publish(entries("c", 3))
    assert await read(world, "c") == [3]


async def test_a_poison_entry_is_told_and_taken_out(world: StreamWorld) -> None:
    await world.stream.publish(entries("c", 1))
    await world.spoil("c", 2)
    await world.stream.publish(entries("c", 3))
    found = await world.stream.read({"c": 0}, wait_ms=0)
    assert found == [*entries("c", 1), StreamEntry("c", 1, None), *entries("c", 3)]
    assert world.poisoned() == 1
    assert await world.stream.read({"c": 0}, wait_ms=0) == entries("c", 1, 3)


async def test_a_poison_entry_alone_tells_the_readers_own_position(world: StreamWorld) -> None:
    await world.spoil("c", 8)
    assert await world.stream.read({"c": 7}, wait_ms=0) == [StreamEntry("c", 7, None)]
    assert await world.stream.read({"c": 7}, wait_ms=30) == []


async def test_an_outage_is_told_and_ends(world: StreamWorld) -> None:
    await world.stream.publish(entries("c", 1))
    await world.go_down()
    with pytest.raises(StreamUnavailable):
        await world.stream.publish(entries("c", 2))
    with pytest.raises(StreamUnavailable):
        await world.stream.read({"c": 0}, wait_ms=0)
    with pytest.raises(StreamUnavailable):
        await world.stream.drop("c")
    await world.come_back()
    await world.stream.publish(entries("c", 2))
    assert await read(world, "c") == [1, 2]


async def test_hints_reach_every_subscriber_of_their_topic(world: StreamWorld) -> None:
    async with (
        aclosing(cast(Any, world.hints.subscribe("jobs"))) as first,
        aclosing(cast(Any, world.hints.subscribe("nodes", "jobs"))) as second,
    ):
        assert await next_of(first) == "jobs"
        assert {await next_of(second), await next_of(second)} == {"jobs", "nodes"}
        await world.hints.notify("jobs")
        assert await next_of(first) == "jobs"
        assert await next_of(second) == "jobs"
        await world.hints.notify("nodes")
        assert await next_of(second) == "nodes"


async def test_hints_come_once_more_after_an_outage(world: StreamWorld) -> None:
    async with aclosing(cast(Any, world.hints.subscribe("jobs"))) as heard:
        assert await next_of(heard) == "jobs"
        await world.go_down()
        await world.hints.notify("jobs")  # lost, and nobody is told
        await world.come_back()
        assert await next_of(heard) == "jobs"


async def test_a_spoilt_stream_begins_anew_with_the_next_entry(valkey: ValkeyWorld) -> None:
    await valkey.stream.publish(entries("c", 1))
    # An id made of the time of day: the server would refuse every later number for ever.
    await valkey.client.xadd("atoll:decisions:c", {"n": "1", "p": "forged"})
    assert await valkey.stream.read({"c": 1}, wait_ms=0) == [StreamEntry("c", 1, None)]
    await valkey.stream.publish(entries("c", 2, 3))
    assert await read(valkey, "c") == [2, 3]


async def test_a_key_of_another_type_gives_way(valkey: ValkeyWorld) -> None:
    await valkey.client.set("atoll:decisions:c", "not a stream")
    with pytest.raises(StreamUnavailable):
        await valkey.stream.read({"c": 0}, wait_ms=0)
    await valkey.stream.publish(entries("c", 5))
    assert await read(valkey, "c") == [5]


async def test_a_number_with_a_second_entry_does_not_keep_readers_busy(
    valkey: ValkeyWorld,
) -> None:
    await valkey.stream.publish(entries("c", 1))
    await valkey.client.xadd("atoll:decisions:c", {"x": "y"}, id="1-7")
    assert await valkey.stream.read({"c": 1}, wait_ms=30) == []
    await valkey.stream.publish(entries("c", 2))
    assert await read(valkey, "c", 1) == [2]


async def test_a_killed_server_is_back_after_its_restart(valkey: ValkeyWorld) -> None:
    await valkey.stream.publish(entries("c", 1))
    async with aclosing(cast(Any, valkey.hints.subscribe("jobs"))) as heard:
        assert await next_of(heard) == "jobs"
        valkey.server.kill()
        with pytest.raises(StreamUnavailable):
            await valkey.stream.publish(entries("c", 2))
        await valkey.server.start()
        assert await next_of(heard) == "jobs"
    await valkey.stream.publish(entries("c", 2))
    assert await read(valkey, "c") == [1, 2]  # a killed process loses nothing, a machine would


async def test_a_silent_server_fails_callers_soon(valkey: ValkeyWorld) -> None:
    await valkey.stream.publish(entries("c", 1))
    valkey.proxy.blackhole()
    async with asyncio.timeout(60):
        with pytest.raises(StreamUnavailable):
            await valkey.stream.publish(entries("c", 2))
        with pytest.raises(StreamUnavailable):
            await valkey.stream.read({"c": 1}, wait_ms=100)
        await valkey.hints.notify("jobs")
    assert valkey.proxy.held_chunks
    valkey.proxy.heal()
    await valkey.stream.publish(entries("c", 2, 3))
    assert await read(valkey, "c") == [1, 2, 3]


async def test_subscribers_notice_a_server_that_went_silent(valkey: ValkeyWorld) -> None:
    async with aclosing(cast(Any, valkey.hints.subscribe("jobs"))) as heard:
        assert await next_of(heard) == "jobs"
        valkey.proxy.blackhole()
        listening = asyncio.ensure_future(next_of(heard))
        before = valkey.proxy.connections
        await eventually(lambda: valkey.proxy.connections > before)
        valkey.proxy.heal()
        assert await listening == "jobs"


async def next_of(topics: AsyncIterator[str]) -> str:
    return await asyncio.wait_for(anext(topics), 60)
