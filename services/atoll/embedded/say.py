"""Words for a person: plain lines, as they are."""

import sys
from typing import TextIO

from rich.console import Console


def say(line: str, *, to: TextIO | None = None) -> None:
    """Write a line to stdout, or elsewhere."""
    (to or sys.stdout).write(f"{line}\n")
    (to or sys.stdout).flush()


def stderr() -> Console:
    """Where progress goes."""
    return Console(stderr=True, highlight=False)
