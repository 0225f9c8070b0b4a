"""One stream per cluster, in which an entry's id is its decision's number.

The server takes ids only in ascending order, so a late or repeated entry is refused
by it, whoever sends it. An entry is sound when its id is `<number>-0` and its fields
say the same number; whatever else is found was put there by somebody else.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from redis.exceptions import RedisError, ResponseError

from atoll.adapters.redis_streams.client import ANSWER_WITHIN_S, connect, failing_soon
from atoll.ports.streams import StreamEntry

PREFIX: Final = "atoll:decisions:"
KEPT: Final = 10_000
"""Entries per cluster, about: a dispatcher further behind reads PostgreSQL anyway."""
BATCH: Final = 500
LAST_OF_NUMBER: Final = (1 << 64) - 1
LOG: Final = logging.getLogger(__name__)

Fields = Mapping[bytes, bytes]
Items = Sequence[tuple[bytes, Fields]]


class RedisDecisionStream:
    """A `DecisionStream`. `kept` is about how many entries per cluster stay readable."""

    def __init__(self, url: str, *, kept: int = KEPT) -> None:
        self._commands = connect(url, answer_within_s=ANSWER_WITHIN_S, tries=2)
        self._readers = connect(url, answer_within_s=None, tries=2)
        self._kept = kept
        self.poisoned = 0
        """How many unreadable entries were taken out so far."""

    async def publish(self, entries: Sequence[StreamEntry]) -> None:
        """Append what the server does not have yet; raises StreamUnavailable."""
        with failing_soon("publishing decisions"):
            for start in range(0, len(entries), BATCH):
                await self._publish_batch(entries[start : start + BATCH])

    async def read(self, positions: Mapping[str, int], wait_ms: int) -> list[StreamEntry]:
        """Up to BATCH entries per cluster after `positions`; raises StreamUnavailable."""
        wait_s = max(0, wait_ms) / 1000
        if not positions:
            await asyncio.sleep(wait_s)
            return []
        with failing_soon("reading decisions"):
            async with asyncio.timeout(wait_s + ANSWER_WITHIN_S):
                found = await self._readers.xread(
                    {_key(cluster): f"{n}-{LAST_OF_NUMBER}" for cluster, n in positions.items()},
                    count=BATCH,
                    block=wait_ms if wait_ms > 0 else None,
                )
        entries: list[StreamEntry] = []
        for key, items in cast("list[tuple[bytes, Items]]", found):
            cluster = key.decode().removeprefix(PREFIX)
            entries += await self._readable(cluster, positions[cluster], items)
        return entries

    async def drop(self, cluster: str) -> None:
        """Delete the cluster's stream; raises StreamUnavailable."""
        with failing_soon(f"dropping the stream of {cluster}"):
            await self._commands.delete(_key(cluster))

    async def close(self) -> None:
        """Free the connections."""
        await self._commands.aclose()
        await self._readers.aclose()

    async def _publish_batch(self, entries: Sequence[StreamEntry]) -> None:
        for cluster in await self._add(entries):
            if not await self._sound(cluster):
                LOG.warning("the stream of %s was spoilt; it begins anew", cluster)
                await self._commands.delete(_key(cluster))
                await self._add([entry for entry in entries if entry.cluster == cluster])

    async def _add(self, entries: Sequence[StreamEntry]) -> list[str]:
        """Append in one round trip; the clusters whose streams refused an entry."""
        # In a transaction: a reader that waits gets all of them at once, and not the first alone.
        pipeline = self._commands.pipeline(transaction=True)
        for entry in entries:
            _ = pipeline.xadd(
                _key(entry.cluster),
                {b"n": str(entry.number), b"p": entry.payload or b""},
                id=f"{entry.number}-0",
                maxlen=self._kept,
                approximate=True,
            )
        answers = await pipeline.execute(raise_on_error=False)
        refused = {entry.cluster for entry in _refused(entries, answers)}
        return sorted(refused)

    async def _sound(self, cluster: str) -> bool:
        """Whether the newest entry is one of ours, so that later ones will be taken."""
        try:
            state = await self._commands.xinfo_stream(_key(cluster))
        except ResponseError:
            return False
        last = state["last-entry"]
        if last is None:
            return False
        return last[0] == state["last-generated-id"] and _number(*last) is not None

    async def _readable(self, cluster: str, position: int, items: Items) -> list[StreamEntry]:
        entries: list[StreamEntry] = []
        for entry_id, fields in items:
            number = _number(entry_id, fields)
            if number is None:
                await self._take_out(cluster, entry_id)
                entries.append(StreamEntry(cluster, position, None))
            else:
                position = number
                entries.append(StreamEntry(cluster, number, fields[b"p"]))
        return entries

    async def _take_out(self, cluster: str, entry_id: bytes) -> None:
        """Or every later read would find it at once."""
        self.poisoned += 1
        LOG.error("unreadable entry %r in the stream of %s: taken out", entry_id, cluster)
        with failing_soon(f"taking an unreadable entry out of the stream of {cluster}"):
            await self._commands.xdel(_key(cluster), entry_id)


def _key(cluster: str) -> str:
    return PREFIX + cluster


def _refused(entries: Sequence[StreamEntry], answers: Sequence[Any]) -> Iterator[StreamEntry]:
    """Those that the server has passed already, or cannot take; raises other failures."""
    for entry, answer in zip(entries, answers, strict=True):
        if isinstance(answer, ResponseError) and _is_about_the_stream(answer):
            yield entry
        elif isinstance(answer, RedisError):
            raise answer


def _is_about_the_stream(error: ResponseError) -> bool:
    return "equal or smaller" in str(error) or "WRONGTYPE" in str(error)


def _number(entry_id: bytes, fields: Fields) -> int | None:
    """The number of a sound entry."""
    number = fields.get(b"n", b"")
    sound = b"p" in fields and number.isdigit() and entry_id == number + b"-0"
    return int(number) if sound else None
