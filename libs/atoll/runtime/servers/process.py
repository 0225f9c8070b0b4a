"""One server process and its descendants: spawn, recognise again, signal, wait."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from atoll.runtime.servers.account import Account
from atoll.runtime.servers.errors import ServerError

POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a server."""

    argv: tuple[str, ...]
    folder: Path
    """The working folder."""
    log: Path
    account: Account | None
    death_signal: signal.Signals | None
    """Sent by the kernel when the thread that spawned it dies; None: it lives on alone."""


class Process:
    """A server that was spawned here, or by an earlier process and found again."""

    def __init__(self, pid: int, child: "subprocess.Popen[bytes] | None" = None) -> None:
        self.pid = pid
        self._child = child

    def alive(self) -> bool:
        """Whether it runs or is stopped by a signal; reaps it when it is our child."""
        if self._child is not None:
            return self._child.poll() is None
        # Whoever adopted it may reap late: a zombie has ended all the same.
        try:
            return bool(psutil.Process(self.pid).status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False

    def send(self, number: signal.Signals) -> None:
        """Signal the server itself; nothing happens when it has ended."""
        if self.alive():
            _signal(self.pid, number)

    def send_to_all(self, number: signal.Signals) -> None:
        """Signal the server, then its children: PostgreSQL's each have a process group."""
        if not self.alive():
            return
        if number != signal.SIGCONT:
            _signal(self.pid, signal.SIGSTOP)  # so that no child is born unseen
        for pid in (*self._descendants(), self.pid):
            _signal(pid, number)

    async def ended(self, within_s: float) -> bool:
        """Wait for the end; False if it still lives after `within_s` seconds."""
        for _ in range(round(within_s / POLL_S)):
            if not self.alive():
                return True
            await asyncio.sleep(POLL_S)
        return not self.alive()

    def wait_killed(self, within_s: float) -> None:
        """Block until a process that got SIGKILL is gone, which takes the kernel moments."""
        with contextlib.suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
            if self._child is not None:
                self._child.wait(within_s)
            else:
                psutil.Process(self.pid).wait(within_s)

    def _descendants(self) -> list[int]:
        try:
            return [child.pid for child in psutil.Process(self.pid).children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


def spawn(launch: Launch) -> Process:
    """Start a server in a session of its own, so that no terminal's Ctrl-C ends it."""
    launch.log.touch(mode=0o600)
    with launch.log.open("ab") as log:
        child = subprocess.Popen(
            command_line(launch.argv, launch.account, launch.death_signal),
            cwd=launch.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=clean_environment(),
            start_new_session=True,
        )
    return Process(child.pid, child)


def find(pid: int, marker: str) -> Process | None:
    """The process `pid` if it lives and has the argument `marker`: a pid may be another's now."""
    try:
        arguments = psutil.Process(pid).cmdline()  # world-readable, unlike its working folder
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None
    return Process(pid) if marker in arguments else None


def command_line(
    argv: Sequence[str], account: Account | None, death_signal: signal.Signals | None
) -> list[str]:
    """Run `argv` as the account, ended by `death_signal` (on Linux) with the thread that ran it."""
    options: list[str] = []
    if account is not None:
        options += [f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups"]
    if death_signal is not None and sys.platform == "linux":
        # setpriv sets it after the change of user, which would clear one set before.
        options += ["--pdeathsig", death_signal.name.removeprefix("SIG")]
    return [_setpriv(), *options, "--", *argv] if options else list(argv)


def clean_environment() -> dict[str, str]:
    """Ours without what would steer the servers' programs by accident."""
    steering = ("PG", "ETCD_", "LC_", "LANG")
    kept = {key: text for key, text in os.environ.items() if not key.startswith(steering)}
    return kept | {"LC_ALL": "C.UTF-8", "TZ": "UTC"}


def _setpriv() -> str:
    found = shutil.which("setpriv")
    if found is None:
        raise ServerError("setpriv is missing; install util-linux")
    return found


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
    except PermissionError:
        raise ServerError(f"process {pid} is another user's; try again as that user") from None
