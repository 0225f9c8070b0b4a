"""Reads windows of spot availability (Can't Be Late, NSDI'24): one JSON object per line.

Keys: zone, window (a number), gap_s (seconds of a tick), unavailable (a string with a 0 for each
tick in which spot is to be had and a 1 for each in which it is not). The file may be gzipped.
"""

import gzip
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from atoll.core.model.errors import FieldViolation, InvalidInput

_LETTERS: Final = frozenset("01")


@dataclass(frozen=True, slots=True)
class SpotWindow:
    """What a zone had from some time on."""

    zone: str
    window: int
    tick_s: float
    up: tuple[bool, ...]
    """By tick."""


def read_windows(path: Path) -> list[SpotWindow]:
    """The windows in the order of the file; InvalidInput names the line that is wrong."""
    try:
        windows = list(_windows(path))
    except (OSError, EOFError) as error:
        raise _wrong(path, str(error)) from error
    if not windows:
        raise _wrong(path, "there is no window in it")
    return windows


def by_window(windows: Sequence[SpotWindow]) -> list[tuple[SpotWindow, ...]]:
    """Windows of one number together, by number and zone: their ticks are at the same times."""
    ordered = sorted(windows, key=lambda each: (each.window, each.zone))
    groups = [tuple(group) for _, group in groupby(ordered, key=lambda each: each.window)]
    for group in groups:
        _check_group(group)
    return groups


def _check_group(group: tuple[SpotWindow, ...]) -> None:
    number = group[0].window
    if len({each.zone for each in group}) < len(group):
        raise _violation(f"window {number} has a zone twice")
    if len({(each.tick_s, len(each.up)) for each in group}) > 1:
        raise _violation(f"the zones of window {number} differ in their ticks")


def _windows(path: Path) -> Iterator[SpotWindow]:
    with _opened(path) as file:
        for line, text in enumerate(file, 1):
            try:
                yield _window(json.loads(text))
            except (KeyError, TypeError, ValueError) as error:
                raise _wrong(path, f"line {line}: {error}") from error


def _window(row: dict[str, Any]) -> SpotWindow:
    text, tick_s = row["unavailable"], float(row["gap_s"])
    if not text or not _LETTERS.issuperset(text):
        raise ValueError("unavailable has to be a string of 0 and 1")
    if not 0 < tick_s < 1e6:
        raise ValueError("gap_s has to be above 0")
    up = tuple(letter == "0" for letter in text)
    return SpotWindow(str(row["zone"]), int(row["window"]), tick_s, up)


def _opened(path: Path) -> io.TextIOBase:
    if path.suffix == ".gz":
        return io.TextIOWrapper(gzip.open(path), encoding="utf-8")
    return path.open(encoding="utf-8")


def _wrong(path: Path, why: str) -> InvalidInput:
    return _violation(f"{path.name}: {why}")


def _violation(why: str) -> InvalidInput:
    return InvalidInput((FieldViolation("windows", why),))
