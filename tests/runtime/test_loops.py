import asyncio

import pytest
from prometheus_client import REGISTRY

from atoll.adapters.memory.clock import ManualClock, settle
from atoll.adapters.system import SystemIds
from atoll.runtime.loops import Backoff, Supervisor


class Loop:
    """Fails as often as it is told, then returns; remembers when it began."""

    def __init__(self, clock: ManualClock, *, failures: int, lasts_s: float = 0.0) -> None:
        self._clock = clock
        self._failures = failures
        self._lasts_s = lasts_s
        self.began: list[float] = []

    async def __call__(self) -> None:
        self.began.append(self._clock.monotonic())
        await self._clock.sleep(self._lasts_s)
        if len(self.began) <= self._failures:
            raise RuntimeError("failed on purpose")


class NoJitter(SystemIds):
    def jitter(self) -> float:
        return 0.0


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def test_a_loop_that_fails_starts_again_later_each_time(clock: ManualClock) -> None:
    loop = Loop(clock, failures=4)
    task = Supervisor(clock, NoJitter()).start("a", loop, backoff=Backoff(1.0, 4.0, 60.0))
    await clock.advance(20.0)
    assert loop.began == [0.0, 1.0, 3.0, 7.0, 11.0]
    assert task.done()


async def test_a_loop_that_ran_well_begins_with_the_first_wait_again(clock: ManualClock) -> None:
    loop = Loop(clock, failures=2, lasts_s=60.0)
    backoff = Backoff(1.0, 4.0, reset_s=60.0)
    task = Supervisor(clock, NoJitter()).start("b", loop, backoff=backoff)
    await clock.advance(200.0)
    assert loop.began == [0.0, 61.0, 122.0]
    assert task.done()


async def test_restarts_are_counted(clock: ManualClock) -> None:
    task = Supervisor(clock, NoJitter()).start("counted", Loop(clock, failures=3))
    await clock.advance(60.0)
    assert task.done()
    assert REGISTRY.get_sample_value("atoll_loop_restarts_total", {"loop": "counted"}) == 3


@pytest.mark.parametrize("jitter", [0.0, 0.5, 0.999])
@pytest.mark.parametrize("failures", [1, 2, 10, 10_000])
def test_waits_stay_between_half_and_all_of_the_bound(failures: int, jitter: float) -> None:
    backoff = Backoff(0.1, 10.0)
    whole = min(10.0, 0.1 * 2.0 ** min(failures - 1, 50))
    assert whole / 2 <= backoff.wait_s(failures, jitter) <= whole


async def test_closing_ends_loops_in_the_middle_of_anything(clock: ManualClock) -> None:
    supervisor = Supervisor(clock, NoJitter())
    waiting = supervisor.start("waiting", Loop(clock, failures=99))
    working = supervisor.start("working", lambda: asyncio.Event().wait())  # type: ignore[arg-type,return-value]
    await settle()
    await supervisor.close()
    assert waiting.cancelled()
    assert working.cancelled()
