"""One subscription to hints for all watches of a process; a slow poll covers lost hints."""

import asyncio
from collections.abc import Awaitable
from typing import Final

from atoll.ports.clock import Clock
from atoll.ports.streams import Hints

POLL_S: Final = 2.0
SETTLE_S: Final = 0.05
"""Hints in a burst lead to one look."""
LOOKS_PER_S: Final = 250.0
"""Of all watches together: with many of them, each looks less often."""


class Wake:
    """Tells watches when to look. `run` has to be running for hints to be heard."""

    def __init__(self, hints: Hints, clock: Clock, *topics: str) -> None:
        self._hints = hints
        self._clock = clock
        self._topics = topics
        self._next = asyncio.Event()
        self._waiting = 0
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
        """Return after the next hint, or after POLL_S without; both longer with many waiting."""
        if self.stopped:
            return
        self._waiting += 1
        try:
            crowd_s = self._waiting / LOOKS_PER_S
            await self._heard(max(POLL_S, crowd_s))
            if not self.stopped:
                await self._clock.sleep(max(SETTLE_S, crowd_s))
        finally:
            self._waiting -= 1

    async def _heard(self, at_most_s: float) -> None:
        await _first(self._next.wait(), self._clock.sleep(at_most_s))

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
