"""The folder of each run: what its wrapper left there says how far it came.

runs/1042.1/    started   exclusive, durable: this attempt is never started again
                exit      durable: nothing of it is left, and this is how it ended
                pids      first processes of the ranks
                tasks     what it holds of the machine
                rank-0.log, run-0.sh, work/ …
ended/1042.1/   the same, once its end is known to all; the oldest go
"""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

from atoll.agent.grouplog import sync_folder
from atoll.agent.localrun.processes import (
    boot_id,
    create_once,
    group_members,
    live_ticks,
    quietly,
    start_ticks,
    write_whole,
)
from atoll.core.model.ids import ATTEMPT_BITS, AttemptId, attempt_name
from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.reason import ReasonCode
from atoll.ports.backend import RunEvent
from atoll.wire.placement import decode_tasks, encode_tasks

STOPPED_BY: Final = {"STOPPED": None, "GUARD": ReasonCode.STOPPED_BY_GUARD}
SIGKILL: Final = 9


@dataclass(frozen=True, slots=True)
class Marker:
    """What `started` says: which process is the wrapper. No pid: it was never to start."""

    pid: int
    start: str
    boot: str

    def alive(self) -> bool:
        """Whether that very process lives."""
        return self.pid > 0 and self.boot == boot_id() and live_ticks(self.pid) == self.start


TOMBSTONE: Final = Marker(0, "", "")
"""Of an attempt that was never to start."""


class Folders:
    """The folders of all runs below one."""

    def __init__(self, root: Path) -> None:
        self._runs = root / "runs"
        self._ended = root / "ended"
        self._trash = root / "trash"
        self._numbers = count()

    def make(self) -> None:
        """Make what is missing."""
        for folder in (self._runs, self._ended, self._trash):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def of(self, attempt: AttemptId) -> Path:
        """Where a run is or will be."""
        return self._runs / attempt_name(attempt)

    def kept(self, attempt: AttemptId) -> Path | None:
        """Where it is, or was put away; None when nothing is kept."""
        name = attempt_name(attempt)
        return next(
            (base / name for base in (self._runs, self._ended) if (base / name).exists()), None
        )

    def attempts(self) -> Iterator[AttemptId]:
        """Runs that are not put away."""
        for folder in sorted(self._runs.iterdir()):
            job, _, number = folder.name.partition(".")
            if job.isdigit() and number.isdigit():
                yield AttemptId(int(job) << ATTEMPT_BITS | int(number))

    def put_away(self, attempt: AttemptId) -> None:
        """A run whose end is known to all; quick, as a stop may follow at once."""
        source, target = self.of(attempt), self._ended / attempt_name(attempt)
        if not source.exists():
            return
        if target.exists():  # it ended before, and was stopped once more
            target = self._trash / f"{source.name}.{os.getpid()}.{next(self._numbers)}"
        source.rename(target)
        os.utime(target)

    def prune(self, keep: int) -> None:
        """Keep the newest of what was put away. Blocks on the disk."""
        ended = sorted(self._ended.iterdir(), key=lambda folder: folder.stat().st_mtime)
        for folder in (*ended[: max(0, len(ended) - keep)], *self._trash.iterdir()):
            shutil.rmtree(folder, ignore_errors=True)


def claim(folder: Path) -> bool:
    """Make sure that the run is never started; False when it was, or is just about to be."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    tombstone = json.dumps({"pid": 0, "start": "", "boot": ""})
    if not create_once(folder / "started", tombstone):
        return read_marker(folder) == TOMBSTONE
    sync_folder(folder.parent)
    return True


def read_marker(folder: Path) -> Marker | None:
    """What `started` says; None without one."""
    try:
        found = json.loads((folder / "started").read_text())
    except FileNotFoundError:
        return None
    return Marker(found["pid"], found["start"], found["boot"])


@dataclass(frozen=True, slots=True)
class Held:
    """What a run holds of the machine, and how long it may take to stop."""

    tasks: tuple[TaskPlacement, ...] = ()
    ports: tuple[int, ...] = ()
    grace_s: float = 0.0


def write_held(folder: Path, held: Held) -> None:
    """Note what a run holds, for whoever takes it over."""
    (folder / "tasks").write_bytes(encode_tasks(held.tasks))
    (folder / "held").write_text(json.dumps({"ports": held.ports, "grace_s": held.grace_s}))


def read_held(folder: Path) -> Held:
    """What a run holds, as far as it was noted."""
    try:
        tasks = decode_tasks((folder / "tasks").read_bytes())
        rest = json.loads((folder / "held").read_text())
        return Held(tasks, tuple(rest["ports"]), rest["grace_s"])
    except (FileNotFoundError, ValueError):
        return Held()


def sized(folder: Path) -> int:
    """Generation of the last change of size that the wrapper has carried out; 0: none."""
    try:
        return int(json.loads((folder / "resized").read_text())["generation"])
    except (FileNotFoundError, ValueError):
        return 0


def end_of(folder: Path, attempt: AttemptId) -> RunEvent | None:
    """The terminal event that `exit` tells of; None without one."""
    try:
        found: dict[str, Any] = json.loads((folder / "exit").read_text())
    except (FileNotFoundError, ValueError):
        return None
    reason, code = found["reason"], found["code"]
    if reason in STOPPED_BY:
        return RunEvent(
            attempt,
            AttemptEvent.STOPPED,
            found["at"],
            exit_code=code,
            reason=STOPPED_BY[reason],
            message=found["message"],
        )
    return RunEvent(
        attempt,
        AttemptEvent.FINISHED,
        found["at"],
        exit_code=code,
        reason=_reason(reason, code),
        message=found["message"] or ("it reached its time limit" if reason == "TIME_LIMIT" else ""),
    )


def write_lost(folder: Path, *, at: float, reason: str) -> None:
    """The wrapper is gone without a word: say so in its place."""
    message = "its wrapper is gone, and with it how it ended" if reason == "UNKNOWN" else ""
    write_whole(
        folder / "exit",
        json.dumps({"code": None, "reason": reason, "message": message, "at": at}),
    )


def kill_rest(folder: Path) -> None:
    """Kill the process groups of a run whose wrapper is gone."""
    try:
        who = json.loads((folder / "pids").read_text())
    except (FileNotFoundError, ValueError):
        return
    for pid, ticks in who:
        leader = start_ticks(pid)
        # A group outlives its leader, and its number is not given away meanwhile.
        if leader in ("", ticks):
            for member in group_members(pid):
                quietly(os.kill, member, SIGKILL)


def _reason(reason: str, code: int | None) -> ReasonCode | None:
    if reason == "TIME_LIMIT":
        return ReasonCode.TIME_LIMIT
    if reason == "UNKNOWN" or code is None:
        return ReasonCode.EXIT_UNKNOWN
    return ReasonCode.EXIT_NONZERO if code else None
