"""Time and identities of a simulation."""

import asyncio
from typing import Final

import numpy as np

START: Final = 1_800_000_000.0
"""Wall time at which every simulation begins."""
BOOT_S: Final = 30.0
"""Virtual time before that, in which the services start and the clusters register."""


class SimClock:
    """A `Clock` over the running loop, which must be a virtual one."""

    def now(self) -> float:
        """Wall time in seconds since 1970 UTC."""
        return START - BOOT_S + self.monotonic()

    def monotonic(self) -> float:
        """Virtual seconds since the simulation began."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """Return when `seconds` of virtual time have passed."""
        await asyncio.sleep(max(0.0, seconds))


class SimIds:
    """`Ids` from a seed."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def uuid(self) -> str:
        """A UUID of version 4."""
        data = bytearray(self._rng.bytes(16))
        data[6] = data[6] & 0x0F | 0x40
        data[8] = data[8] & 0x3F | 0x80
        text = data.hex()
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    def token(self, nbytes: int) -> str:
        """Hexadecimal digits; unguessable only for those who do not know the seed."""
        return str(self._rng.bytes(nbytes).hex())

    def jitter(self) -> float:
        """A number in 0 <= x < 1."""
        return float(self._rng.random())
