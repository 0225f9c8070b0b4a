"""One subscription to hints for all watches of a process; a slow poll covers lost hints."""

import asyncio
from collections.abc import Awaitable
from typing import Final

from atoll.ports.clock import Clock
from atoll.ports.streams import Hints

POLL_S: Final = 2.0
SETTLE_S: Final = 0.05
"""Hints in a burst lead to one look."""


class Wake:
    """Tells watches when to look. `run` has to be running for hints to be heard."""

    def __init__(self, hints: Hints, clock: Clock, *topics: str) -> None:
        self._hints = hints
        self._clock = clock
        self._topics = topics
        self._next = asyncio.Event()
        self.stopped = False
        """True once nothing will be heard again."""

    async def run(self) -> None:
        """Listen for hints, for ever."""
        async for _ in self._hints.subscribe(*self._topics):
            self._ring()

    def stop(self) -> None:
        """End all waits, now and later: the process is about to go."""
        self.stopped = True
        self._ring()

    async def wait(self) -> None:
        """Return after the next hint, or after POLL_S without."""
        if self.stopped:
            return
        heard = self._next
        await _first(heard.wait(), self._clock.sleep(POLL_S))
        if not self.stopped:
            await self._clock.sleep(SETTLE_S)

    def _ring(self) -> None:
        heard, self._next = self._next, asyncio.Event()
        heard.set()


async def _first(*waits: Awaitable[object]) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
