"""What a long-lived supervisor has to tidy: logs that grow, processes that lost their parent."""

import ctypes
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import psutil

from atoll.ports.clock import Clock

MOST_LOG_BYTES: Final = 8 << 20
EVERY_S: Final = 5.0
END_WITHIN_S: Final = 5.0
PR_SET_CHILD_SUBREAPER: Final = 36


def adopt_orphans() -> None:
    """Make the kernel hand every descendant that loses its parent to this process.

    What an agent leaves behind can then be found and ended at the end.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Housekeeper:
    """Cuts logs, and reaps what was adopted."""

    def __init__(
        self,
        clock: Clock,
        *,
        logs: Callable[[], Iterable[Path]],
        ours: Callable[[], Iterable[int]],
    ) -> None:
        self._clock = clock
        self._logs = logs
        self._ours = ours
        self._dead_before: set[int] = set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            for log in self._logs():
                cut(log)
            self._reap()
            await self._clock.sleep(EVERY_S)

    def _reap(self) -> None:
        """Collect adopted zombies.

        One that was dead at the last round already: this process's own children are
        collected at once by those who started them, and must not be taken from them.
        """
        dead = {child.pid for child in _children() if _is_zombie(child)} - set(self._ours())
        for pid in dead & self._dead_before:
            os.waitpid(pid, os.WNOHANG)
        self._dead_before = dead


def cut(log: Path, most: int = MOST_LOG_BYTES) -> None:
    """Keep one old log of at most `most` bytes beside the present one.

    Copied and truncated in place, since its writer keeps the file open (for appending).
    """
    if log.exists() and log.stat().st_size > most:
        shutil.copyfile(log, log.with_name(log.name + ".old"))
        os.truncate(log, 0)


def end_descendants() -> int:
    """End all that still runs below this process; how many it were.

    By force after a while, children's children first: a run's wrapper, which was
    adopted, can then still write down how its run ended.
    """
    left = psutil.Process().children(recursive=True)
    for process in left:
        _send(process, signal.SIGCONT)
        _send(process, signal.SIGTERM)
    psutil.wait_procs(left, timeout=END_WITHIN_S)
    adopted = {child.pid for child in _children()}
    _kill([process for process in left if process.pid not in adopted])
    psutil.wait_procs(left, timeout=END_WITHIN_S)
    while alive := [child for child in _children() if not _is_zombie(child)]:
        _kill(alive)
    return len(left)


def _children() -> list[psutil.Process]:
    return psutil.Process().children()


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        _send(process, signal.SIGKILL)
    psutil.wait_procs(processes, timeout=END_WITHIN_S)


def _send(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return
