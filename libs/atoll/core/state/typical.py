"""The typical tasks of a workload: what fragmentation is measured against.

They are learnt from what waits and what runs, and only anew once much of that
has changed: every change of the table makes all scores stale.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.ids import AttemptId
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.resources import ANY_KIND, BLOCKS_PER_DEVICE, DeviceRequest, TaskShape
from atoll.core.state.columns import Models
from atoll.core.state.job_queue import JobClass
from atoll.core.state.ledger import Holding
from atoll.core.state.node_table import NodeTable

COVERED: Final = 0.95
"""Of all tasks; the rarer ones count for no fragment."""
MOST_TASKS: Final = 1024
"""Rarer ones are left out altogether."""
MOST_RUNNING: Final = 4096
"""Attempts that are looked at, spread over all that run."""

Alternatives = tuple[TaskShape, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Typical:
    """T typical tasks, the most frequent first, over K device kinds."""

    cpu: NDArray[np.int64]
    """(T) milli-CPU."""
    devices: NDArray[np.int64]
    """(T) devices that a task takes, 0 for none."""
    blocks: NDArray[np.int64]
    """(T, K) blocks that it takes of each; 0 where it cannot use the kind."""
    number: NDArray[np.int64]
    """(T) how many there are."""
    covering: int
    """So many of the first rows are COVERED of all tasks."""
    cpu_scarcity: float
    """CPU that is asked for per device, by CPU that there is per device; 0 without devices."""


class _Need(NamedTuple):
    cpu: int
    devices: int
    blocks: tuple[int, ...]


class Workload:
    """Knows a world's typical tasks."""

    def __init__(self) -> None:
        self._given: tuple[tuple[Alternatives, int], ...] | None = None
        self._table: Typical | None = None
        self._learnt_from = 0
        self._arrived = 0
        self._kinds = 0

    def give(self, tasks: Iterable[tuple[Alternatives, int]]) -> None:
        """Take these (shape with its alternatives, how many) for typical, and learn no more."""
        self._given, self._table = tuple(tasks), None

    def note(self, arrived: int) -> None:
        """Jobs came or attempts began."""
        self._arrived += arrived

    def table(
        self,
        classes: Mapping[int, JobClass],
        holdings: Mapping[AttemptId, Holding],
        nodes: NodeTable,
    ) -> Typical:
        """The typical tasks, as learnt when last half of the workload had changed."""
        kinds = len(nodes.models.kinds)
        stale = self._given is None and self._arrived > self._learnt_from // 2
        if self._table is None or kinds != self._kinds or stale:
            found = self._count(classes, holdings, nodes)
            self._learnt_from, self._arrived, self._kinds = found.total(), 0, kinds
            self._table = _kept(self._table, _typical(found, nodes))
        return self._table

    def _count(
        self,
        classes: Mapping[int, JobClass],
        holdings: Mapping[AttemptId, Holding],
        nodes: NodeTable,
    ) -> Counter[_Need]:
        measure = _Measure(nodes)
        found: Counter[_Need] = Counter()
        if self._given is not None:
            for shapes, number in self._given:
                found[measure.asked(shapes)] += number
            return found
        for group in classes.values():
            for each in group.request.groups:
                found[measure.asked(each.shapes)] += group.live * each.count
        stride = max(1, len(holdings) // MOST_RUNNING)
        for holding in islice(holdings.values(), 0, None, stride):
            for task in holding.tasks:
                found[measure.held(task)] += stride
        return found


class _Measure:
    """Turns what is asked for or held into needs by device kind."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._models: Models = nodes.arrays()[0]
        self._number = nodes.models.kinds.number
        self._memory = np.zeros(len(nodes.models.kinds), np.int64)
        for kind, memory in zip(self._models.kind, self._models.memory, strict=True):
            if 0 <= kind < len(self._memory):
                self._memory[kind] = max(self._memory[kind], memory)

    def asked(self, shapes: Alternatives) -> _Need:
        """Alternatives of the first one's size are one task that can use several kinds."""
        first = shapes[0]
        count = first.device.count if first.device and not first.device.profile else 0
        alike = [s.device for s in shapes if s.device and s.cpu_milli == first.cpu_milli]
        parts = [self._blocks(device) for device in alike if device.count == count]
        blocks = tuple(max(part) for part in zip(*parts, strict=True)) if count else ()
        return _Need(first.cpu_milli, count, blocks)

    def held(self, task: TaskPlacement) -> _Need:
        """A running task is taken to need the kind that it has."""
        grants = [grant for grant in task.devices if grant.blocks]
        blocks = [0] * len(self._memory)
        row = self._nodes.row_of.get(task.node)
        if not grants or row is None:
            return _Need(task.cpu_milli, 0, ())
        kind = int(self._models.kind[self._nodes.nodes.model[row, grants[0].index]])
        if not 0 <= kind < len(blocks):
            return _Need(task.cpu_milli, 0, ())  # its device is not there any more
        blocks[kind] = grants[0].blocks
        return _Need(task.cpu_milli, len(grants), tuple(blocks))

    def _blocks(self, device: DeviceRequest) -> list[int]:
        wanted = self._number.get(device.kind, -1)
        sized = [self._of_kind(device, int(memory)) for memory in self._memory]
        anywhere = device.kind == ANY_KIND
        return [size if anywhere or kind == wanted else 0 for kind, size in enumerate(sized)]

    def _of_kind(self, device: DeviceRequest, memory: int) -> int:
        size = device.blocks
        if device.memory_bytes:
            size = -(-BLOCKS_PER_DEVICE * device.memory_bytes // memory) if memory else 0
        return size if 0 < size <= BLOCKS_PER_DEVICE else 0


def _typical(found: Counter[_Need], nodes: NodeTable) -> Typical:
    needs = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:MOST_TASKS]
    covered = accumulate(number for _, number in needs)
    blocks = np.zeros((len(needs), len(nodes.models.kinds)), np.int64)
    for row, (need, _) in enumerate(needs):
        blocks[row, : len(need.blocks)] = need.blocks
    short = sum(sum_ < COVERED * found.total() for sum_ in covered)
    cpu = np.array([need.cpu for need, _ in needs], np.int64)
    devices = np.array([need.devices for need, _ in needs], np.int64)
    number = np.array([number for _, number in needs], np.int64)
    asked = (number * devices * blocks.max(axis=1, initial=0)).sum() / BLOCKS_PER_DEVICE
    return Typical(
        cpu=cpu,
        devices=devices,
        blocks=blocks,
        number=number,
        covering=min(len(needs), short + 1),
        cpu_scarcity=_scarcity(float((number * cpu).sum()), float(asked), nodes),
    )


def _scarcity(cpu: float, devices: float, nodes: NodeTable) -> float:
    have = int((nodes.nodes.model > 0).sum())
    cpu_have = int(nodes.nodes.cpu_cap.sum())
    return round(cpu / devices * have / cpu_have, 2) if devices and cpu_have else 0.0


def _kept(old: Typical | None, new: Typical) -> Typical:
    """The old table when nothing has changed, so that what was made of it stays valid."""
    if old is None or old.cpu_scarcity != new.cpu_scarcity:
        return new
    pairs = zip(_columns(old), _columns(new), strict=True)
    return old if all(np.array_equal(a, b) for a, b in pairs) else new


def _columns(table: Typical) -> tuple[NDArray[np.int64], ...]:
    return table.cpu, table.devices, table.blocks, table.number
