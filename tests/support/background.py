"""An event loop beside the tests' own ones, for what outlives a test."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

Result = TypeVar("Result")
WITHIN_S: Final = 180.0


class Background:
    """A loop in a thread of its own, usable while another loop runs in the caller's thread.

    The thread lasts as long as the tests, so that the kernel, which ends a test's
    servers with the thread that started them, ends them with the tests.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Block until `work` is done and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WITHIN_S)
