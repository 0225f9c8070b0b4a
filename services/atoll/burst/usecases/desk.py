"""One provider as the broker deals with it: never too often, and left alone while it is away."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from atoll.ports.clock import Clock
from atoll.ports.provider import Provider, ProviderUnavailable

T = TypeVar("T")

AT_ONCE: Final = 8
"""Calls under way."""
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Health:
    """What was last heard of a provider."""

    name: str
    reachable: bool = True
    message: str = "not asked yet"
    seen_at: float = 0.0
    """Unix seconds of its last answer."""


class Desk:
    """Calls to one provider. One that did not answer is asked again later, twice as late each time.

    Refusals are answers. A pause ends with the first answer.
    """

    def __init__(self, provider: Provider, clock: Clock) -> None:
        self.provider = provider
        self.name = provider.name
        self.health = Health(provider.name)
        self.errors = 0
        """Calls without an answer, since somebody counted them."""
        self._clock = clock
        self._room = asyncio.Semaphore(AT_ONCE)
        self._failures = 0
        self._open_at = 0.0
        """Monotonic; nothing is asked before."""

    async def ask(self, call: Callable[[Provider], Awaitable[T]]) -> T:
        """What the provider answers; raises ProviderUnavailable, at once during a pause."""
        async with self._room:
            if self._clock.monotonic() < self._open_at:
                raise ProviderUnavailable(f"{self.name} is left alone: {self.health.message}")
            try:
                answer = await call(self.provider)
            except ProviderUnavailable as away:
                self._failed(str(away))
                raise
            except Exception:
                self._answered()
                raise
            self._answered()
            return answer

    async def close(self) -> None:
        """Let its connections go."""
        await self.provider.close()

    def _answered(self) -> None:
        self._failures, self._open_at = 0, 0.0
        self.health = Health(self.name, True, "", self._clock.now())

    def _failed(self, why: str) -> None:
        self.errors += 1
        self._failures += 1
        pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(self._failures - 1, 16))
        self._open_at = self._clock.monotonic() + pause_s
        self.health = Health(self.name, False, why, self.health.seen_at)
