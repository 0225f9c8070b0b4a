"""The folder of an instance that is processes here: what it is, and what became of it."""

import contextlib
import json
import os
import shutil
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from atoll.burst.providers import machine
from atoll.burst.providers.processes import end_by_force, is_alive, signal_all, writers
from atoll.ports.provider import Phase, Sighting

PROVIDER_PREFIX: Final = "process-"
KEPT_LOG_BYTES: Final = 64 << 10
FORCE_AFTER_S: Final = 10.0
"""After its grace, a keeper that was told to end is ended by force."""


class Folder:
    """One instance. Everything here blocks on the disk, and raises OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def exists(self) -> bool:
        """Whether it was created."""
        return (self.path / "order.json").exists()

    @property
    def gone(self) -> bool:
        """Whether its end is confirmed."""
        return self._has("gone")

    @property
    def data(self) -> Path:
        """Of its agent."""
        return self.path / "data"

    def order(self) -> dict[str, Any]:
        """What was ordered."""
        read: dict[str, Any] = json.loads((self.path / "order.json").read_text())
        return read

    def create(self, order: Mapping[str, Any], files: Mapping[str, str]) -> None:
        """From the last line on it exists; of several at once, one order is kept."""
        self.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, text in files.items():
            write_private(self.path / name, text)
        create_once(self.path / "order.json", json.dumps(order))

    def start(self, env: dict[str, str], *, within_s: float) -> None:
        """Let it be kept, unless it is, or was ended."""
        if not self._has("ended"):
            machine.start(self.path, env, within_s=within_s)

    def sighting(self) -> Sighting:
        """How it is; one that has ended is confirmed here."""
        order, phase = self.order(), self.phase()
        return Sighting(
            token=self.path.name,
            provider_id=f"{PROVIDER_PREFIX}{self.path.name}",
            phase=phase,
            zone=order["zone"],
            instance_type=order["instance_type"],
            created_at=order["created_at"],
            interrupted_at=float(self._text("interrupted") or 0.0),
            message=self._text("ended").partition(" ")[2],
        )

    def phase(self) -> Phase:
        """Where it is. GONE only when none of its processes lives."""
        if self.gone:
            return Phase.GONE
        if not self._has("ended"):
            keeper = self._text("pid")
            if not keeper or is_alive(keeper):
                return Phase.RUNNING if self._has("up") else Phase.PENDING
            why = "taken back" if self._has("interrupted") else "its processes died"
            create_once(self.path / "ended", f"0 {why}")
        return Phase.GONE if self._is_gone() else Phase.ENDING

    def end(self, now_s: float, *, grace_s: float) -> None:
        """Tell it to end; by force when it was told long ago. `now_s`: since the boot."""
        create_once(self.path / "ended", f"{now_s} told to end")
        keeper = self._text("pid")
        if not is_alive(keeper):
            return
        pid = int(keeper.partition(" ")[0])
        told_at = float(self._text("ended").partition(" ")[0])
        if now_s > told_at + grace_s + FORCE_AFTER_S:
            end_by_force(pid)
        else:
            signal_all([pid], signal.SIGTERM)

    def ended_at(self) -> float:
        """Unix seconds at which its end was confirmed; it is gone."""
        return (self.path / "gone").stat().st_mtime

    def remove(self) -> None:
        """Forget that it was."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _is_gone(self) -> bool:
        """Under the keeper's own lock: one that comes later finds `ended`, and leaves."""
        lock = machine.hold(self.path)
        if lock is None:
            return False
        try:
            left = writers(self.path)
            signal_all(left, signal.SIGKILL)
            if not left:
                self._bury()
            return not left
        finally:
            os.close(lock)

    def _bury(self) -> None:
        """Keep that it was, and the end of its log."""
        shutil.rmtree(self.data, ignore_errors=True)
        for name in ("agent.yaml", "machine.json"):
            (self.path / name).unlink(missing_ok=True)
        log = self.path / "agent.log"
        if log.exists() and log.stat().st_size > KEPT_LOG_BYTES:
            log.write_bytes(log.read_bytes()[-KEPT_LOG_BYTES:])
        create_once(self.path / "gone", "")

    def _has(self, name: str) -> bool:
        return (self.path / name).exists()

    def _text(self, name: str) -> str:
        try:
            return (self.path / name).read_text()
        except FileNotFoundError:
            return ""


def write_private(path: Path, text: str) -> None:
    """Put a file there, whole, that only its owner can read."""
    draft = _draft(path, text)
    draft.replace(path)


def create_once(path: Path, text: str) -> None:
    """Put a file there, whole and durable, unless there is one."""
    draft = _draft(path, text)
    with contextlib.suppress(FileExistsError):
        os.link(draft, path)
    draft.unlink()
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def _draft(path: Path, text: str) -> Path:
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:  # noqa: PTH123
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return draft
