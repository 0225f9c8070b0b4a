"""Waiting for what other processes do."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from atoll.adapters.system import SystemClock

POLL_S: Final = 0.02
WITHIN_S: Final = 120.0


async def until(true: Callable[[], object]) -> None:
    """Return when it is so; a TimeoutError when it is not within WITHIN_S."""

    async def ask() -> object:
        return true()

    await until_asked(ask)


async def until_asked(true: Callable[[], Awaitable[object]]) -> None:
    """Return when the answer is yes; a TimeoutError when it is not within WITHIN_S."""
    async with asyncio.timeout(WITHIN_S):
        while not await true():
            await SystemClock().sleep(POLL_S)
