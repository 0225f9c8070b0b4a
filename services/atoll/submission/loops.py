"""What this service does unasked: it keeps the store small. Several replicas at once are fine."""

from dataclasses import astuple
from typing import Final

from atoll.ports.clock import Clock, Ids
from atoll.ports.store.upkeep import Retention, UpkeepStore
from atoll.submission import telemetry

MAINTAIN_EVERY_S: Final = 5.0
PRUNE_EVERY_S: Final = 30.0
PRUNE_LIMIT: Final = 1_000
TABLES: Final = ("jobs", "requests", "decisions", "events")


class Keeper:
    """Maintains and prunes the store, for ever; an error ends a loop, to be started again."""

    def __init__(self, store: UpkeepStore, keep: Retention, *, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._keep = keep
        self._clock = clock
        self._ids = ids

    async def maintain(self) -> None:
        """Every few seconds."""
        while True:
            await self._store.maintain()
            await self._wait(MAINTAIN_EVERY_S)

    async def prune(self) -> None:
        """Now and then, and again at once while there is more than one helping."""
        while True:
            counts = astuple(await self._store.prune(self._keep, limit=PRUNE_LIMIT))
            for table, count in zip(TABLES, counts, strict=True):
                telemetry.PRUNED.labels(table).inc(count)
            await self._wait(0.0 if max(counts) >= PRUNE_LIMIT else PRUNE_EVERY_S)

    async def _wait(self, seconds: float) -> None:
        # Spread, so that replicas started together do not meet each time.
        await self._clock.sleep(seconds * (0.75 + self._ids.jitter() / 2))
