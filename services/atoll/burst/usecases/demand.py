"""What jobs took and wanted, as the series that forecasts are made of.

A forecast's hour lasts `step_s`: times are stretched to hours, so that the models need not know.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from atoll.burst.usecases.booked import Window, ahead
from atoll.core.engine.burst.demand.series import DAY, STEP_S, Demand, Floats, Jobs, Key
from atoll.core.model.burst import chain_of
from atoll.core.model.ids import JobId, QueueName
from atoll.ports.store.burst import BurstStore, DemandRow

HISTORY_STEPS: Final = 28 * DAY
OVERLAP_S: Final = 120.0
"""Read again, for what was committed late."""
ALL: Final = ""
"""Queue of the series of all queues together."""


@dataclass(slots=True)
class DemandRows:
    """Jobs of the last weeks, read piece by piece."""

    step_s: float
    rows: dict[JobId, DemandRow] = field(default_factory=dict)
    _read_at: float = 0.0

    async def follow(self, store: BurstStore, *, now: float) -> None:
        """Read what has changed since the last time."""
        oldest = now - HISTORY_STEPS * self.step_s
        since = max(oldest, self._read_at - OVERLAP_S)
        found = {row.job: row for row in await store.demand(since=since)}
        kept = {n: row for n, row in self.rows.items() if row.ended_at > oldest}
        self.rows = {**kept, **found}
        self._read_at = now

    def by_key(self) -> dict[Key, list[DemandRow]]:
        """Of each kind of devices: of all queues together, and of each queue with those below."""
        found: dict[Key, list[DemandRow]] = {}
        for row in self.rows.values():
            if row.kind and row.devices > 0 and (row.started_at or not row.waits):
                for queue in chain_of(QueueName(row.queue)):
                    found.setdefault(Key(queue or ALL, row.kind), []).append(row)
        return found

    def steps(self, at: float) -> int:
        """Of history that there is at a time."""
        first = min((row.submitted_at for row in self.rows.values()), default=at)
        return int(min(HISTORY_STEPS, max(0.0, at - first) // self.step_s + 1))


def demand_at(
    key: Key,
    rows: Sequence[DemandRow],
    at: float,
    *,
    steps: int,
    step_s: float,
    windows: Sequence[Window] = (),
) -> Demand:
    """A series as it was known at a time, with so many steps of history."""
    mine = [row for row in rows if row.submitted_at <= at]
    begins, ends, amounts, starts = _columns(mine)
    stretch = STEP_S / step_s
    over = (ends > 0) & (ends <= at)
    until = np.where(over, ends, at)
    ran = np.where(starts > 0, np.maximum(until - starts, 0.0), 0.0) * (starts <= at)
    jobs = Jobs(amounts, (at - begins) * stretch, ran * stretch, over)
    history = _history(
        begins, np.where(ends > 0, ends, np.inf), amounts, at=at, steps=steps, step_s=step_s
    )
    return Demand(key, at * stretch, history, jobs, ahead(windows, at, stretch=stretch))


def shares(by_key: Mapping[Key, Sequence[DemandRow]], kind: str, *, now: float) -> dict[str, float]:
    """What part of the present demand for a kind each queue has, with those below it."""
    wanted = {
        key.queue: sum(row.devices for row in rows if not row.ended_at or row.ended_at > now)
        for key, rows in by_key.items()
        if key.kind == kind
    }
    whole = wanted.get(ALL, 0.0)
    return {queue: amount / whole for queue, amount in wanted.items()} if whole else {}


def _columns(rows: Iterable[DemandRow]) -> tuple[Floats, Floats, Floats, Floats]:
    """Submitted, ended, devices, started."""
    table = np.array(
        [(row.submitted_at, row.ended_at, row.devices, row.started_at) for row in rows],
        dtype=float,
    ).reshape(-1, 4)
    return table[:, 0], table[:, 1], table[:, 2], table[:, 3]


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
