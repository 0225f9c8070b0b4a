"""Batches form while nobody waits, and are bounded."""

import asyncio

from atoll.adapters.memory.clock import ManualClock, settle
from atoll.dispatch.batching import Batcher


async def test_what_comes_within_a_moment_goes_together() -> None:
    clock = ManualClock()
    batcher: Batcher[int] = Batcher(clock, linger_s=0.005, most=10)
    taking = asyncio.ensure_future(batcher.take())
    batcher.put(1)
    await clock.advance(0.003)
    batcher.put(2)
    await settle()
    assert not taking.done()
    await clock.advance(0.003)
    assert await taking == [1, 2]


async def test_enough_does_not_wait() -> None:
    batcher: Batcher[int] = Batcher(ManualClock(), linger_s=5.0, most=3)
    taking = asyncio.ensure_future(batcher.take())
    for item in range(5):
        batcher.put(item)
    await settle()
    assert await taking == [0, 1, 2]


async def test_what_waited_while_a_batch_was_worked_on_does_not_wait_again() -> None:
    clock = ManualClock()
    batcher: Batcher[int] = Batcher(clock, linger_s=0.005, most=10)
    batcher.put(1)
    await clock.advance(1.0)
    assert await batcher.take() == [1]


async def test_weights_bound_a_batch_but_nothing_is_too_heavy_to_be_taken() -> None:
    batcher: Batcher[str] = Batcher(ManualClock(), linger_s=0.0, most=10)
    for item, weight in (("a", 6), ("b", 5), ("c", 20), ("d", 1)):
        batcher.put(item, weight)
    assert [await batcher.take() for _ in range(4)] == [["a"], ["b"], ["c"], ["d"]]


async def test_slow_work_lets_the_next_batch_gather_for_as_long_but_not_for_ever() -> None:
    clock = ManualClock()
    batcher: Batcher[int] = Batcher(clock, linger_s=0.005, most=10)
    batcher.put(1)
    await clock.advance(0.005)
    assert await batcher.take() == [1]
    await clock.advance(10.0)  # work
    batcher.put(2)
    await clock.advance(0.005)
    taking = asyncio.ensure_future(batcher.take())
    await clock.advance(0.009)
    batcher.put(3)
    await settle()
    assert not taking.done()
    await clock.advance(0.002)
    assert await taking == [2, 3]
