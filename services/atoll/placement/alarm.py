"""When the next cycle is due: somebody called, or its time has come."""

import asyncio
from contextlib import suppress

from atoll.placement.settings import PlacementSettings
from atoll.placement.usecases.leader import Leader
from atoll.ports.clock import Clock


class Alarm:
    """Of one replica."""

    def __init__(self, settings: PlacementSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._rung = asyncio.Event()
        self._next_cycle = 0.0
        """The earliest beginning of the next cycle; monotonic."""

    def ring(self) -> None:
        """There is something new."""
        self._rung.set()

    async def until_woken(self, leader: Leader) -> None:
        """Wait for the next cycle's time."""
        with suppress(TimeoutError):
            # Not wait_for: a cancellation that comes with the ring would be lost in it.
            async with asyncio.timeout(self._pause_s(leader)):
                await self._rung.wait()
            await self._clock.sleep(self._gather_s())
        self._rung.clear()
        self._next_cycle = self._clock.monotonic() + self._settings.cycle_gap_s

    def _gather_s(self) -> float:
        """How long a cycle waits for more to do: a cycle costs much, whatever its size."""
        return max(self._settings.debounce_s, self._next_cycle - self._clock.monotonic())

    def _pause_s(self, leader: Leader) -> float:
        """Until the next cycle if nobody calls: the period, a deadline, or a job's begin."""
        period = self._settings.period_s
        due = leader.memory.next_deadline()
        if due is not None:
            period = min(period, due - self._clock.monotonic())
        wakeup = leader.memory.world.next_wakeup(self._clock.now())
        if wakeup is not None:
            period = min(period, wakeup - self._clock.now())
        return max(period, self._settings.debounce_s)
