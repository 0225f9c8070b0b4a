"""Processes of this machine, by the standard library alone: the keeper has nothing else."""

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Final

PR_SET_CHILD_SUBREAPER: Final = 36


def become_subreaper() -> None:
    """From now on whoever loses his parent below this process becomes its child."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def boot_id() -> str:
    """Which start of the machine this is."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def identity(pid: int) -> str:
    """What no other process ever has; empty when it has ended, buried or not."""
    fields = _stat(pid)
    return f"{pid} {fields[19]} {boot_id()}" if fields and fields[0] not in "ZX" else ""


def is_alive(known: str) -> bool:
    """Whether the process of an `identity` lives."""
    pid = known.partition(" ")[0]
    return pid.isdigit() and identity(int(pid)) == known


def descendants(root: int) -> list[int]:
    """All below a process, children before their children."""
    by_parent: dict[int, list[int]] = {}
    for pid in _pids():
        if fields := _stat(pid):
            by_parent.setdefault(int(fields[1]), []).append(pid)
    found = list(by_parent.get(root, ()))
    for pid in found:
        found.extend(by_parent.get(pid, ()))
    return found


def writers(folder: Path) -> list[int]:
    """Living processes whose output goes to files in a folder, all but this one."""
    home = f"{folder}/"
    return [
        pid
        for pid in _pids()
        if pid != os.getpid() and any(out.startswith(home) for out in _outputs(pid))
    ]


def signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal; who is gone needs none."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def end_by_force(root: int) -> None:
    """Kill a process and all below it; stopped first, it bears no more children unseen."""
    signal_all([root], signal.SIGSTOP)
    signal_all([*descendants(root), root], signal.SIGKILL)


def reap() -> set[int]:
    """Bury the children that have ended; who they were."""
    buried = set()
    with contextlib.suppress(ChildProcessError):
        while pid := os.waitpid(-1, os.WNOHANG)[0]:
            buried.add(pid)
    return buried


def _pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]  # noqa: PTH208 - quick


def _stat(pid: int) -> list[str]:
    """State, parent, group and so on; empty when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _outputs(pid: int) -> list[str]:
    found = []
    for link in ("fd/1", "fd/2"):
        with contextlib.suppress(OSError):
            found.append(str(Path(f"/proc/{pid}/{link}").readlink()))
    return found
