"""The scheduler's compiled kernels: made with the image, and found again by any user.

The image may be read-only, its user unknown beforehand, and its machine another one than that
which built it. But the cache must be writable, and code is found again only for the same processor.
So kernels are compiled for a processor of many years ago, and every start copies them (a few
megabytes) to a private folder.
"""

import argparse
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CPUINFO: Final = Path("/proc/cpuinfo")
COMPILED: Final = "*.nbc"
HERE: Final = Path(sys.prefix) / "kernels"


@dataclass(frozen=True, slots=True)
class Target:
    """A processor to compile for, and the flags by which Linux shows that it has them all."""

    name: str
    flags: frozenset[str] = frozenset()

    def variables(self) -> dict[str, str]:
        """What tells numba. Without features of its own it would add those of this machine."""
        return {"NUMBA_CPU_NAME": self.name, "NUMBA_CPU_FEATURES": ""}


TARGETS: Final = {
    "x86_64": Target(
        "x86-64-v3", frozenset({"abm", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"})
    ),
}
ANY: Final = Target("generic")


def main(arguments: Sequence[str]) -> int:
    """Fill the image's cache; with --check tell what is missing from it, 1 when something is."""
    parser = argparse.ArgumentParser(prog="kernels", description=main.__doc__)
    parser.add_argument("--check", action="store_true", help="compile nothing into the image")
    return check() if parser.parse_args(arguments).check else compile_all()


def compile_all() -> int:
    """Compile every kernel into the image."""
    os.environ.update({"NUMBA_CACHE_DIR": str(HERE)} | target().variables())
    count = _warm(HERE)
    _say(f"{count} kernels compiled for {target().name}")
    return 0


def check() -> int:
    """Start as placement does; 1 when it would have to compile."""
    os.environ.update(environment())
    folder = Path(os.environ.get("NUMBA_CACHE_DIR", HERE))
    found = len(_compiled(folder))
    added = _warm(folder) - found
    _say(f"{found} kernels found for {target().name}, {added} compiled now")
    return 1 if added or not found else 0


def environment(image: Path = HERE, *, cpuinfo: Path = CPUINFO) -> dict[str, str]:
    """Variables for a process that runs kernels; none outside an image, or when numba is told."""
    if not image.is_dir() or "NUMBA_CACHE_DIR" in os.environ:
        return {}
    folder = {"NUMBA_CACHE_DIR": str(_private_copy(image))}
    # An older processor than the image's compiles for itself, before it stands for election.
    return folder | target().variables() if suits(target(), cpuinfo) else folder


def target() -> Target:
    """What is compiled for on a machine of this kind."""
    return TARGETS.get(platform.machine(), ANY)


def suits(wanted: Target, cpuinfo: Path = CPUINFO) -> bool:
    """Whether this machine runs what was compiled for `wanted`."""
    if not wanted.flags:
        return True
    for line in cpuinfo.read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "flags":
            return wanted.flags <= set(value.split())
    return False


def _private_copy(image: Path) -> Path:
    # Cached code is trusted by whoever loads it: nobody else may write it.
    folder = Path(tempfile.gettempdir()) / f"atoll-kernels-{os.getuid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    shutil.copytree(image, folder, dirs_exist_ok=True, copy_function=shutil.copyfile)
    folder.chmod(0o700)
    for inner in folder.iterdir():
        inner.chmod(0o700)
    return folder


def _warm(folder: Path) -> int:
    from atoll.core.engine.kernels import warm

    warm()
    return len(_compiled(folder))


def _compiled(folder: Path) -> list[Path]:
    return sorted(folder.rglob(COMPILED))


def _say(text: str) -> None:
    print(text)  # noqa: T201 - what was asked for
