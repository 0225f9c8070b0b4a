"""A forecast as a chart of characters: what was, what may come, what there is."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from atoll.cli.moments import lasting
from atoll.client.burst_views import BurstDecisionInfo, ForecastInfo, QuantileInfo

HEIGHT: Final = 12
MARK_EVERY: Final = 16
"""Cells between two times of the axis."""
FEWEST_CELLS: Final = 24
EDGE: Final = 6
"""Characters for numbers at the left."""
ACTUAL, MEDIAN, INNER, OUTER, CAPACITY = "█", "━", "▓", "░", "┄"
STYLES: Final = {
    ACTUAL: "cyan", MEDIAN: "bold blue", INNER: "blue", OUTER: "blue", CAPACITY: "red",
    "▲": "green", "▼": "yellow",
}  # fmt: skip
"""Colours, for terminals that have them."""
MARKS: Final = {"rent": "▲", "drain": "▼"}
_TOLD: Final = {"▲": "rented", "▼": "drained"}


@dataclass(frozen=True, slots=True)
class Cells:
    """What every column of the chart stands for; past first, then what is to come."""

    step_s: float
    actual: tuple[float, ...]
    bands: tuple[tuple[QuantileInfo, QuantileInfo], ...]
    """Lowest and highest quantile, then the two with half of the chances between them."""
    median: tuple[float, ...]
    capacity: tuple[float, ...]

    @property
    def width(self) -> int:
        """Columns."""
        return len(self.actual) + max(len(self.median), len(self.capacity))

    @property
    def top(self) -> float:
        """The largest value that is to be seen."""
        outer = [value for _, high in self.bands for value in high.values]
        return max([*self.actual, *outer, *self.median, *self.capacity, 1.0])


def cells_of(series: ForecastInfo, columns: int) -> Cells:
    """The series in at most so many columns: the most of each, of the capacity the least."""
    ahead = max([len(series.capacity), *(len(each.values) for each in series.quantiles)])
    size = max(1, math.ceil((len(series.actual) + ahead) / max(1, columns - 1)))
    quantiles = [
        QuantileInfo(each.level, tuple(_joined(each.values, size, max)))
        for each in series.quantiles
    ]
    middle = min(quantiles, key=lambda each: abs(each.level - 0.5), default=None)
    return Cells(
        series.step_s * size,
        # From the end: the last column of the past ends now, as the first one of what comes begins.
        tuple(_joined(series.actual[::-1], size, max))[::-1],
        bands_of(quantiles),
        middle.values if middle else (),
        tuple(_joined(series.capacity, size, min)),
    )


def bands_of(quantiles: Sequence[QuantileInfo]) -> tuple[tuple[QuantileInfo, QuantileInfo], ...]:
    """The widest pair of quantiles, and the pair with about half of the chances between them."""
    half = len(quantiles) // 2
    pairs = list(zip(quantiles[:half], reversed(quantiles), strict=False))
    inner = min(pairs[1:], key=lambda pair: abs(pair[1].level - pair[0].level - 0.5), default=None)
    return (*pairs[:1], *([inner] if inner else []))


def _joined(
    values: Sequence[float], size: int, of: Callable[[Sequence[float]], float]
) -> Iterator[float]:
    return (of(values[n : n + size]) for n in range(0, len(values), size))


def chart(
    series: ForecastInfo, decisions: Iterable[BurstDecisionInfo], *, columns: int
) -> Iterator[str]:
    """Lines of the chart, its axis, and what is what; `columns` are those of the terminal."""
    cells = cells_of(series, max(FEWEST_CELLS, columns - EDGE - 1))
    top = _round_up(cells.top)
    for row in range(HEIGHT - 1, -1, -1):
        label = {HEIGHT - 1: f"{top:g}", HEIGHT // 2: f"{top / 2:g}", 0: "0"}.get(row, "")
        line = "".join(_cell(cells, column, row, top=top) for column in range(cells.width))
        yield f"{label:>{EDGE}} {_with_now(line, len(cells.actual))}".rstrip()
    marks = _marks(series, cells, decisions)
    if marks.strip():
        yield f"{'':>{EDGE}} {marks}".rstrip()
    yield f"{'':>{EDGE}} {_axis(series, cells)}"
    yield _legend(cells, marks)


def _cell(cells: Cells, column: int, row: int, *, top: float) -> str:
    past = len(cells.actual)
    if column < past:
        return ACTUAL if _rows(cells.actual[column], top) > row else " "
    at = column - past
    for mark, values in ((MEDIAN, cells.median), (CAPACITY, cells.capacity)):
        if at < len(values) and _row(values[at], top) == row:
            return mark
    for mark, (low, high) in reversed(list(zip((OUTER, INNER), cells.bands, strict=False))):
        if at < len(low.values) and _row(low.values[at], top) <= row <= _row(high.values[at], top):
            return mark
    return " "


def _rows(value: float, top: float) -> int:
    return min(HEIGHT, math.ceil(value / top * HEIGHT))


def _row(value: float, top: float) -> int:
    return max(0, _rows(value, top) - 1)


def _with_now(line: str, past: int) -> str:
    return f"{line[:past]}│{line[past:]}"


def _round_up(value: float) -> float:
    unit = 10.0 ** math.floor(math.log10(value))
    return next(unit * n for n in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if unit * n >= value)


def _marks(series: ForecastInfo, cells: Cells, decisions: Iterable[BurstDecisionInfo]) -> str:
    past = len(cells.actual)
    line = [" "] * (past + 1)
    for each in decisions:
        column = min(past, past - 1 - math.floor((series.now_at - each.at) / cells.step_s))
        if each.action in MARKS and each.kind in ("", series.kind) and column >= 0:
            line[column] = MARKS[each.action]
    return "".join(line)


def _axis(series: ForecastInfo, cells: Cells) -> str:
    start = series.now_at - len(cells.actual) * cells.step_s
    line = [" "] * (cells.width + MARK_EVERY + 1)
    for column in range(0, cells.width - 4, MARK_EVERY):
        at = datetime.fromtimestamp(start + column * cells.step_s, UTC)
        text = f"{at:%a %H:%M}"
        line[column : column + len(text)] = text
    return "".join(line).rstrip() + " UTC"


def _legend(cells: Cells, marks: str) -> str:
    parts = [f"{ACTUAL} in use or wanted"]
    if cells.median:
        parts.append(f"{MEDIAN} median")
    for mark, (low, high) in zip((OUTER, INNER), cells.bands, strict=False):
        parts.append(f"{mark} {100 * (high.level - low.level):.0f} % band")
    if cells.capacity:
        parts.append(f"{CAPACITY} there is without renting")
    parts += [f"{mark} {told}" for mark, told in _TOLD.items() if mark in marks]
    return ", ".join([*parts, f"a column: {lasting(cells.step_s)}"])
