"""Collects single things into batches: after a moment, or when there are enough.

What a batch costs whatever its size (a dozen round trips, say) is kept below half of the time: the
more slowly batches go, the longer the next one gathers, up to REST times the usual moment.
"""

import asyncio
from collections import deque
from typing import Final, Generic, TypeVar

from atoll.ports.clock import Clock

T = TypeVar("T")
REST: Final = 2


class Batcher(Generic[T]):
    """Many put, one takes. Whatever comes while a batch is worked on makes up the next one."""

    def __init__(self, clock: Clock, *, linger_s: float, most: int) -> None:
        self._clock = clock
        self._linger_s = linger_s
        self._most = most
        self._items: deque[tuple[T, int]] = deque()
        self._weight = 0
        self._oldest = 0.0
        self._drawn_at: float | None = None
        self._some = asyncio.Event()
        self._enough = asyncio.Event()

    def put(self, item: T, weight: int = 1) -> None:
        """Add one; `weight` counts against `most`."""
        if not self._items:
            self._oldest = self._clock.monotonic()
        self._items.append((item, weight))
        self._weight += weight
        self._some.set()
        if self._weight >= self._most:
            self._enough.set()

    async def take(self) -> list[T]:
        """Wait for the next batch: at least one item, and no more weight than `most` allows.

        To be called again as soon as the last batch was worked on.
        """
        rested = self._rested()
        await self._some.wait()
        left_s = max(self._oldest + self._linger_s, rested) - self._clock.monotonic()
        if left_s > 0 and not self._enough.is_set():
            await self._enough_or(left_s)
        self._drawn_at = self._clock.monotonic()
        return self._drawn()

    def _rested(self) -> float:
        now = self._clock.monotonic()
        worked_s = 0.0 if self._drawn_at is None else now - self._drawn_at
        return now + min(worked_s, REST * self._linger_s)

    async def _enough_or(self, seconds: float) -> None:
        pause = asyncio.ensure_future(self._clock.sleep(seconds))
        enough = asyncio.ensure_future(self._enough.wait())
        try:
            await asyncio.wait({pause, enough}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.cancel()
            enough.cancel()

    def _drawn(self) -> list[T]:
        batch: list[T] = []
        drawn = 0
        while self._items and (not batch or drawn + self._items[0][1] <= self._most):
            item, weight = self._items.popleft()
            batch.append(item)
            drawn += weight
        self._weight -= drawn
        if not self._items:
            self._some.clear()
        if self._weight < self._most:
            self._enough.clear()
        return batch
