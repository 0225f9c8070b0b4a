"""The loop whose time is virtual."""

import asyncio
import threading

import numpy as np
import pytest

from atoll.sim.service.clock import BOOT_S, START, SimClock, SimIds
from atoll.sim.service.loop import Deadlock, run


def test_time_jumps_to_the_next_timer() -> None:
    async def main() -> list[tuple[str, float]]:
        clock, seen = SimClock(), list[tuple[str, float]]()

        async def sleeper(name: str, seconds: float) -> None:
            await clock.sleep(seconds)
            seen.append((name, clock.monotonic()))

        await asyncio.gather(sleeper("late", 86_400.0), sleeper("soon", 60.0))
        assert clock.now() == START - BOOT_S + 86_400.0
        return seen

    assert run(main()) == [("soon", 60.0), ("late", 86_400.0)]


def test_a_timeout_is_virtual_too() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await asyncio.sleep(1e9)
        return asyncio.get_running_loop().time()

    assert run(main()) == 3600.0


def test_what_goes_to_a_thread_is_done_in_place() -> None:
    async def main() -> tuple[int, float]:
        return await asyncio.to_thread(threading.get_ident), asyncio.get_running_loop().time()

    assert run(main()) == (threading.get_ident(), 0.0)


def test_what_a_thread_raises_is_raised() -> None:
    async def main() -> None:
        await asyncio.to_thread(int, "x")

    with pytest.raises(ValueError, match="invalid literal"):
        run(main())


def test_waiting_for_nothing_is_noticed() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock):
        run(main())


def test_sets_of_tasks_and_futures_have_one_order() -> None:
    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        waste = [object() for _ in range(np.random.default_rng().integers(1000))]
        names = {loop.create_future(): f"future {i}" for i in range(50)}
        tasks = {asyncio.ensure_future(asyncio.sleep(0)): f"task {i}" for i in range(50)}
        await asyncio.wait(set(tasks))
        del waste
        return [names[f] for f in set(names)] + [tasks[t] for t in set(tasks)]

    assert run(main()) == run(main())


def test_ids_come_from_the_seed() -> None:
    def some() -> list[object]:
        ids = SimIds(np.random.default_rng(5))
        return [ids.uuid(), ids.token(8), ids.jitter()]

    assert some() == some()
    uuid = str(some()[0])
    assert (len(uuid), uuid[14], uuid[19] in "89ab") == (36, "4", True)
