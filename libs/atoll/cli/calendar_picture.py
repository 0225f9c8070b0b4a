"""The calendar as a picture."""

from pathlib import Path
from typing import Any, Final

from atoll.cli.pictures import clock_axis, plots, saved, time_of
from atoll.client.booking_views import CalendarInfo, CalendarRow
from atoll.core.model.reservation import Occurrence

ROW_IN: Final = 1.1
BOOKING_IN: Final = 0.26
BOOKED, RUNNING, FREE, BAR = "#8fbbe0", "#e07b00", "#1b1f24", "#2c7d4f"
MOST_ROWS: Final = 12
MOST_BOOKINGS: Final = 40


def draw(found: CalendarInfo, path: Path) -> None:
    """Write a PNG: booked, running and free devices over time, and the bookings below."""
    rows, bookings = found.rows[:MOST_ROWS], found.occurrences[:MOST_BOOKINGS]
    heights = [*(ROW_IN for _ in rows), max(ROW_IN, BOOKING_IN * len(bookings))]
    figure, axes = plots(heights)
    for row, axis in zip(rows, axes, strict=False):
        _levels(axis, row, found)
    _bars(axes[-1], bookings, found)
    clock_axis(axes[-1])
    if rows:
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=3)
    saved(figure, path)


def _levels(axis: Any, row: CalendarRow, found: CalendarInfo) -> None:
    times = [time_of(found.from_at + n * found.step_s) for n in range(len(row.booked) + 1)]
    booked, running, free = (
        [*values, values[-1]] for values in (row.booked, row.running, row.free)
    )
    axis.fill_between(times, booked, step="post", color=BOOKED, label="booked")
    axis.step(times, running, where="post", color=RUNNING, label="running, until asked for")
    axis.step(times, free, where="post", color=FREE, label="can be booked")
    axis.set_ylim(0, 1.08 * max(row.total, 1))
    axis.yaxis.get_major_locator().set_params(integer=True)
    axis.set_title(f"{row.cluster}, {row.kind or 'nodes'} ({row.total})", loc="left", fontsize=9)
    axis.spines[["top", "right"]].set_visible(False)


def _bars(axis: Any, bookings: tuple[Occurrence, ...], found: CalendarInfo) -> None:
    cells = len(found.rows[0].free) if found.rows else 1
    first, last = found.from_at, found.from_at + cells * found.step_s
    for number, each in enumerate(bookings):
        start, end = max(each.start_at, first), min(each.end_at, last)
        axis.barh(number, (end - start) / 86_400, left=time_of(start), height=0.7, color=BAR)
    axis.set_yticks(range(len(bookings)), [each.name for each in bookings], fontsize=8)
    axis.set_ylim(len(bookings) - 0.4, -0.6)
    axis.set_xlim(time_of(first), time_of(last))
    axis.set_title("bookings" if bookings else "no bookings", loc="left", fontsize=9)
    axis.spines[["top", "right"]].set_visible(False)
