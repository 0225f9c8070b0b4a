"""Wake-ups over publish and subscribe."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Final

from redis.asyncio.client import PubSub

from atoll.adapters.redis_streams.client import ANSWER_WITHIN_S, FAILURES, connect
from atoll.ports.clock import Clock

PREFIX: Final = "atoll:hints:"
NOTIFY_WITHIN_S: Final = 0.25
MUTE_S: Final = 1.0
"""After a failure nobody waits for the server for so long: callers have committed already."""
IDLE_S: Final = 3.0
"""After so much silence, and then once more, the server is asked whether it is there."""
AGAIN_AFTER_S: Final = 0.5
LOG: Final = logging.getLogger(__name__)


class RedisHints:
    """`Hints` over a Redis-compatible server at `url`."""

    def __init__(self, url: str, *, clock: Clock) -> None:
        self._publisher = connect(url, answer_within_s=NOTIFY_WITHIN_S, tries=2)
        self._subscriber = connect(url, answer_within_s=ANSWER_WITHIN_S, tries=1)
        self._clock = clock
        self._muted_until = 0.0

    async def notify(self, topic: str) -> None:
        """Wake the topic's subscribers, within half a second or not at all."""
        if self._clock.monotonic() < self._muted_until:
            return
        try:
            await self._publisher.publish(PREFIX + topic, b"")
        except FAILURES as error:
            self._muted_until = self._clock.monotonic() + MUTE_S
            LOG.warning("hint for %s lost: %s", topic, error)

    async def subscribe(self, *topics: str) -> AsyncIterator[str]:
        """Topics as they are notified, and all of them after every connect."""
        while True:
            try:
                async with (
                    self._subscriber.pubsub() as channels,
                    aclosing(_heard(channels, topics)) as heard,
                ):
                    async for topic in heard:
                        yield topic
            except FAILURES as error:
                LOG.warning("hints are silent for a while: %s", error)
            await self._clock.sleep(AGAIN_AFTER_S)

    async def close(self) -> None:
        """Free the connections; subscriptions end with an error of the client's."""
        await self._publisher.aclose()
        await self._subscriber.aclose()


async def _heard(channels: PubSub, topics: Sequence[str]) -> AsyncGenerator[str, None]:
    """The server confirms each subscription, which is the topic's first wake-up."""
    await channels.subscribe(*(PREFIX + topic for topic in topics))
    asked = False
    while True:
        message = await channels.get_message(timeout=IDLE_S)
        if message is None and asked:
            raise TimeoutError(f"no answer within {IDLE_S} s")
        if message is None:
            await channels.ping()
        elif message["type"] in {"subscribe", "message"}:
            yield message["channel"].decode().removeprefix(PREFIX)
        asked = message is None
