"""Limits by control groups, of version 1 and 2, where they can be written."""

import os
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from atoll.agent.localrun.processes import quietly
from atoll.runtime import logs

log = logs.logger(__name__)

ROOT: Final = Path("/sys/fs/cgroup")
SELF: Final = Path("/proc/self/cgroup")
PERIOD_US: Final = 100_000
LEAST_QUOTA_US: Final = 1_000
CONTROLLERS: Final = ("cpu", "memory")
KILL_TRIES: Final = 40
KILL_WAIT_S: Final = 0.05
LEAF: Final = "atoll-agent"
"""Where the agent itself is, beside the groups of its runs: DelegateSubgroup= of its unit."""


@dataclass(frozen=True, slots=True)
class Cgroups:
    """Folders below which groups for runs can be made; without any, nothing is limited so."""

    cpu: Path | None = None
    memory: Path | None = None
    unified: bool = False
    """True: version 2; both are the same folder."""

    def make(self, name: str, *, cpu_milli: int, memory_bytes: int) -> tuple[str, ...]:
        """Groups with these limits (0: none), to be joined; they are removed when empty."""
        made = self.of(name)
        for folder in made:
            folder.mkdir(exist_ok=True)
        if self.cpu is not None and cpu_milli:
            self._limit_cpu(self.cpu / name, max(LEAST_QUOTA_US, cpu_milli * PERIOD_US // 1000))
        if self.memory is not None and memory_bytes:
            limit = "memory.max" if self.unified else "memory.limit_in_bytes"
            (self.memory / name / limit).write_text(str(memory_bytes))
        return tuple(map(str, made))

    def of(self, name: str) -> tuple[Path, ...]:
        """The folders of the groups of that name."""
        return tuple(dict.fromkeys(base / name for base in (self.cpu, self.memory) if base))

    def tidy(self) -> None:
        """Remove what find_cgroups made, unless runs are still in it."""
        for base in {base for base in (self.cpu, self.memory) if base}:
            quietly(base.rmdir)

    def _limit_cpu(self, folder: Path, quota_us: int) -> None:
        if self.unified:
            (folder / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
        else:
            (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (folder / "cpu.cfs_quota_us").write_text(str(quota_us))


def find_cgroups(name: str, *, root: Path = ROOT, own: Path = SELF) -> Cgroups:
    """Where this process can make groups, below `name`; logs what cannot be limited."""
    paths = _own_paths(own)
    two = _unified(root, paths.get("", ""), name)
    if two is not None:
        return Cgroups(two, two, unified=True)
    folders = {
        controller: _writable(root / controller / paths[controller].lstrip("/") / name)
        for controller in CONTROLLERS
        if controller in paths
    }
    for controller in CONTROLLERS:
        if folders.get(controller) is None:
            log.warning("runs are not limited by a control group", controller=controller)
    return Cgroups(folders.get("cpu"), folders.get("memory"))


def kill_group(folder: Path) -> None:
    """Kill whatever is in a group, and remove it when the dead have left. Blocks."""
    for _ in range(KILL_TRIES):
        try:
            pids = [int(pid) for pid in (folder / "cgroup.procs").read_text().split()]
            for pid in pids:
                quietly(os.kill, pid, signal.SIGKILL)
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            threading.Event().wait(KILL_WAIT_S)


def _own_paths(own: Path) -> dict[str, str]:
    """Path of this process by controller; under the empty name that of version 2."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        found.update(dict.fromkeys(controllers.split(","), path))
    return found


def _unified(root: Path, path: str, name: str) -> Path | None:
    parent = root / path.lstrip("/")
    # systemd could not start the agent again in a group that hands controllers down, so it starts
    # it in a leaf. What is above the leaf is the agent's as well.
    if parent.name == LEAF:
        parent = parent.parent
    try:
        offered = (parent / "cgroup.controllers").read_text().split()
    except OSError:
        return None
    if not set(CONTROLLERS) <= set(offered) or not _enable(parent):
        return None
    folder = _writable(parent / name)
    return folder if folder is not None and _enable(folder) else None


def _enable(folder: Path) -> bool:
    """Hand the controllers down; a group with processes of its own cannot, so they move."""
    text = " ".join(f"+{controller}" for controller in CONTROLLERS)
    control = folder / "cgroup.subtree_control"
    try:
        control.write_text(text)
    except OSError:
        try:
            leaf = folder / LEAF
            leaf.mkdir(exist_ok=True)
            (leaf / "cgroup.procs").write_text("0")
            control.write_text(text)
        except OSError:
            return False
    return True


def _writable(folder: Path) -> Path | None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None
