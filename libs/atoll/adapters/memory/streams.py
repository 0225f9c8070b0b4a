"""Streams and hints of one process, with the faults of the real ones."""

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from atoll.adapters.memory.signal import Signal
from atoll.ports.clock import Clock
from atoll.ports.streams import StreamEntry, StreamUnavailable

KEPT: Final = 10_000
BATCH: Final = 500


class MemoryDecisionStream:
    """A `DecisionStream`: refuses late numbers, keeps the newest, can be down and be spoilt."""

    def __init__(self, clock: Clock, *, kept: int = KEPT) -> None:
        self.down = False
        self.poisoned = 0
        """How many unreadable entries were taken out so far."""
        self._clock = clock
        self._kept = kept
        self._streams: defaultdict[str, list[StreamEntry]] = defaultdict(list)
        self._changed = Signal()

    async def publish(self, entries: Sequence[StreamEntry]) -> None:
        """Append what is newer than the stream's last entry; raises StreamUnavailable."""
        self._require_up()
        for entry in entries:
            stream = self._streams[entry.cluster]
            if not stream or entry.number > stream[-1].number:
                stream.append(entry)
                del stream[: -self._kept]
        self._changed.fire()

    async def read(self, positions: Mapping[str, int], wait_ms: int) -> list[StreamEntry]:
        """Up to BATCH entries per cluster after `positions`; raises StreamUnavailable."""
        await self._changed.wait_within(
            lambda: self.down or self._holds_after(positions), wait_ms / 1000, self._clock
        )
        self._require_up()
        return [
            entry
            for cluster, position in positions.items()
            for entry in self._readable(cluster, position)
        ]

    async def drop(self, cluster: str) -> None:
        """Delete the cluster's stream; raises StreamUnavailable."""
        self._require_up()
        self._streams.pop(cluster, None)

    async def close(self) -> None:
        """Nothing to free."""

    def spoil(self, cluster: str, number: int) -> None:
        """Put something unreadable where the decision `number` would have been."""
        self._streams[cluster].append(StreamEntry(cluster, number, None))
        self._changed.fire()

    def lose_everything(self) -> None:
        """As FLUSHALL does."""
        self._streams.clear()

    def _require_up(self) -> None:
        if self.down:
            raise StreamUnavailable("the stream is down")

    def _holds_after(self, positions: Mapping[str, int]) -> bool:
        return any(
            cluster in self._streams and self._after(cluster, position)
            for cluster, position in positions.items()
        )

    def _after(self, cluster: str, position: int) -> list[StreamEntry]:
        return [entry for entry in self._streams[cluster] if entry.number > position]

    def _readable(self, cluster: str, position: int) -> list[StreamEntry]:
        if cluster not in self._streams:
            return []
        entries: list[StreamEntry] = []
        for entry in self._after(cluster, position)[:BATCH]:
            if entry.payload is None:
                self.poisoned += 1
                self._streams[cluster].remove(entry)
                entries.append(StreamEntry(cluster, position, None))
            else:
                position = entry.number
                entries.append(entry)
        return entries


class MemoryHints:
    """`Hints` of one process; a topic that is notified twice before it is heard comes once."""

    def __init__(self) -> None:
        self.down = False
        self._subscribers: list[_Subscriber] = []

    async def notify(self, topic: str) -> None:
        """Wake the topic's subscribers, unless the hints are down."""
        if not self.down:
            for subscriber in self._subscribers:
                subscriber.tell(topic)

    async def subscribe(self, *topics: str) -> AsyncIterator[str]:
        """Topics as they are notified, and all of them at first and after `reconnect`."""
        subscriber = _Subscriber(topics)
        self._subscribers.append(subscriber)
        try:
            while True:
                yield await subscriber.next()
        finally:
            self._subscribers.remove(subscriber)

    def reconnect(self) -> None:
        """Come back after having been down: every subscriber is to look again."""
        self.down = False
        for subscriber in self._subscribers:
            subscriber.tell_all()

    async def close(self) -> None:
        """Nothing to free."""


class _Subscriber:
    def __init__(self, topics: Sequence[str]) -> None:
        self._topics = topics
        self._pending: OrderedDict[str, None] = OrderedDict()
        self._told = asyncio.Event()
        self.tell_all()

    def tell(self, topic: str) -> None:
        if topic in self._topics:
            self._pending[topic] = None
            self._told.set()

    def tell_all(self) -> None:
        for topic in self._topics:
            self.tell(topic)

    async def next(self) -> str:
        while not self._pending:
            self._told.clear()
            await self._told.wait()
        return self._pending.popitem(last=False)[0]
