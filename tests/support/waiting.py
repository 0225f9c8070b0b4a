"""Waiting for what has to become true, with an end."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

WITHIN_S: Final = 120.0
POLL_S: Final = 0.02


async def eventually(
    holds: Callable[[], bool] | Callable[[], Awaitable[bool]], *, within_s: float = WITHIN_S
) -> None:
    """Return as soon as `holds`; fails when that takes too long. Measures no time otherwise."""
    async with asyncio.timeout(within_s):
        while True:
            answer = holds()
            if answer if isinstance(answer, bool) else await answer:
                return
            await asyncio.sleep(POLL_S)
