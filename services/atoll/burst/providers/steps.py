"""Numbers that change over time: a price, or how many machines a zone has.

Written as a number, as [[second, number], ...], or as the name of a file of a spot trace:
`*.jsonl[.gz]` with one window a line (zone, window, gap_s, unavailable: 0 and 1 by tick),
or `*.csv` with `milliseconds,add|remove,node` or `seconds,number`.
"""

import csv
import gzip
import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

PLENTY: Final = 1_000_000.0
"""Of a zone of which a trace tells only that there are machines."""


@dataclass(frozen=True, slots=True)
class Steps:
    """A number from each of `times` on, in ascending seconds; the first one holds before, too."""

    times: tuple[float, ...]
    values: tuple[float, ...]

    def at(self, time: float) -> float:
        """The number at a time."""
        return self.values[max(0, bisect_right(self.times, time) - 1)]

    def within(self, after: float, until: float) -> Iterator[tuple[float, float]]:
        """(time, number) of the changes in after < time <= until."""
        begin, end = bisect_right(self.times, after), bisect_right(self.times, until)
        return zip(self.times[begin:end], self.values[begin:end], strict=True)


def steps(given: object, *, zone: str = "", window: int | None = None) -> Steps:
    """What was written; raises ValueError. `zone` and `window` choose within a file of windows."""
    match given:
        case bool():
            raise ValueError(f"{given} is no number")
        case int() | float():
            return Steps((0.0,), (float(given),))
        case str() | Path():
            return _read(Path(given), zone, window)
        case list() | tuple():
            return _steps((float(time), float(value)) for time, value in given)
        case _:
            raise ValueError(f"{given!r} is neither a number, nor a list of steps, nor a file")


def _read(path: Path, zone: str, window: int | None) -> Steps:
    try:
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: {error}") from error
    lines = text.decode().splitlines()
    if ".jsonl" in path.suffixes:
        return _of_window(map(json.loads, lines), zone, window)
    rows = [row for row in csv.reader(lines) if row]
    if rows and len(rows[0]) == 3:
        return _of_events(rows)
    return _steps((float(time), float(value)) for time, value in rows)


def _of_window(rows: Iterable[dict[str, Any]], zone: str, window: int | None) -> Steps:
    for row in rows:
        if (not zone or row["zone"] == zone) and window in (None, row["window"]):
            gap, ticks = float(row["gap_s"]), row["unavailable"]
            return _steps((n * gap, 0.0 if t == "1" else PLENTY) for n, t in enumerate(ticks))
    raise ValueError(f"there is no window {window} of zone {zone!r} in the file")


def _of_events(rows: Iterable[list[str]]) -> Steps:
    nodes: set[str] = set()
    by_time: dict[float, float] = {}
    for time, what, node in rows:
        (nodes.add if what == "add" else nodes.discard)(node)
        by_time[float(time) / 1000] = float(len(nodes))
    return _steps(by_time.items())


def _steps(pairs: Iterable[tuple[float, float]]) -> Steps:
    """Without the pairs that change nothing."""
    times: list[float] = []
    values: list[float] = []
    for time, value in sorted(pairs):
        if not values or value != values[-1]:
            times.append(time)
            values.append(value)
    if not times:
        raise ValueError("there are no steps")
    return Steps(tuple(times), tuple(values))
