"""What jobs took and wanted, as the series that forecasts are made of.

A forecast's hour lasts `step_s`: times are stretched to hours, so that the models need not know.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from atoll.burst.usecases.booked import Window, ahead
from atoll.burst.usecases.demand_table import Columns, sums_by_chain
from atoll.core.engine.burst.demand.compact import compacted
from atoll.core.engine.burst.demand.series import DAY, STEP_S, Demand, Floats, Jobs, Key

HISTORY_STEPS: Final = 28 * DAY
ALL: Final = ""
"""Queue of the series of all queues together."""


def sizes(columns: Columns) -> dict[Key, float]:
    """Devices of all jobs of each series: of a queue with those below it, and of all together."""
    found = sums_by_chain(columns, columns.floats("devices"))
    return {Key(queue, kind): size for (queue, kind), size in found.items() if kind}


def steps_of(columns: Columns, at: float, step_s: float) -> int:
    """Of history that there is at a time."""
    first = float(columns.floats("submitted").min(initial=at))
    return int(min(HISTORY_STEPS, max(0.0, at - first) // step_s + 1))


def demand_at(
    key: Key,
    columns: Columns,
    at: float,
    *,
    steps: int,
    step_s: float,
    windows: Sequence[Window] = (),
) -> Demand:
    """A series as it was known at a time, with so many steps of history."""
    mine = columns.where(columns.floats("submitted") <= at)
    begins, ends, amounts, starts = (
        mine.floats(name) for name in ("submitted", "ended", "devices", "started")
    )
    stretch = STEP_S / step_s
    over = (ends > 0) & (ends <= at)
    until = np.where(over, ends, at)
    ran = np.where(starts > 0, np.maximum(until - starts, 0.0), 0.0) * (starts <= at)
    jobs = compacted(Jobs(amounts, (at - begins) * stretch, ran * stretch, over))
    history = _history(
        begins, np.where(ends > 0, ends, np.inf), amounts, at=at, steps=steps, step_s=step_s
    )
    return Demand(key, at * stretch, history, jobs, ahead(windows, at, stretch=stretch))


def shares(columns: Columns, kind: str, *, now: float) -> dict[str, float]:
    """What part of the present demand for a kind each queue has, with those below it."""
    ended = columns.floats("ended")
    present = columns.floats("devices") * ((ended == 0) | (ended > now))
    sums = sums_by_chain(columns, present)
    wanted = {queue: size for (queue, each), size in sums.items() if each == kind}
    whole = wanted.get(ALL, 0.0)
    return {queue: amount / whole for queue, amount in wanted.items()} if whole else {}


def _history(
    begins: Floats, ends: Floats, amounts: Floats, *, at: float, steps: int, step_s: float
) -> Floats:
    """(steps) devices in use or asked for at `at` and at each step before it, the oldest first."""
    grid = at - step_s * np.arange(steps - 1, -1, -1)
    change = np.zeros(steps + 1)
    np.add.at(change, np.searchsorted(grid, begins, side="left"), amounts)
    np.add.at(change, np.searchsorted(grid, ends, side="left"), -amounts)
    # Sums of parts of devices leave crumbs.
    return np.maximum(np.round(np.cumsum(change[:-1]), 6), 0.0)
