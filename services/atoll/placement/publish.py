"""Puts committed decisions onto the streams, in order, without holding the next cycle up."""

import asyncio
from collections.abc import Sequence
from typing import Final

from atoll.core.model.ids import ClusterName
from atoll.core.model.messages import Decision
from atoll.placement import telemetry
from atoll.ports.streams import DecisionStream, Hints, StreamEntry, StreamUnavailable
from atoll.ports.topics import DISPATCH, EVENTS
from atoll.runtime import logs
from atoll.wire.decision import encode_decision

log = logs.logger(__name__)

MOST_WAITING: Final = 64
"""Batches. More are left out: dispatch reads them from PostgreSQL."""


class Publisher:
    """A queue of batches and the loop that empties it."""

    def __init__(self, stream: DecisionStream, hints: Hints) -> None:
        self._stream = stream
        self._hints = hints
        self._waiting: asyncio.Queue[Sequence[Decision]] = asyncio.Queue(MOST_WAITING)

    async def publish(self, decisions: Sequence[Decision]) -> None:
        """Take a committed batch; one that finds the queue full is only hinted at."""
        try:
            self._waiting.put_nowait(decisions)
        except asyncio.QueueFull:
            telemetry.UNPUBLISHED.inc(len(decisions))

    async def wake(self) -> None:
        """Let dispatch look at the rows: there may be decisions that nobody published."""
        await self.publish(())

    async def drop(self, cluster: ClusterName) -> None:
        """Forget a cluster's stream; what Redis keeps for want of it does no harm."""
        try:
            await self._stream.drop(cluster)
        except StreamUnavailable as error:
            log.warning("stream not dropped", cluster=cluster, error=str(error))

    async def run(self) -> None:
        """Publish what waits, for ever."""
        while True:
            batch = list(await self._waiting.get())
            while not self._waiting.empty():
                batch.extend(self._waiting.get_nowait())
            await self._send(batch)

    async def _send(self, batch: Sequence[Decision]) -> None:
        entries = [StreamEntry(d.cluster, d.number, encode_decision(d)) for d in batch]
        try:
            await self._stream.publish(entries)
        except StreamUnavailable as error:
            telemetry.UNPUBLISHED.inc(len(entries))
            log.warning("not published, dispatch reads the rows", error=str(error))
        await self._hints.notify(DISPATCH)
        await self._hints.notify(EVENTS)
