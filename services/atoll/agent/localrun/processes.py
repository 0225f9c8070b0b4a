"""Processes of this machine, by the standard library alone: the wrapper has nothing else."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path


def reap_one() -> tuple[int, int] | None:
    """A child that has ended, with its exit code; None when there is none just now."""
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    code = os.waitstatus_to_exitcode(status)
    return (pid, code if code >= 0 else 128 - code) if pid else None


def kill_children() -> None:
    """Kill whatever is still below this process; children of the dead come to it."""
    while has_children():
        for pid in children():
            quietly(os.kill, pid, signal.SIGKILL)
        os.waitpid(-1, 0)


def has_children() -> bool:
    """Whether this process has any child, alive or dead."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def children() -> list[int]:
    """Pids of this process's own children."""
    mine = str(os.getpid())
    return [pid for pid in all_pids() if (fields := stat_fields(pid)) and fields[1] == mine]


def group_members(group: int) -> list[int]:
    """Pids of a process group."""
    wanted = str(group)
    return [pid for pid in all_pids() if (fields := stat_fields(pid)) and fields[2] == wanted]


def all_pids() -> list[int]:
    """Every process that can be seen."""
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]  # noqa: PTH208 - quick


def group_lives(group: int) -> bool:
    """Whether a process group has any process."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    mask = next((int(line[8:], 16) for line in lines if line.startswith("SigCgt:")), 0)
    return bool(mask >> (number - 1) & 1)


def start_ticks(pid: int) -> str:
    """When a process started, in ticks since the machine did; empty when it is gone."""
    fields = stat_fields(pid)
    return fields[19] if fields else ""


def live_ticks(pid: int) -> str:
    """As `start_ticks`, but empty for one that has ended and is not buried yet."""
    fields = stat_fields(pid)
    return fields[19] if fields and fields[0] not in "ZX" else ""


def stat_fields(pid: int) -> list[str]:
    """State, parent, group and so on of a process; empty when it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def oom_kills(cgroup: Path) -> int:
    """How many processes the kernel killed there for want of memory."""
    for name in ("memory.events", "memory.oom_control"):
        try:
            lines = (cgroup / name).read_text().split("\n")
        except OSError:
            continue
        return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return 0


def create_once(path: Path, text: str) -> bool:
    """Put a file there, whole and durable, unless there is one; False then.

    Whoever sees it sees all of it: it is linked into place when its content is on disk.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    write_durably(draft, text)
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    sync_folder(path.parent)
    return True


def write_whole(path: Path, text: str) -> None:
    """Put a file there, whole and durable; of several that do so at once, one is last."""
    draft = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.new")
    try:
        write_durably(draft, text)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_durably(path: Path, text: str) -> None:
    """Write a file and wait for the disk."""
    with path.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    opened = os.open(folder, os.O_RDONLY)
    os.fsync(opened)
    os.close(opened)


def quietly(action: Callable[..., object], *arguments: object) -> None:
    """Do it; what is gone already needs no doing."""
    with contextlib.suppress(OSError):
        action(*arguments)


def boottime() -> float:
    """Seconds since the machine's start, suspension included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_id() -> str:
    """Which start of the machine this is."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
