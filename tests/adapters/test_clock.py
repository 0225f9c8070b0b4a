"""Clocks: the machine's, and the one that tests move by hand."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from atoll.adapters.memory.clock import ManualClock
from atoll.adapters.system import SystemClock, SystemIds
from atoll.ports.clock import Clock

Advance = Callable[[float], Awaitable[None]]


@pytest.fixture(params=["system", "manual"])
def clock_and_advance(request: pytest.FixtureRequest) -> tuple[Clock, Advance]:
    """A clock, and how to let time pass on it."""
    if request.param == "system":
        return SystemClock(), asyncio.sleep
    manual = ManualClock()
    return manual, manual.advance


async def test_sleepers_wake_in_the_order_of_their_deadlines(
    clock_and_advance: tuple[Clock, Advance],
) -> None:
    clock, advance = clock_and_advance
    woken: list[str] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(name)

    delays = {"third": 0.15, "first": 0.05, "second": 0.1}
    async with asyncio.TaskGroup() as group:
        for name, seconds in delays.items():
            group.create_task(sleeper(name, seconds))
        group.create_task(asyncio.wait_for(_pass_time(advance), 10))
    assert woken == ["first", "second", "third"]


async def test_both_clocks_move_on_by_what_was_slept(
    clock_and_advance: tuple[Clock, Advance],
) -> None:
    clock, advance = clock_and_advance
    wall, monotonic = clock.now(), clock.monotonic()
    sleeping = asyncio.create_task(clock.sleep(0.05))
    await advance(0.06)
    await sleeping
    assert clock.monotonic() - monotonic >= 0.05
    assert clock.now() > wall


async def test_no_time_to_sleep_still_lets_others_run(
    clock_and_advance: tuple[Clock, Advance],
) -> None:
    clock, _ = clock_and_advance
    ran = asyncio.create_task(asyncio.sleep(0))
    await clock.sleep(0)
    await clock.sleep(-1)
    assert ran.done()


async def test_who_wakes_may_sleep_again_within_one_advance() -> None:
    clock = ManualClock()
    ticks: list[float] = []

    async def tick() -> None:
        for _ in range(5):
            await clock.sleep(2)
            ticks.append(clock.monotonic())

    ticking = asyncio.create_task(tick())
    await clock.advance(7)
    assert ticks == [2, 4, 6]
    assert clock.monotonic() == 7
    await clock.advance(3)
    assert ticking.done()


async def test_equal_deadlines_wake_in_the_order_of_arrival() -> None:
    clock = ManualClock()
    woken: list[int] = []

    async def sleeper(number: int) -> None:
        await clock.sleep(1)
        woken.append(number)

    sleepers = [asyncio.create_task(sleeper(number)) for number in range(20)]
    await clock.advance(1)
    assert woken == list(range(20))
    assert all(task.done() for task in sleepers)


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = ManualClock()
    sleeping = asyncio.create_task(clock.sleep(5))
    await clock.advance(1)
    assert clock.next_deadline() == 5
    sleeping.cancel()
    await clock.advance(0)
    assert clock.next_deadline() is None


async def test_a_jump_moves_the_wall_clock_alone() -> None:
    clock = ManualClock(wall=1_000.0)
    sleeping = asyncio.create_task(clock.sleep(10))
    await clock.advance(1)
    clock.jump(-3_600)
    assert clock.now() == 1_000 + 1 - 3_600
    assert clock.monotonic() == 1
    assert not sleeping.done()
    sleeping.cancel()


async def test_a_clock_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="cannot advance"):
        await ManualClock().advance(-1)


def test_identities_are_fresh_and_well_formed() -> None:
    ids = SystemIds()
    assert len({ids.uuid() for _ in range(100)}) == 100
    assert len(ids.uuid()) == 36
    assert ids.token(16) != ids.token(16)
    assert all(0 <= ids.jitter() < 1 for _ in range(100))


async def _pass_time(advance: Advance) -> None:
    for _ in range(10):
        await advance(0.02)
