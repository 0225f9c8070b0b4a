"""Waiting for a condition that others bring about."""

import asyncio
from collections.abc import Callable

from atoll.ports.clock import Clock


class Signal:
    """Wakes everybody who waits, to look again at what they wait for."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def fire(self) -> None:
        """Something changed."""
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    async def wait(self, holds: Callable[[], bool]) -> None:
        """Return when `holds`, which is looked at now and after each `fire`."""
        while not holds():
            future = asyncio.get_running_loop().create_future()
            self._waiting.add(future)
            try:
                await future
            finally:
                self._waiting.discard(future)

    async def wait_within(self, holds: Callable[[], bool], seconds: float, clock: Clock) -> None:
        """The same, but return after `seconds` of `clock` at the latest."""
        if holds() or seconds <= 0:
            return
        waiting = asyncio.ensure_future(self.wait(holds))
        timer = asyncio.ensure_future(clock.sleep(seconds))
        try:
            await asyncio.wait({waiting, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            timer.cancel()
