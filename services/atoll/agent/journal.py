"""The agent's journal: to apply a decision is to have it here, on disk.

One file of records, appended in groups. A torn tail is cut off when it is
opened: nothing of it was ever acknowledged. It is written anew, as the fewest
records that amount to the same, when most of it is history.
"""

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from atoll.agent.grouplog import GroupLog, replace_durably
from atoll.agent.memory import Memory
from atoll.agent.records import MAGIC, Identity, Record, frames, read

FILE: Final = "journal"
LEAST_REWRITE_BYTES: Final = 4 << 20
GROWTH: Final = 4
"""It is written anew when it has grown to so many times what it was after the last time."""


class JournalMismatch(Exception):
    """The journal belongs to another cluster, or is none."""


class DataDirInUse(Exception):
    """Another agent runs on this data folder."""


class Journal:
    """The records, and the memory that they amount to."""

    def __init__(self, path: Path, memory: Memory, log: GroupLog) -> None:
        self.memory = memory
        self.applied = memory.applied or 0
        """Decisions up to here are on disk; those of the memory may still be on their way."""
        self._path = path
        self._log = log
        self._limit = max(LEAST_REWRITE_BYTES, GROWTH * log.size)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._log.size

    async def append(self, records: Sequence[Record]) -> None:
        """Return when the records, and all before them, are durable; raises LogBroken."""
        self._take(records)
        applied = self.memory.applied or 0
        await self._log.append(frames(records))
        self.applied = applied
        self._bound()

    def note(self, records: Sequence[Record]) -> None:
        """Append records that nobody needs to wait for."""
        self._take(records)
        self._log.push(frames(records))

    async def close(self) -> None:
        """Flush and close."""
        await self._log.close()

    def _take(self, records: Sequence[Record]) -> None:
        for record in records:
            self.memory.apply(record)

    def _bound(self) -> None:
        if self._log.size > self._limit:
            self._limit = 1 << 62  # until this one is done
            self._log.rewrite(self._content)

    def _content(self) -> bytes:
        data = content(self.memory)
        self._limit = max(LEAST_REWRITE_BYTES, GROWTH * len(data))
        return data


def open_journal(folder: Path, cluster: str, *, instance: str) -> Journal:
    """Open the folder's journal, or begin one as `instance`.

    Blocks on the disk. Raises JournalMismatch when it is another cluster's.
    """
    path = folder / FILE
    memory = Memory()
    good = _replay(path, memory) if path.exists() else 0
    if not memory.instance:
        memory.apply(Identity(instance, cluster))
        _begin(path, memory)
    elif memory.cluster != cluster:
        raise JournalMismatch(f"{path} is the journal of cluster {memory.cluster!r}")
    elif good < path.stat().st_size:
        os.truncate(path, good)
    return Journal(path, memory, GroupLog(path))


def lock_folder(folder: Path) -> int:
    """Keep other agents off the data folder, as long as the returned file is open."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise DataDirInUse(f"another agent runs on {folder}") from None
    return file


def content(memory: Memory) -> bytes:
    """A journal file that amounts to `memory`."""
    return MAGIC + frames(memory.records())


def _replay(path: Path, memory: Memory) -> int:
    data = path.read_bytes()
    if data and not data.startswith(MAGIC[: len(data)]):
        raise JournalMismatch(f"{path} is no journal of an agent")
    good = len(MAGIC)
    for record, end in read(data):
        memory.apply(record)
        good = end
    return good


def _begin(path: Path, memory: Memory) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.close(replace_durably(path, file, content(memory)))
