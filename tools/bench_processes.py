"""What the processes of a stack have used: CPU time and memory."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import psutil

MIB: Final = 1 << 20
SUPERVISOR: Final = "supervisor"
"""Has started all the others; for every other name what it has started counts with it."""


class Meter:
    """Looks at processes by name."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._processes = {name: psutil.Process(pid) for name, pid in pids.items()}
        self._peaks = dict.fromkeys(pids, 0)

    def cpu_s(self) -> dict[str, float]:
        """CPU seconds so far by name, of children that have ended too."""
        return {name: sum(map(_cpu_s, self._family(name))) for name in self._processes}

    def look(self) -> None:
        """Take note of the memory."""
        for name in self._processes:
            self._peaks[name] = max(self._peaks[name], _memory_bytes(self._family(name)))

    def peak_rss_mb(self) -> dict[str, int]:
        """The most that was ever seen, by name."""
        return {name: round(peak / MIB) for name, peak in self._peaks.items()}

    def _family(self, name: str) -> list[psutil.Process]:
        process = self._processes[name]
        if name == SUPERVISOR:
            return [process]
        with contextlib.suppress(psutil.NoSuchProcess):
            return [process, *process.children(recursive=True)]
        return []


def _cpu_s(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        ended = times.children_user + times.children_system
        return float(times.user + times.system + ended)
    return 0.0


def _memory_bytes(family: list[psutil.Process]) -> int:
    """The peak of a process alone; of several, what they have now, shared pages counted once."""
    if len(family) == 1:
        return peak_bytes(family[0].pid)
    return sum(map(_own_share_bytes, family))


def peak_bytes(pid: int) -> int:
    """The most resident memory that a process ever had; 0 when it is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def _own_share_bytes(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        return int(process.memory_full_info().pss)
    return 0
