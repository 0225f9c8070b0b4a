"""Removes the product's guards, one at a time, and asks whether the tests notice. `make mutants`.

Works on a copy of the tree. Tells what it does on stderr and prints a table; ends with 0 when every
mutant was caught, by a test that failed and not by a tree that does not run.
"""

import argparse
import enum
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.mutant_catalogue import MUTANTS, Edit, Mutant

ROOT: Final = Path(__file__).resolve().parents[1]
COPIED: Final = (
    "conftest.py",
    "libs",
    "migrations",
    "protos",
    "pyproject.toml",
    "services",
    "tests",
)
"""What the tests need; the environment is this one's."""
WITHIN_S: Final = 400.0
"""The tests of one mutant. pytest's own time-out fails a single test long before."""
FAILED_TEST: Final = re.compile(r"^FAILED (?:[^\s:]+::)?(.+?)(?: - .*)?$", flags=re.MULTILINE)


class Verdict(enum.StrEnum):
    """What became of a mutant."""

    CAUGHT = "caught"
    SURVIVED = "SURVIVED"
    BROKEN = "BROKEN"
    """The tests did not run to an end, or the catalogue is behind the code."""


@dataclass(frozen=True, slots=True)
class Result:
    """A mutant's fate."""

    mutant: Mutant
    verdict: Verdict
    detail: str
    """The test that failed, or what went wrong."""


def main() -> int:
    """Exit code: 0 when all were caught, 1 otherwise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="guards or descriptions that contain this")
    only = parser.parse_args().only
    chosen = [m for m in MUTANTS if only in m.guard or only in m.without]
    with copy_of(ROOT) as tree:
        print("all tests without any mutant", file=sys.stderr)
        code, said = pytest(tree, [test for mutant in chosen for test in mutant.tests])
        if code != 0:
            print(f"the tests fail by themselves:\n{said}", file=sys.stderr)
            return 1
        results = [tried(tree, mutant) for mutant in chosen]
    print(table(results))
    return 0 if chosen and all(r.verdict is Verdict.CAUGHT for r in results) else 1


def tried(tree: Path, mutant: Mutant) -> Result:
    """Run a mutant's tests on the mutated tree, which is as before afterwards."""
    print(f"{mutant.guard}: {mutant.without}", file=sys.stderr)
    try:
        with mutated(tree, mutant.edits):
            return judged(mutant, *pytest(tree, mutant.tests))
    except ValueError as stale:
        return Result(mutant, Verdict.BROKEN, str(stale))


def judged(mutant: Mutant, code: int, said: str) -> Result:
    """What pytest's exit code means: 1 is a test that failed, and only that is a catch."""
    match code:
        case 0:
            return Result(mutant, Verdict.SURVIVED, "")
        case 1 if found := FAILED_TEST.search(said):
            return Result(mutant, Verdict.CAUGHT, found[1])
        case _:
            last = said.strip().splitlines()[-1:] or [""]
            return Result(mutant, Verdict.BROKEN, f"pytest ended with {code}: {last[0]}")


def table(results: Sequence[Result]) -> str:
    """For people."""
    rows = [("GUARD", "WITHOUT IT", "VERDICT", "BY")]
    rows += [(r.mutant.guard, r.mutant.without, r.verdict.value, r.detail) for r in results]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    padded = ([cell.ljust(width) for cell, width in zip(row, widths, strict=False)] for row in rows)
    return "\n".join(
        "  ".join([*cells, row[3]]).rstrip() for cells, row in zip(padded, rows, strict=True)
    )


@contextmanager
def copy_of(root: Path) -> Iterator[Path]:
    """A throw-away copy, with the times of its files: compiled kernels stay valid."""
    with tempfile.TemporaryDirectory(prefix="atoll-mutants-") as folder:
        for name in COPIED:
            source, target = root / name, Path(folder) / name
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True)
            else:
                shutil.copy2(source, target)
        yield Path(folder)


@contextmanager
def mutated(tree: Path, edits: Sequence[Edit]) -> Iterator[None]:
    """The tree with the edits made; raises ValueError when a text is not there exactly once."""
    before = {tree / edit.path: (tree / edit.path).read_text() for edit in edits}
    times = {path: path.stat() for path in before}
    try:
        for edit in edits:
            path = tree / edit.path
            path.write_text(replaced(path.read_text(), edit))
        yield
    finally:
        for path, text in before.items():
            path.write_text(text)
            os.utime(path, ns=(times[path].st_atime_ns, times[path].st_mtime_ns))


def replaced(text: str, edit: Edit) -> str:
    """The text of a file after an edit; raises ValueError when it does not fit."""
    if (count := text.count(edit.old)) != 1:
        raise ValueError(f"{edit.path} has {count} places like {edit.old.strip()[:60]!r}")
    return text.replace(edit.old, edit.new)


def pytest(tree: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Exit code and output of the tests, of the copied tree alone."""
    roots = os.pathsep.join(str(tree / name) for name in ("libs", "services"))
    environment = {**os.environ, "PYTHONPATH": roots, "PYTHONDONTWRITEBYTECODE": "1"}
    unique = list(dict.fromkeys(tests))
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *unique]
    try:
        done = subprocess.run(
            command,
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, f"not done after {WITHIN_S:.0f} s"
    return done.returncode, done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(main())
