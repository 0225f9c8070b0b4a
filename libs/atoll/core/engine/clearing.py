"""Clears nodes for a gang of a queue that holds far less than it deserves.

When what runs ends is not known, there is no start to be promised, and a gang for
many whole nodes would wait for ever while small jobs take whatever comes free. So
the nodes that are nearest to being free take nothing else until the gang fits. One
gang at a time, and only for a small part of a pool: what it leaves idle is little.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.masks import Masks
from atoll.core.engine.room_kernels import count_room
from atoll.core.engine.score_kernels import Scoring
from atoll.core.model.ids import JobId
from atoll.core.policies.interfaces import Patience
from atoll.core.state.columns import Nodes, scratch_copy
from atoll.core.state.shares import DEVICES
from atoll.core.state.snapshot import ClassView, Snapshot

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
NOBODY: Final = -1
_CLOSED: Final = 1 << 50
"""Milli-CPU by which a cleared node is short."""


@dataclass(slots=True)
class Clearing:
    """Nodes that are cleared in one cycle. `nodes` are the cycle's own."""

    snapshot: Snapshot
    nodes: Nodes
    scoring: Scoring
    patience: Patience
    jobs: list[JobId] = field(default_factory=list)
    """For whom."""
    group: int = NOBODY
    """The class of it, until it has its place."""
    rows: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def clear(self, group: int, job: int, masks: Masks) -> Ints:
        """Close nodes for the next job of a class that found no place, if it has a claim; which.

        `job`: its index in the snapshot's queue.
        """
        view = self.snapshot.queue.classes[group]
        if self.jobs or not self._has_claim(view, job):
            return self.rows
        found = [self._choose(view, masks.of(view), inside) for inside in self._domains(view)]
        chosen = [(busy, rows) for busy, rows in found if math.isfinite(busy)]
        if chosen:
            _, self.rows = min(chosen, key=lambda each: (each[0], each[1].tolist()))
            self.jobs.append(JobId(int(self.snapshot.queue.job[job])))
            self.nodes.cpu_free[self.rows] -= _CLOSED
            self.group = group
        return self.rows

    def open(self) -> None:
        """Let the cycle's nodes take work again."""
        self.nodes.cpu_free[self.rows] += _CLOSED

    def keep_from(self, view: ClassView, nodes: Nodes) -> None:
        """Let other nodes than the cycle's take nothing of another class where they are cleared."""
        if self.group != NOBODY and self.snapshot.queue.classes[self.group] is not view:
            nodes.cpu_free[self.rows] -= _CLOSED

    def settle(self, group: int) -> None:
        """A class has its place: what is cleared for it is kept from nobody any more."""
        if group == self.group:
            self.group = NOBODY

    def _has_claim(self, view: ClassView, job: int) -> bool:
        queue, shares = self.snapshot.queue, self.snapshot.shares
        waited = self.snapshot.now - float(queue.submitted_at[job])
        kind = next((number for number, _ in view.need.devices), -1)
        if waited < self.patience.after_s or not 0 <= kind < shares.deserved.shape[1]:
            return False
        if JobId(int(queue.job[job])) in self.snapshot.pace.promised:
            return False
        deserved = int(shares.deserved[view.vertex, kind])
        return int(shares.held[view.vertex, DEVICES + kind]) < self.patience.below * deserved

    def _domains(self, view: ClassView) -> Iterator[Bools]:
        topology = self.snapshot.nodes.cluster
        wanted = view.request.topology
        if wanted is not None and wanted.required:
            column = self.snapshot.level_column(wanted.level)
            if column is None:
                return
            topology = self.snapshot.nodes.domain[:, column]
        for number in np.unique(topology[topology >= 0]).tolist():
            yield topology == number

    def _choose(
        self, view: ClassView, masks: Mapping[int, Bools], inside: Bools
    ) -> tuple[float, Ints]:
        """(blocks in use on the rows, rows) of one domain; infinite when there are too few."""
        free = np.maximum(self.nodes.blocks_free, 0).sum(axis=1)
        busy = np.maximum(self.nodes.blocks_cap, 0).sum(axis=1) - free
        order = np.lexsort((np.arange(len(busy)), busy))
        left, taken = inside.copy(), []
        for shapes, group in zip(view.shapes, view.request.groups, strict=True):
            room = self._room(shapes[0], masks[shapes[0]] & left, most=group.min_count)
            able = order[room[order] > 0]
            total = np.cumsum(room[able])
            if not len(able) or total[-1] < group.min_count:
                return math.inf, self.rows
            rows = able[: int(np.searchsorted(total, group.min_count)) + 1]
            left[rows] = False
            taken.append(rows)
        rows = np.sort(np.concatenate(taken))
        if len(rows) > self.patience.part * inside.sum():
            return math.inf, self.rows
        return float(busy[rows].sum()), rows

    def _room(self, shape: int, allowed: Bools, *, most: int) -> Ints:
        """(N) tasks that a row would hold if nothing ran there."""
        empty = scratch_copy(self.nodes)
        for free, cap in (("cpu_free", "cpu_cap"), ("memory_free", "memory_cap")):
            getattr(empty, free)[:] = getattr(empty, cap)
        empty.blocks_free[:] = empty.blocks_cap
        empty.slices[:] = 0
        counts = np.zeros(len(allowed), np.int64)
        rows = np.flatnonzero(allowed)
        count_room(empty, self.scoring, shape, allowed, most, rows, counts)
        return counts
