"""Loops that go on: one that fails is started again, later each time, and never silently."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from atoll.ports.clock import Clock, Ids
from atoll.runtime import logs, metrics

log = logs.logger(__name__)

RESTARTS: Final = metrics.counter(
    "loop_restarts_total", "Times a loop failed and was started again.", ("loop",)
)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits between tries: from `first_s`, doubled up to `most_s`, each cut by up to a half.

    A loop that ran for `reset_s` without failing begins at `first_s` again.
    """

    first_s: float = 0.1
    most_s: float = 10.0
    reset_s: float = 30.0

    def wait_s(self, failures: int, jitter: float) -> float:
        """Before the next try after `failures` (from 1) in a row; `jitter` in 0 <= x < 1."""
        whole = min(self.most_s, self.first_s * 2.0 ** min(failures - 1, 32))
        return whole * (1.0 - jitter / 2)


DEFAULT_BACKOFF: Final = Backoff()


CANCEL_AGAIN_AFTER_S: Final = 0.5


class Supervisor:
    """Runs loops until it is closed. A loop that returns is done; one that raises starts again."""

    def __init__(self, clock: Clock, ids: Ids) -> None:
        self._clock = clock
        self._ids = ids
        self._tasks: set[asyncio.Task[None]] = set()

    def start(
        self,
        name: str,
        loop: Callable[[], Awaitable[None]],
        *,
        backoff: Backoff = DEFAULT_BACKOFF,
    ) -> asyncio.Task[None]:
        """Run `loop` in the background; `name` labels its log lines and metrics."""
        task = asyncio.create_task(self.run(name, loop, backoff=backoff), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def run(
        self,
        name: str,
        loop: Callable[[], Awaitable[None]],
        *,
        backoff: Backoff = DEFAULT_BACKOFF,
    ) -> None:
        """Run `loop` here, until it returns or this is cancelled."""
        failures = 0
        while True:
            begun = self._clock.monotonic()
            try:
                await loop()
            except Exception as error:
                lasted = self._clock.monotonic() - begun
                failures = 1 if lasted >= backoff.reset_s else failures + 1
                await self._wait(name, error, backoff.wait_s(failures, self._ids.jitter()))
            else:
                return

    async def close(self) -> None:
        """Cancel every loop, and wait until all have ended."""
        # A library between a loop and its wait may lose a cancellation: it is said again then.
        while tasks := list(self._tasks):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=CANCEL_AGAIN_AFTER_S)

    async def _wait(self, name: str, error: Exception, wait_s: float) -> None:
        RESTARTS.labels(name).inc()
        log.error("loop failed", loop=name, retry_in_s=round(wait_s, 3), exc_info=error)
        await self._clock.sleep(wait_s)
