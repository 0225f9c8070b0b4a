"""Events of a backend on their way to the agent, taken in batches."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence

from atoll.ports.backend import RunEvent


class Events:
    """Keeps their order. Its length is bounded by the attempts that are not over."""

    def __init__(self) -> None:
        self._waiting: list[RunEvent] = []
        self._any = asyncio.Event()

    def put(self, events: Iterable[RunEvent]) -> None:
        """Add events."""
        self._waiting.extend(events)
        if self._waiting:
            self._any.set()

    async def batches(self) -> AsyncIterator[Sequence[RunEvent]]:
        """All that waits, again and again, for ever."""
        while True:
            await self._any.wait()
            self._any.clear()
            batch, self._waiting = self._waiting, []
            yield batch
