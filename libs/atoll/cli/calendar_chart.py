"""The calendar as a chart of characters."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from atoll.cli.moments import lasting, minute
from atoll.cli.words import plural
from atoll.client.booking_views import CalendarInfo, CalendarRow
from atoll.core.model.reservation import Occurrence

LEVELS: Final = " ▁▂▃▄▅▆▇█"
"""From nothing to all of a cluster's devices."""
MARK_EVERY: Final = 14
"""Cells between two times of the axis, at least."""
MOST_BOOKINGS: Final = 40
"""Lines of bookings; more are only counted."""
BEYOND: Final = ("◂", "▸")
"""A booking that goes on outside the chart."""


def chart(found: CalendarInfo) -> Iterator[str]:
    """Lines: what is booked and what is free by cluster and kind, then the bookings."""
    cells = len(found.rows[0].free) if found.rows else 0
    if not cells:
        yield "no cluster has anything to book"
        return
    names = [_row_name(row) for row in found.rows]
    titles = [each.name for each in found.occurrences[:MOST_BOOKINGS]]
    width = max(map(len, [*names, *titles, "BOOKING"]))
    pad = " " * (width + 10)
    yield pad + _axis(found, cells)
    for name, row in zip(names, found.rows, strict=True):
        yield f"{name:<{width}}  booked  {_bars(row.booked, row.total)}"
        yield f"{'':<{width}}  free    {_bars(row.free, row.total)}"
    yield f"full height: all of a row's devices; a cell: {lasting(found.step_s)}"
    if found.occurrences:
        yield ""
        yield f"{'BOOKING':<{width}}"
        yield from _bookings(found, cells, width)


def _row_name(row: CalendarRow) -> str:
    return f"{row.cluster} {row.kind or 'nodes'} ({row.total})"


def _axis(found: CalendarInfo, cells: int) -> str:
    line = [" "] * (cells + 16)
    day = ""
    for cell in range(0, cells, MARK_EVERY):
        at = datetime.fromtimestamp(found.from_at + cell * found.step_s, UTC)
        date = at.strftime("%a %d")
        text = at.strftime("%H:%M") if date == day else f"{date} {at:%H:%M}"[: MARK_EVERY - 1]
        day = date
        line[cell : cell + len(text)] = text
    return "".join(line).rstrip() + " UTC"


def _bars(values: Sequence[float], total: int) -> str:
    top = len(LEVELS) - 1
    return "".join(
        LEVELS[min(top, max(int(value > 0), round(top * value / max(total, 1))))]
        for value in values
    )


def _bookings(found: CalendarInfo, cells: int, width: int) -> Iterator[str]:
    for each in found.occurrences[:MOST_BOOKINGS]:
        line = _line(each, found, cells)
        yield f"{each.name:<{width}}          {line}  {_words(each)}"
    if (more := len(found.occurrences) - MOST_BOOKINGS) > 0:
        yield f"and {more} more; --until or --cluster shows fewer"


def _line(each: Occurrence, found: CalendarInfo, cells: int) -> str:
    first = int((each.start_at - found.from_at) // found.step_s)
    last = int((each.end_at - found.from_at - 1) // found.step_s)
    line = ["━" if first <= cell <= last else "·" for cell in range(cells)]
    if first < 0:
        line[0] = BEYOND[0]
    if last >= cells:
        line[-1] = BEYOND[1]
    return "".join(line)


def _words(each: Occurrence) -> str:
    nodes = sum(len(part.shares) for part in each.parts)
    where = ", ".join(part.cluster for part in each.parts)
    return f"{minute(each.start_at)}, {plural(nodes, 'node')} of {where or '-'}"


def width_for(columns: int, names: Iterable[str]) -> int:
    """Cells that a terminal of so many columns has room for beside the names; 24 at least."""
    return max(24, columns - max(map(len, names), default=0) - 12)
