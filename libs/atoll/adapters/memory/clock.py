"""A clock that moves only when it is told to."""

import asyncio
import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Final

SETTLE_PASSES: Final = 25
"""Turns of the event loop granted to woken tasks: each `await` that is ready takes one."""


@dataclass(order=True, slots=True)
class _Sleeper:
    deadline: float
    arrival: int
    woken: asyncio.Future[None] = field(compare=False)


class ManualClock:
    """A `Clock` for tests and the simulator.

    Sleepers wake in the order of their deadlines, equal ones in the order in
    which they lay down; whoever wakes runs, and may sleep again inside the same
    `advance`, before the next one wakes.
    """

    def __init__(self, wall: float = 1_800_000_000.0) -> None:
        self._wall_at_start = wall
        self._monotonic = 0.0
        self._sleepers: list[_Sleeper] = []
        self._arrivals: Iterator[int] = count()

    def now(self) -> float:
        """Wall time in seconds since 1970 UTC."""
        return self._wall_at_start + self._monotonic

    def monotonic(self) -> float:
        """Seconds advanced so far."""
        return self._monotonic

    def jump(self, seconds: float) -> None:
        """Set the wall clock alone forward or back, as an operator or NTP would."""
        self._wall_at_start += seconds

    def next_deadline(self) -> float | None:
        """The monotonic time at which the next sleeper wakes, or None if nobody sleeps."""
        while self._sleepers and self._sleepers[0].woken.done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0].deadline if self._sleepers else None

    async def sleep(self, seconds: float) -> None:
        """Return when the clock has been advanced by `seconds`."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        sleeper = _Sleeper(self._monotonic + seconds, next(self._arrivals), woken)
        heapq.heappush(self._sleepers, sleeper)
        await woken

    async def advance(self, seconds: float) -> None:
        """Move both clocks forward and let everybody run whose time has come."""
        if seconds < 0:
            raise ValueError(f"a clock cannot advance by {seconds} s")
        target = self._monotonic + seconds
        await settle()
        while (deadline := self.next_deadline()) is not None and deadline <= target:
            self._monotonic = max(self._monotonic, deadline)
            heapq.heappop(self._sleepers).woken.set_result(None)
            await settle()
        self._monotonic = target
        await settle()


async def settle() -> None:
    """Let tasks that are ready run until they wait for something, within SETTLE_PASSES turns."""
    for _ in range(SETTLE_PASSES):
        await asyncio.sleep(0)
