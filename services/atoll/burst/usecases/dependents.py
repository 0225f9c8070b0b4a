"""Jobs that wait for others, or for a time, as demand ahead: from when, and for how long.

A job that runs is taken to end as jobs of its queue usually do; one that has run for longer goes
on for half as long again. Nobody waits for ever: time limits bound all of it.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import numpy as np

from atoll.burst.usecases.booked import CPU, Window, Windows
from atoll.burst.usecases.demand_table import Columns
from atoll.core.engine.burst.demand.series import Key
from atoll.core.model.burst import chain_of
from atoll.core.model.ids import JobId, QueueName
from atoll.ports.store.demand import DemandRow

Rows = Mapping[JobId, DemandRow]
USUAL_S: Final = 3600.0
"""How long a job runs of which nothing is known."""
STRETCH: Final = 1.5
MOST_LINKS: Final = 8
"""Jobs that wait for one another, one after the other, as far as it is followed."""


def dependents(
    rows: Rows, usual: Mapping[QueueName, float], *, now: float, usual_kind: str = ""
) -> Windows:
    """What jobs will take that wait for others; those that are held by hand are left out.

    `rows` has them, and those that they wait for; `usual` tells seconds that jobs run, by queue.
    `usual_kind`: devices that those take who take any.
    """
    lengths = _Lengths(usual)
    found: dict[Key, list[Window]] = defaultdict(list)
    for row in rows.values():
        if not row.waits_at(now) or not (row.after or row.begin_at):
            continue
        kind, amount = taken_by(row, usual_kind)
        start = lengths.start_of(row, rows, now=now, links=MOST_LINKS)
        window = Window(amount, start, start + lengths.of(row))
        for queue in chain_of(row.queue) if kind and amount > 0 else ():
            found[Key(queue or "", kind)].append(window)
    return {key: tuple(windows) for key, windows in found.items()}


def taken_by(row: DemandRow, usual_kind: str) -> tuple[str, float]:
    """Kind and amount: devices, or the processors of a job that takes none."""
    if not row.devices:
        return CPU, row.cores
    return row.kind or usual_kind, row.devices


def usual_lengths(columns: Columns) -> dict[QueueName, float]:
    """The middle time that jobs ran which are over, in seconds, by queue."""
    starts, ends = columns.floats("started"), columns.floats("ended")
    ran = columns.where((starts > 0) & (ends > 0))
    lengths, queues = ran.floats("ended") - ran.floats("started"), ran.ints("queue")
    return {
        QueueName(columns.queues[number]): float(np.median(lengths[queues == number]))
        for number in np.unique(queues).tolist()
    }


def together(one: Windows, other: Windows) -> Windows:
    """Windows of both."""
    return {key: (*one.get(key, ()), *other.get(key, ())) for key in {**one, **other}}


class _Lengths:
    """How long jobs usually run, by queue."""

    def __init__(self, usual: Mapping[QueueName, float]) -> None:
        self._usual = usual

    def of(self, row: DemandRow) -> float:
        """Seconds from the start of a job to its end."""
        return min(self._usual.get(row.queue, USUAL_S), row.limit_s or float("inf"))

    def start_of(self, row: DemandRow, rows: Rows, *, now: float, links: int) -> float:
        """When a job starts that waits: never before its time, nor before others have ended."""
        ends = (self._end_of(rows[job], rows, now=now, links=links) for job in _known(row, rows))
        return max(now, row.begin_at, *ends)

    def _end_of(self, row: DemandRow, rows: Rows, *, now: float, links: int) -> float:
        if row.ended_at:
            return row.ended_at
        if row.started_at:
            ran_s = now - row.started_at
            lasts_s = max(self.of(row), STRETCH * ran_s)
            return row.started_at + min(lasts_s, row.limit_s or lasts_s)
        if not links:
            return now
        return self.start_of(row, rows, now=now, links=links - 1) + self.of(row)


def _known(row: DemandRow, rows: Rows) -> list[JobId]:
    """Those that it waits for, but for what ended long ago."""
    return [job for job in row.after if job in rows]
