"""Watches processes that need not be children of this one, without polling."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress

from atoll.agent.localrun.folders import Marker


class Watch:
    """Calls `on_end` once, in the event loop, when the wrapper's process has ended."""

    def __init__(self, marker: Marker, on_end: Callable[[], None]) -> None:
        self.pid = marker.pid
        self._on_end = on_end
        self._file = -1
        # Opened first: what is alive and the same afterwards was so when it was opened.
        with suppress(OSError):
            self._file = os.pidfd_open(marker.pid)
        if self._file >= 0 and marker.alive():
            asyncio.get_running_loop().add_reader(self._file, self._ended)
        else:
            asyncio.get_running_loop().call_soon(self._ended)

    def send(self, number: int) -> None:
        """Signal the process; nothing happens when it has ended."""
        if self._file >= 0:
            with suppress(OSError):
                signal.pidfd_send_signal(self._file, number)

    def close(self) -> None:
        """Watch it no more."""
        if self._file >= 0:
            asyncio.get_running_loop().remove_reader(self._file)
            os.close(self._file)
            self._file = -1

    def _ended(self) -> None:
        if self._file >= 0:
            # Process 1 of a container adopts what is orphaned, and has to bury it.
            with suppress(OSError):
                os.waitid(os.P_PIDFD, self._file, os.WEXITED | os.WNOHANG)
        self.close()
        self._on_end()
