"""An append-only file whose writers share one fsync, made off the event loop."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


class LogBroken(Exception):
    """The file could not be written; nothing after this is durable, so nothing may follow."""


class GroupLog:
    """Appends in the order of the calls; each returns when it, and all before it, are on disk.

    What is appended while an fsync runs goes out together with the next one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        sync_folder(path.parent)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"fsync-{path.name}")
        self._pending: list[bytes] = []
        self._durable: asyncio.Future[None] | None = None
        self._writer: asyncio.Task[None] | None = None
        self._rewrite: Callable[[], bytes] | None = None
        self._error: BaseException | None = None
        self.size = path.stat().st_size
        """Bytes in the file and on their way to it."""

    async def append(self, data: bytes) -> None:
        """Return when `data`, and all that came before it, is durable; raises LogBroken."""
        # Shielded: the future is everybody's who waits for this flush.
        await asyncio.shield(self._queue(data))

    def push(self, data: bytes) -> None:
        """Append without waiting; what is appended later is never durable without it."""
        _ = self._queue(data)

    def rewrite(self, content: Callable[[], bytes]) -> None:
        """Replace the file, at the next flush, by what `content` returns then.

        That must amount to all that was appended until the call of `content`.
        """
        self._rewrite = content
        _ = self._flush()

    async def close(self) -> None:
        """Flush what is pending and close the file; later appends fail."""
        if self._writer is not None:
            await asyncio.gather(self._writer, return_exceptions=True)
        self._error = self._error or OSError("it is closed")
        self._thread.shutdown()
        os.close(self._file)

    def _queue(self, data: bytes) -> asyncio.Future[None]:
        self._pending.append(data)
        self.size += len(data)
        return self._flush()

    def _flush(self) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        durable = self._durable
        if durable is None:
            durable = loop.create_future()
            durable.add_done_callback(_seen)
            self._durable = None if self._error is not None else durable
        if self._error is not None:
            durable.set_exception(LogBroken(f"{self._path}: {self._error}"))
        elif self._writer is None or self._writer.done():
            self._writer = loop.create_task(self._write_all(), name=f"write {self._path.name}")
        return durable

    async def _write_all(self) -> None:
        while self._durable is not None:
            durable, self._durable = self._durable, None
            pending, self._pending = self._pending, []
            try:
                await self._write(pending)
            except OSError as error:
                self._fail(durable, error)
                return
            durable.set_result(None)

    async def _write(self, pending: list[bytes]) -> None:
        content, self._rewrite = self._rewrite, None
        loop = asyncio.get_running_loop()
        if content is None:
            await loop.run_in_executor(self._thread, write_durably, self._file, pending)
            return
        data = content()
        self.size = len(data)
        self._file = await loop.run_in_executor(
            self._thread, replace_durably, self._path, self._file, data
        )

    def _fail(self, durable: asyncio.Future[None], error: OSError) -> None:
        self._error = error
        for waiting in (durable, self._durable):
            if waiting is not None and not waiting.done():
                waiting.set_exception(LogBroken(f"{self._path}: {error}"))
        self._durable = None


def _seen(done: asyncio.Future[None]) -> None:
    """Nobody may wait for a push; its failure fails every later append."""
    if not done.cancelled():
        done.exception()


def write_durably(file: int, pending: list[bytes]) -> None:
    """Append to the file and wait for the disk."""
    data = memoryview(b"".join(pending))
    while data:
        data = data[os.write(file, data) :]
    os.fdatasync(file)


def replace_durably(path: Path, file: int, data: bytes) -> int:
    """Put a new file in the place of `path`; either is whole after a crash."""
    draft = path.with_name(path.name + ".new")
    fresh = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    write_durably(fresh, [data])
    draft.replace(path)
    sync_folder(path.parent)
    os.close(file)
    return fresh


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
