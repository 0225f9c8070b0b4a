"""What processes use that Atoll did not start: coarse, and slow to change its mind.

CPU is averaged over minutes and told in whole cores, memory in GiB: an inventory
that changes every second would have the whole queue tried again every second.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import psutil

from atoll.core.model.inventory import LocalUse

CPU_STEP: Final = 1000
MEMORY_STEP: Final = 1 << 30
SAMPLES: Final = 12
STEADY: Final = 3
"""Samples in a row that have to agree before something new is told."""


@dataclass(frozen=True, slots=True)
class Sample:
    """CPU seconds since the machine's start, and bytes in use now: all, and Atoll's runs."""

    at: float
    busy_s: float
    own_s: float
    used_bytes: int
    own_bytes: int


class LoadMeter:
    """Makes a `LocalUse` out of samples."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=SAMPLES)
        self._told = LocalUse()
        self._candidate = LocalUse()
        self._seen = 0

    def take(self, sample: Sample, blocks: tuple[tuple[int, int], ...] = ()) -> LocalUse:
        """What is to be told after one more sample."""
        self._samples.append(sample)
        found = self._use(blocks)
        self._seen = self._seen + 1 if found == self._candidate else 1
        self._candidate = found
        if self._seen >= STEADY:
            self._told = found
        return self._told

    def _use(self, blocks: tuple[tuple[int, int], ...]) -> LocalUse:
        first, last = self._samples[0], self._samples[-1]
        passed = last.at - first.at
        busy = (last.busy_s - first.busy_s) - max(0.0, last.own_s - first.own_s)
        cpu_milli = int(max(0.0, busy) / passed * 1000) if passed > 0 else 0
        memory = max(0, last.used_bytes - last.own_bytes)
        return LocalUse(
            cpu_milli // CPU_STEP * CPU_STEP, memory // MEMORY_STEP * MEMORY_STEP, blocks
        )


def sample(at: float, wrappers: Iterable[int]) -> Sample:
    """Look at the machine, and at what is below the wrappers (pids) of our own runs."""
    times, memory = psutil.cpu_times(), psutil.virtual_memory()
    idle = times.idle + getattr(times, "iowait", 0.0)
    own_s, own_bytes = 0.0, 0
    for process in own_processes(wrappers):
        try:
            spent = process.cpu_times()
            own_s += spent.user + spent.system + spent.children_user + spent.children_system
            own_bytes += process.memory_info().rss
        except psutil.Error:
            continue
    return Sample(at, sum(times) - idle, own_s, memory.total - memory.available, own_bytes)


def own_processes(wrappers: Iterable[int]) -> list[psutil.Process]:
    """The processes of our own runs."""
    found: list[psutil.Process] = []
    for pid in wrappers:
        try:
            found += psutil.Process(pid).children(recursive=True)
        except psutil.Error:
            continue
    return found
