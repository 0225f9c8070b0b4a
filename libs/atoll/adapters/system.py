"""The machine's own clocks and randomness: the one place that reads them."""

import asyncio
import random
import secrets
import sys
import time
import uuid


class SystemClock:
    """A `Clock` over the machine's clocks."""

    def now(self) -> float:
        """Wall time in seconds since 1970 UTC."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since the machine's start.

        On Linux this includes suspension: a leader that was suspended past its
        lease must not believe itself valid when it wakes up.
        """
        if sys.platform == "linux":
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return when `seconds` have passed."""
        await asyncio.sleep(seconds)


class SystemIds:
    """`Ids` from the operating system's generator."""

    def uuid(self) -> str:
        """A random UUID in its 36 character form."""
        return str(uuid.uuid4())

    def token(self, nbytes: int) -> str:
        """An unguessable URL-safe text made from `nbytes` random bytes."""
        return secrets.token_urlsafe(nbytes)

    def jitter(self) -> float:
        """A number in 0 <= x < 1."""
        return random.random()
