"""Hints after a commit: never in the way of the answer, and one at a time however many commit."""

import asyncio

from atoll.ports.streams import Hints


class Notifier:
    """Wakes the loops that follow what this service writes."""

    def __init__(self, hints: Hints, *topics: str) -> None:
        self._hints = hints
        self._topics = topics
        self._wanted = False
        self._task: asyncio.Task[None] | None = None

    def ring(self) -> None:
        """Notify soon; a call during a notification leads to one more, however many there are."""
        self._wanted = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._notify())

    async def close(self) -> None:
        """Wait for what was rung."""
        if self._task is not None:
            await self._task

    async def _notify(self) -> None:
        while self._wanted:
            self._wanted = False
            for topic in self._topics:
                await self._hints.notify(topic)
