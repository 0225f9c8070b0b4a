"""Capacity that work flows into: what is free of it, and what comes free when."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.timeline.expected_runs import ExpectedRuns
from atoll.core.engine.timeline.flow_kernels import BUCKETS, edge, fill
from atoll.core.state.columns import MODE_MIG
from atoll.core.state.snapshot import Snapshot

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
CPU_UNIT: Final = -1
"""In place of a device kind: milli-CPU; of devices it is blocks."""
HORIZON_S: Final = 86_400.0
_EDGES: Final = np.array([edge(number) for number in range(BUCKETS)])
_SLICES: Final = 0xFF
_SLICE: Final = 12.5
"""Blocks."""


def basin(free: float, after: Floats, amounts: Floats) -> Floats:
    """(BUCKETS) what is free now, and what comes free `after` so many seconds."""
    avail = np.zeros(BUCKETS)
    avail[0] = max(0.0, free)
    fill(avail, after, amounts)
    return avail


def volume(avail: Floats) -> float:
    """How much work fits within the horizon."""
    return float((avail * np.maximum(0.0, HORIZON_S - _EDGES)).sum())


@dataclass(slots=True)
class Units:
    """What nodes have, and tasks hold, of one unit at a time; worked out once each."""

    snapshot: Snapshot
    runs: ExpectedRuns
    _nodes: dict[int, tuple[Floats, Floats]] = field(default_factory=dict)
    _tasks: dict[int, Floats] = field(default_factory=dict)

    def of_nodes(self, unit: int) -> tuple[Floats, Floats]:
        """(N) capacity and (N) what is free now."""
        if unit not in self._nodes:
            self._nodes[unit] = self._of_nodes(unit)
        return self._nodes[unit]

    def basin(self, rows: Bools, unit: int) -> Floats:
        """What comes free on some nodes."""
        amounts = self._held(unit)
        tasks = np.flatnonzero(rows[self.runs.uses.row] & (amounts > 0))
        free = float(np.maximum(self.of_nodes(unit)[1][rows], 0).sum())
        return basin(free, self.runs.task_end[tasks] - self.snapshot.now, amounts[tasks])

    def _held(self, unit: int) -> Floats:
        if unit not in self._tasks:
            self._tasks[unit] = self._of_tasks(unit)
        return self._tasks[unit]

    def _of_nodes(self, unit: int) -> tuple[Floats, Floats]:
        nodes, models = self.snapshot.nodes, self.snapshot.hardware.models
        if unit == CPU_UNIT:
            return nodes.cpu_cap.astype(np.float64), nodes.cpu_free.astype(np.float64)
        here = models.kind[nodes.model] == unit
        sliced = here & (models.mode[nodes.model] == MODE_MIG)
        cap = np.where(sliced, 100.0, nodes.blocks_cap)
        free = np.where(sliced, 100.0, nodes.blocks_free) - _taken(nodes.slices)
        return (cap * here).sum(axis=1), (free * here).sum(axis=1)

    def _of_tasks(self, unit: int) -> Floats:
        uses = self.runs.uses
        if unit == CPU_UNIT:
            return uses.cpu.astype(np.float64)
        of_task = np.repeat(np.arange(len(uses.row)), np.diff(uses.first_grant))
        models = self.snapshot.hardware.models
        kind = models.kind[self.snapshot.nodes.model[uses.row[of_task], uses.device]]
        blocks = np.where(uses.bits > 0, _taken(uses.bits), uses.blocks)
        return np.bincount(of_task, blocks * (kind == unit), len(uses.row)).astype(np.float64)


def _taken(slices: NDArray[np.int16] | Ints) -> Floats:
    bits = slices.astype(np.int64) & _SLICES
    count = sum((bits >> at) & 1 for at in range(8))
    return np.asarray(count, np.float64) * _SLICE
