"""What this machine has: CPUs and memory, as far as this process may use them."""

import os
import platform
import socket
from pathlib import Path
from typing import Final

import psutil

CGROUP_ROOT: Final = Path("/sys/fs/cgroup")
NO_LIMIT_BYTES: Final = 1 << 60
"""Version 1 says something of this size when there is no limit."""


def host_name() -> str:
    """The machine's name."""
    return socket.gethostname()


def labels() -> dict[str, str]:
    """What work may want to know of the machine."""
    return {"arch": platform.machine(), "os": platform.system().lower()}


def cpu_milli() -> int:
    """CPUs that this process may use, in thousandths, less what a cgroup keeps it from."""
    usable = len(os.sched_getaffinity(0)) * 1000
    return min([usable, *_cpu_quotas()])


def memory_bytes() -> int:
    """Memory of the machine, or what a cgroup leaves of it."""
    return min([psutil.virtual_memory().total, *_memory_limits()])


def _cpu_quotas() -> list[int]:
    two = _words(CGROUP_ROOT / "cpu.max")
    one = _words(CGROUP_ROOT / "cpu/cpu.cfs_quota_us") + _words(
        CGROUP_ROOT / "cpu/cpu.cfs_period_us"
    )
    return [
        int(words[0]) * 1000 // int(words[1])
        for words in (two, one)
        if len(words) == 2 and all(word.isdigit() for word in words)
    ]


def _memory_limits() -> list[int]:
    files = (CGROUP_ROOT / "memory.max", CGROUP_ROOT / "memory/memory.limit_in_bytes")
    limits = [int(words[0]) for words in map(_words, files) if words and words[0].isdigit()]
    return [limit for limit in limits if 0 < limit < NO_LIMIT_BYTES]


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []
