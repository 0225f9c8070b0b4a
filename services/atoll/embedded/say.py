"""Words for a person: plain lines, as they are."""

import json
import sys
from collections.abc import Iterator
from typing import Any, Final, TextIO

from rich.console import Console

LAST_OF_TRACEBACK: Final = 4


def say(line: str, *, to: TextIO | None = None) -> None:
    """Write a line to stdout, or elsewhere."""
    (to or sys.stdout).write(f"{line}\n")
    (to or sys.stdout).flush()


def stderr() -> Console:
    """Where progress goes."""
    return Console(stderr=True, highlight=False)


def readable(tail: str) -> str:
    """The end of a log with its JSON lines as a person would write them, tracebacks cut short."""
    return "\n".join(text for line in tail.splitlines() for text in _lines(line))


def _lines(line: str) -> Iterator[str]:
    entry = _entry(line)
    if entry is None:
        yield line
        return
    begin = [str(entry.pop(key, "")) for key in ("timestamp", "level", "event")]
    trace = str(entry.pop("exception", "")).splitlines()
    rest = (f"{key}={told}" for key, told in entry.items() if key not in {"logger", "service"})
    yield " ".join(filter(None, (*begin, *rest)))
    yield from (f"    {text}" for text in trace[-LAST_OF_TRACEBACK:])


def _entry(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and "event" in entry else None
