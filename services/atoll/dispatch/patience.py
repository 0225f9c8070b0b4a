"""Waits between tries of what may be tried again."""

from typing import Final

from atoll.core.model.errors import Aborted, DomainError, Exhausted, Unavailable
from atoll.ports.clock import Clock, Ids
from atoll.runtime import logs
from atoll.runtime.loops import Backoff

log = logs.logger(__name__)

AGAIN: Final = (Unavailable, Aborted, Exhausted)
"""The store is away, somebody else was quicker, or its connections are used up."""

STORE: Final = Backoff(first_s=0.02, most_s=1.0)
NOISY_AFTER: Final = 3
"""Failures in a row that are told: a deadlock now and then is no news."""


class Patience:
    """The failures in a row of one loop."""

    def __init__(self, what: str, clock: Clock, ids: Ids) -> None:
        self._what = what
        self._clock = clock
        self._ids = ids
        self._failures = 0

    def well(self) -> None:
        """It worked."""
        if self._failures >= NOISY_AFTER:
            log.info("works again", what=self._what, failures=self._failures)
        self._failures = 0

    async def after(self, error: DomainError) -> None:
        """It failed: wait, longer each time."""
        self._failures += 1
        if self._failures == NOISY_AFTER:
            log.warning("fails, and is tried on", what=self._what, error=str(error))
        await self._clock.sleep(STORE.wait_s(self._failures, self._ids.jitter()))
