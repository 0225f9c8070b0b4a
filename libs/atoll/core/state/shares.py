"""What queues hold, deserve and have used: by vertex of the queue tree and by resource.

Everything below a vertex counts for it. Amounts are integers, brought up to
date as holdings come and go. Usage is what was held, over time, each moment
weighing half as much one half-life later.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.ids import AttemptId, QueueName
from atoll.core.model.job import Queue
from atoll.core.state.amounts import AmountTable
from atoll.core.state.columns import Models
from atoll.core.state.interning import Interner
from atoll.core.state.ledger import Holding
from atoll.core.state.ledger_kernels import Uses
from atoll.core.state.mig import UNITS_PER_BLOCK, grant_units
from atoll.core.state.queue_tree import ROOT, QueueTree, ancestry

CPU: Final = 0
"""Milli-CPU."""
MEMORY: Final = 1
"""Bytes."""
DEVICES: Final = 2
"""Column of device kind 0, the others behind it; in 1/56 block."""
HALF_LIFE_S: Final = 7 * 24 * 3600.0

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Shares:
    """The queue tree at one moment: V vertices (0 is the whole), R resources, K device kinds."""

    names: Sequence[QueueName]
    """By vertex; perhaps longer than V."""
    parent: Ints
    """(V) -1 for the root; a parent comes before its children."""
    weight: Floats
    """(V) its part of what siblings borrow."""
    deserved: Ints
    """(V, K) 1/56 block; where a parent says nothing, the sum of its children."""
    held: Ints
    """(V, R) by what is below each vertex."""
    usage: Floats
    """(V, R) amount times seconds, decayed until now."""
    capacity: Floats
    """(R) what is schedulable, less a mean of local use."""
    half_life_s: float

    def vertex(self, queue: QueueName) -> int:
        """The vertex of a queue, or of the nearest one above it that is there."""
        size = len(self.parent)
        known = {name: number for number, name in enumerate(self.names[:size])}
        return next((known[name] for name in ancestry(queue) if name in known), ROOT)


class ShareBook:
    """Shares that follow the holdings of a world."""

    def __init__(
        self, tree: QueueTree, kinds: Interner[str], half_life_s: float = HALF_LIFE_S
    ) -> None:
        self.tree = tree
        self.half_life_s = half_life_s
        self._kinds = kinds
        self._rows: dict[int, Queue] = {}
        self._amounts = AmountTable()
        self._held = np.zeros((1, DEVICES), np.int64)
        self._usage = np.zeros((1, DEVICES), np.float64)
        self._settled_at = np.zeros(1, np.float64)
        self._static: tuple[Ints, Floats, Ints] | None = None

    def set(self, queues: Iterable[Queue]) -> None:
        """Enter or replace the weights and deserved shares of queues."""
        self._rows.update({self.tree(queue.name): queue for queue in queues})
        self._static = None

    def remove(self, queues: Iterable[QueueName]) -> None:
        """Forget weights and deserved shares; what the queues hold stays counted."""
        for vertex in map(self.tree.find, queues):
            if vertex is not None:
                self._rows.pop(vertex, None)
        self._static = None

    def add(self, holdings: Sequence[Holding], amounts: Ints, *, now: float) -> None:
        """Count what attempts hold from `now` on. `amounts`: (holdings, R), see `amounts_of`."""
        vertices = [self.tree(holding.queue) for holding in holdings]
        attempts = [holding.attempt for holding in holdings]
        self._amounts.add(attempts, np.array(vertices, np.int64), amounts)
        self._charge(vertices, amounts, now=now)

    def end(self, attempts: Iterable[AttemptId], *, now: float) -> None:
        """Discount attempts that were counted; they held what they did up to `now`."""
        vertices, amounts = self._amounts.pop(attempts)
        if len(vertices):
            self._charge(vertices.tolist(), -amounts, now=now)

    def held(self, vertex: int, kind: int | None = None) -> int:
        """1/56 blocks held below a vertex, of one device kind or of all."""
        if vertex >= len(self._held):
            return 0
        row = self._held[vertex, DEVICES:]
        if kind is None:
            return int(row.sum())
        return int(row[kind]) if kind < len(row) else 0

    def freeze(self, capacity: Floats, *, now: float) -> Shares:
        """Everything as it stands at wall time `now`; `capacity`: (R)."""
        self._widen(len(capacity) - DEVICES)
        parent, weight, deserved = self._static_columns()
        return Shares(
            names=self.tree.names,
            parent=parent,
            weight=weight,
            deserved=deserved,
            held=self._held[: len(self.tree)].copy(),
            usage=self._usage_at(np.arange(len(self.tree)), now),
            capacity=capacity,
            half_life_s=self.half_life_s,
        )

    def _charge(self, vertices: Sequence[int], amounts: Ints, *, now: float) -> None:
        self._widen(amounts.shape[1] - DEVICES)
        known = {vertex: self.tree.chain(vertex) for vertex in set(vertices)}
        chains = [known[vertex] for vertex in vertices]
        flat = np.array([vertex for chain in chains for vertex in chain], np.int64)
        touched = np.unique(flat)
        self._usage[touched] = self._usage_at(touched, now)
        self._settled_at[touched] = np.maximum(self._settled_at[touched], now)
        each = np.repeat(amounts, [len(chain) for chain in chains], axis=0)
        np.add.at(self._held[:, : each.shape[1]], flat, each)

    def _usage_at(self, vertices: Ints, now: float) -> Floats:
        passed = np.maximum(now - self._settled_at[vertices], 0.0)[:, None]
        factor, area = decay(passed, self.half_life_s)
        usage: Floats = self._usage[vertices] * factor + self._held[vertices] * area
        return usage

    def _widen(self, kinds: int) -> None:
        have, wide = self._held.shape
        rows, columns = len(self.tree), max(wide, DEVICES + max(kinds, len(self._kinds)))
        if rows <= have and columns == wide:
            return
        rows = have if rows <= have else max(rows, 2 * have)
        grow = ((0, rows - have), (0, columns - wide))
        self._held, self._usage = np.pad(self._held, grow), np.pad(self._usage, grow)
        self._settled_at = np.pad(self._settled_at, grow[0])

    def _static_columns(self) -> tuple[Ints, Floats, Ints]:
        kinds = self._held.shape[1] - DEVICES
        known = self._static
        if known is None or known[2].shape != (len(self.tree), kinds):
            known = self._static = self._build(kinds)
        return known

    def _build(self, kinds: int) -> tuple[Ints, Floats, Ints]:
        size = len(self.tree)
        weight = np.ones(size, np.float64)
        deserved = np.zeros((size, kinds), np.int64)
        for vertex in range(size - 1, 0, -1):
            queue = self._rows.get(vertex)
            if queue is not None:
                weight[vertex] = queue.weight
                self._write_deserved(deserved[vertex], queue)
            deserved[self.tree.parent[vertex]] += deserved[vertex]
        return np.array(self.tree.parent, np.int64), weight, deserved

    def _write_deserved(self, row: Ints, queue: Queue) -> None:
        if queue.deserved:
            # Its own word replaces the sum of its children.
            row[:] = 0
        for kind, blocks in queue.deserved:
            number = self._kinds.number.get(kind)
            if number is not None and number < len(row):
                row[number] = blocks * UNITS_PER_BLOCK


def decay(passed_s: Floats, half_life_s: float) -> tuple[Floats, Floats]:
    """(what is left of an amount after so long, what one unit held all that time has become).

    2^(-t/h), and its integral from 0 to t, in seconds. Exact, however the time is cut.
    """
    if not half_life_s > 0 or math.isinf(half_life_s):
        return np.ones_like(passed_s), passed_s
    rate = math.log(2.0) / half_life_s
    return np.exp(-rate * passed_s), -np.expm1(-rate * passed_s) / rate


def amounts_of(
    holdings: Sequence[Holding], uses: Uses, *, model: NDArray[np.int16], models: Models, kinds: int
) -> tuple[Ints, NDArray[np.bool_]]:
    """(holdings, R) what attempts hold, and (holdings) whether a device of theirs is unknown.

    `uses`: the same, one gang each; `model`: (N, D). An unknown device counts for kind 0.
    """
    amounts = np.zeros((len(holdings), DEVICES + max(1, kinds)), np.int64)
    unknown = np.zeros(len(holdings), np.bool_)
    gang = np.repeat(np.arange(len(holdings)), np.diff(uses.first_task))
    np.add.at(amounts[:, CPU], gang, uses.cpu)
    np.add.at(amounts[:, MEMORY], gang, uses.memory)
    if len(uses.device):
        grants = np.diff(uses.first_grant)
        row, of = np.repeat(uses.row, grants), np.repeat(gang, grants)
        units = uses.blocks * UNITS_PER_BLOCK
        if uses.bits.any():
            grants_of = [g for h in holdings for t in h.tasks for g in t.devices]
            sliced = np.flatnonzero(uses.bits)
            units[sliced] = [grant_units(grants_of[at]) for at in sliced.tolist()]
        number = model[row, uses.device]
        unknown[of[number == 0]] = True
        np.add.at(amounts, (of, DEVICES + np.maximum(models.kind[number], 0)), units)
    return amounts, unknown
