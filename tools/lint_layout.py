"""Checks what no linter knows: packages are where the layout puts them, files stay short."""

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMESPACES = (ROOT / "libs" / "atoll", ROOT / "services" / "atoll")
GENERATED = ROOT / "libs" / "atoll" / "api"
SOURCES = ("libs", "services", "tests", "tools", "migrations")
MOST_LINES = 300


def main() -> int:
    """Prints every fault of the tree; 1 when there is one."""
    faults = [*closed_namespaces(), *packages_without_init(), *long_files()]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


def closed_namespaces() -> Iterator[str]:
    """An __init__.py in `atoll` itself would hide the other source root."""
    for namespace in NAMESPACES:
        if (namespace / "__init__.py").exists():
            yield f"{shown(namespace)}/__init__.py: two roots share this namespace; remove it"


def packages_without_init() -> Iterator[str]:
    """Import contracts see only real packages, so every folder with code must be one."""
    for namespace in NAMESPACES:
        for folder in sorted({path.parent for path in namespace.rglob("*.py")} - {namespace}):
            if not (folder / "__init__.py").exists():
                yield f"{shown(folder)}: a package needs an __init__.py with a docstring"


def long_files() -> Iterator[str]:
    """Files that have to be split."""
    for path in sorted(path for root in SOURCES for path in (ROOT / root).rglob("*.py")):
        lines = len(path.read_text().splitlines())
        if lines >= MOST_LINES and not path.is_relative_to(GENERATED):
            yield f"{shown(path)}: {lines} lines; keep files under {MOST_LINES}"


def shown(path: Path) -> str:
    """The path as a person would type it from the root of the repository."""
    return path.relative_to(ROOT).as_posix()


if __name__ == "__main__":
    sys.exit(main())
