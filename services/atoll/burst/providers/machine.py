"""Plays a rented machine on this one: keeps an agent running, and ends all below it at the end.

It imports the standard library only and outlives the broker, which runs it by `start`. Its
folder has `machine.json` (what to be), and gets `pid` (who it is), `up` (the agent was
started) and `interrupted` (when it is taken back). It hears SIGTERM, and looks for `ended`
(it is to end, or never to begin) and `interrupt` (to be taken back, after the notice).
"""

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from atoll.burst.providers.processes import (
    become_subreaper,
    descendants,
    identity,
    reap,
    signal_all,
)

LOOK_S: Final = 0.5
MOST_PAUSE_S: Final = 30.0
MOST_LOG_BYTES: Final = 8 << 20
HEARD: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD})
ENDS: Final = HEARD - {signal.SIGCHLD}
TAKEN: Final = 3
ROOT: Final = str(Path(__file__).parents[3])
START: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from atoll.burst.providers.machine import main; sys.exit(main(sys.argv[2]))"
)
NEVER: Final = float("inf")


def start(folder: Path, env: dict[str, str], *, within_s: float) -> None:
    """Return when it is kept, by this call or by one before it; raises OSError. Blocks."""
    with (folder / "machine.log").open("ab") as log:
        code = subprocess.run(
            [sys.executable, "-I", "-S", "-c", START, ROOT, str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=env,
            start_new_session=True,
            timeout=within_s,
            check=False,
        ).returncode
    if code not in {0, TAKEN}:
        raise OSError(f"the machine did not start: exit code {code}")


def main(name: str) -> int:
    """Become the keeper of a folder in a process of its own; the exit code of this one."""
    folder = Path(name)
    lock = hold(folder)
    if lock is None:
        return TAKEN
    if (folder / "ended").exists():
        return 0
    # Masked before the fork: it may be told to end as soon as its pid is known.
    signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
    if child := os.fork():
        _write(folder / "pid", identity(child))
        return 0
    become_subreaper()
    Keeper(folder, json.loads((folder / "machine.json").read_text())).run()
    return 0


def hold(folder: Path) -> int | None:
    """Its keeper's lock, while this process or one that it forks lives; None: another has it."""
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


class Keeper:
    """From boot to end."""

    def __init__(self, folder: Path, order: dict[str, Any]) -> None:
        self._folder = folder
        self._order = order
        self._agent = 0
        """Its pid; 0: it does not run."""
        now = _elapsed()
        self._start_at = now + order["boot_s"] if order["boots"] else NEVER
        lasts_s = order["lasts_s"]
        self._notice_at = now + order["boot_s"] + lasts_s if lasts_s else NEVER
        self._end_at = NEVER
        self._pause_s = 1.0
        self._owner = _opened(order["ends_with"])

    def run(self) -> None:
        """Return when all is ended."""
        heard: int | None = None
        while heard not in ENDS and not self._is_over():
            self._keep_running()
            self._look_for_notice()
            self._cut_log()
            info = signal.sigtimedwait(HEARD, LOOK_S)
            heard = info.si_signo if info is not None else None
        self._end()

    def _keep_running(self) -> None:
        if self._agent in reap():
            self._agent, self._start_at = 0, _elapsed() + self._pause_s
            self._pause_s = min(MOST_PAUSE_S, 2 * self._pause_s)
        if not self._agent and _elapsed() >= self._start_at:
            self._agent = self._started()
            _write(self._folder / "up", identity(self._agent))

    def _started(self) -> int:
        argv, log = self._order["argv"], str(self._folder / "agent.log")
        return os.posix_spawn(
            argv[0],
            argv,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
            setsigmask=[],
            setsigdef=[signal.SIGPIPE],
        )

    def _look_for_notice(self) -> None:
        noticed = _elapsed() >= self._notice_at or (self._folder / "interrupt").exists()
        if noticed and self._end_at == NEVER:
            notice_s = self._order["notice_s"]
            self._end_at = _elapsed() + notice_s
            _write(self._folder / "interrupted", str(_wall() + notice_s))

    def _is_over(self) -> bool:
        """Told so before it could hear, taken back, or left alone."""
        return (
            _elapsed() >= self._end_at
            or (self._folder / "ended").exists()
            or (self._owner is not None and bool(select.select([self._owner], [], [], 0)[0]))
        )

    def _cut_log(self) -> None:
        log = self._folder / "agent.log"
        if log.exists() and log.stat().st_size > MOST_LOG_BYTES:
            os.truncate(log, 0)

    def _end(self) -> None:
        """Let all below end in good order, and kill what has not when the grace is over."""
        me = os.getpid()
        signal_all(descendants(me), signal.SIGCONT)
        signal_all(descendants(me), signal.SIGTERM)
        over_at = _elapsed() + self._order["grace_s"]
        while _has_children() and _elapsed() < over_at:
            signal.sigtimedwait({signal.SIGCHLD}, LOOK_S)
        while _has_children():
            signal_all(descendants(me), signal.SIGKILL)
            signal.sigtimedwait({signal.SIGCHLD}, LOOK_S)


def _has_children() -> bool:
    reap()
    return bool(descendants(os.getpid()))


def _opened(pid: int) -> int | None:
    """Becomes readable when the process ends; none was named: None."""
    if not pid:
        return None
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return os.open("/dev/null", os.O_RDONLY)  # readable at once


def _elapsed() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _wall() -> float:
    return time.clock_gettime(time.CLOCK_REALTIME)


def _write(path: Path, text: str) -> None:
    draft = path.with_name(f"{path.name}.new")
    draft.write_text(text)
    draft.replace(path)
