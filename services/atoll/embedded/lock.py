"""Who runs a data folder: a lock that the kernel frees with its holder, whose pid is inside."""

import asyncio
import fcntl
import os
from pathlib import Path
from typing import Final, Self

POLL_S: Final = 0.05
TRIES: Final = 40


class AlreadyRunning(Exception):
    """Another supervisor holds the folder."""


class FolderLock:
    """Held from `take` to the end of this process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    async def take(cls, path: Path) -> Self:
        """Lock the folder; raises AlreadyRunning.

        Tried for a moment, since whoever looks with `holder` holds it too while looking.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        for _ in range(TRIES):
            if _locked(descriptor, fcntl.LOCK_EX):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, str(os.getpid()).encode(), 0)
                return cls(descriptor)
            await asyncio.sleep(POLL_S)
        os.close(descriptor)
        raise AlreadyRunning(str(path))

    def release(self) -> None:
        """Give the folder up."""
        os.close(self._descriptor)


def holder(path: Path) -> int | None:
    """The pid of the process that holds the folder, or None when nobody does."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        if _locked(descriptor, fcntl.LOCK_SH):
            return None
        # Empty: it took the lock this very moment and has not written yet.
        return int(os.pread(descriptor, 20, 0) or b"0") or None
    finally:
        os.close(descriptor)


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
