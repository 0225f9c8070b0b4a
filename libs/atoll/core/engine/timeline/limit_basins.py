"""Limits of queues as basins: what their own runs give back, jobs below them take in turn."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.limits import binding
from atoll.core.engine.timeline.basins import basin
from atoll.core.engine.timeline.expected_runs import ExpectedRuns
from atoll.core.model.ids import QueueName
from atoll.core.state.limits import ALL_KINDS, ancestry
from atoll.core.state.ragged import spans
from atoll.core.state.snapshot import Snapshot

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
MOST: Final = 64
"""Limits that are looked at: those that leave the least for what is queued."""


@dataclass(frozen=True, slots=True, eq=False)
class LimitBasin:
    """A limit that binds some of C classes. Amounts are 1/56 blocks."""

    queue: QueueName
    avail: Floats
    """(BUCKETS) as in basins."""
    bound: Bools
    """(C)."""
    need: Floats
    """(C) of one job."""

    @property
    def reached(self) -> Bools:
        """(C) it leaves too little for a job of the class just now."""
        reached: Bools = self.bound & (self.need > self.avail[0])
        return reached


def limit_basins(snapshot: Snapshot, runs: ExpectedRuns, total: Ints) -> list[LimitBasin]:
    """Limits that do not leave enough for all that is queued below them. `total`: (C) jobs."""
    limits, views = snapshot.limits, snapshot.queue.classes
    if not len(limits.limit):
        return []
    bound = np.zeros((len(limits.limit), len(views)), np.bool_)
    for at, view in enumerate(views):
        bound[list(binding(view, snapshot)), at] = True
    need = np.array([sum(u for _, u in view.need.devices) for view in views], np.float64)
    wanted = (bound * need * total).sum(axis=1)
    short = wanted - (limits.limit - limits.used)
    chosen = np.argsort(-short, kind="stable")[:MOST]
    return [
        LimitBasin(
            limits.queues[number],
            _basin(snapshot, runs, number),
            bound[number],
            need,
        )
        for number in chosen.tolist()
        if short[number] > 0
    ]


def _basin(snapshot: Snapshot, runs: ExpectedRuns, number: int) -> Floats:
    limits, running = snapshot.limits, snapshot.running
    below = np.array([_is_below(q, limits.queues[number]) for q in running.queues.values], np.bool_)
    mine = np.flatnonzero(below[running.runs.queue[runs.slots]])
    units = _units(snapshot, runs, mine, kind=int(limits.kind[number]))
    free = float(limits.limit[number] - limits.used[number])
    return basin(free, runs.ends[mine] - snapshot.now, units)


def _units(snapshot: Snapshot, runs: ExpectedRuns, mine: Ints, *, kind: int) -> Floats:
    tasks, uses = snapshot.running.tasks, runs.uses
    slots = runs.slots[mine]
    each = spans(tasks.first_task, slots)
    grants = spans(tasks.first_grant, each)
    units = tasks.units[grants].astype(np.float64)
    own_tasks = spans(uses.first_task, mine)
    counts = np.diff(uses.first_grant)[own_tasks]
    if kind != ALL_KINDS:
        models = snapshot.hardware.models
        row = np.repeat(uses.row[own_tasks], counts)
        units *= models.kind[snapshot.nodes.model[row, tasks.device[grants]]] == kind
    of_task = np.repeat(np.arange(len(mine)), np.diff(uses.first_task)[mine])
    return np.bincount(np.repeat(of_task, counts), units, len(mine)).astype(np.float64)


def _is_below(queue: QueueName, above: QueueName) -> bool:
    return above in ancestry(queue)
