"""Starts the processes of one rank. Nothing but the standard library, like the wrapper."""

import ctypes
import os
import resource
import signal
from pathlib import Path
from typing import Any, Final, NoReturn

from atoll.agent.localrun.processes import quietly

PR_SET_PDEATHSIG: Final = 1
CANNOT_RUN: Final = 127


def spawn(rank: dict[str, Any]) -> int:
    """Start one rank as the leader of a session of its own."""
    pid = os.fork()
    if pid:
        return pid
    try:
        become(rank)
    finally:
        os._exit(CANNOT_RUN)


def become(rank: dict[str, Any]) -> NoReturn:
    """Turn this process into the rank."""
    os.setsid()
    libc().prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    output = os.open(rank["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    try:
        for folder in rank["cgroups"]:
            (Path(folder) / "cgroup.procs").write_text("0")
        if rank["address_space_bytes"]:
            limit = rank["address_space_bytes"]
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        os.chdir(rank["folder"])
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        os.execve(rank["argv"][0], rank["argv"], rank["env"])
    except OSError as error:
        os.write(2, f"atoll: cannot start: {error}\n".encode())
        os._exit(CANNOT_RUN)


def remove_folder(folder: Path) -> None:
    """Remove an empty folder, such as a cgroup that nothing is in."""
    quietly(folder.rmdir)


def libc() -> ctypes.CDLL:
    """The C library of this process."""
    return ctypes.CDLL(None, use_errno=True)
