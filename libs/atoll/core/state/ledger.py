"""Who holds what, and what is left: the only arithmetic on capacity.

The cycle, `verify` at commit and the auditor use this and nothing else. All
amounts are integers; a node may be below zero when its inventory shrank.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Final, NamedTuple, Protocol

import numpy as np

from atoll.core.model.errors import DomainError, ErrorCode
from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId, QueueName, attempt_name
from atoll.core.model.plan import Nomination, RunFacts, TaskPlacement
from atoll.core.model.resources import DeviceGrant
from atoll.core.state.apart import ApartBook
from atoll.core.state.booked import BookedNodes
from atoll.core.state.ledger_kernels import FINE, Uses, give_tasks, take_gangs
from atoll.core.state.mig import grant_bits
from atoll.core.state.node_table import NodeTable
from atoll.core.state.ragged import offsets, spans
from atoll.core.state.rentals import RentalBook


class AlreadyTaken(DomainError):
    """What is to be allocated has an owner already."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=ErrorCode.PLAN_INVALID)


class NotHeld(DomainError):
    """What is to be released is not held."""

    def __init__(self, attempt: AttemptId) -> None:
        super().__init__(
            f"attempt {attempt_name(attempt)} holds nothing", code=ErrorCode.ATTEMPT_NOT_FOUND
        )


class Holding(NamedTuple):
    """What one attempt holds."""

    attempt: AttemptId
    queue: QueueName
    cluster: ClusterName
    tasks: tuple[TaskPlacement, ...]
    run: RunFacts | None = None
    """None: nothing is known of its job."""


class AllocationRow(Protocol):
    """A committed row: one per task for CPU and memory, one per share of a device."""

    @property
    def attempt(self) -> AttemptId:
        """Whose use it is."""
        ...

    @property
    def rank(self) -> int:
        """Which task of it."""
        ...

    @property
    def node(self) -> NodeId:
        """Where."""
        ...

    @property
    def cpu_milli(self) -> int:
        """On the row of the task itself."""
        ...

    @property
    def memory_bytes(self) -> int:
        """On the row of the task itself."""
        ...

    @property
    def device(self) -> DeviceGrant | None:
        """A share of a device, on a row of its own."""
        ...


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that ledger and rows do not agree on."""

    attempt: AttemptId
    node: NodeId
    what: str
    """`cpu_milli`, `memory_bytes`, `device 3` or `device 3 slices`."""
    ledger: int
    """Milli-CPU, bytes, blocks; slices as a mask. 0: not held."""
    rows: int


class Ledger:
    """Holdings by attempt over a table of nodes."""

    def __init__(self, table: NodeTable) -> None:
        self.table = table
        self.holdings: dict[AttemptId, Holding] = {}
        self.nominations: dict[JobId, Nomination] = {}
        """What is held for jobs; it is not taken from the table's columns."""
        self.apart = ApartBook()
        self.booked = BookedNodes()
        self.rented = RentalBook()
        self.now = 0.0
        """Wall time as far as it is known here: it decides which windows matter."""

    def allocate(self, holdings: Sequence[Holding]) -> tuple[Holding, ...]:
        """Take what committed attempts hold, all or none; those that were not held before.

        An attempt that is held already with the same tasks is passed over. Raises
        AlreadyTaken for one with other tasks, and for a share that somebody else holds.
        CPU, memory and blocks may go below zero: the store is right, inventories shrink.
        """
        return self.take(holdings)[0]

    def take(self, holdings: Sequence[Holding]) -> tuple[tuple[Holding, ...], Uses]:
        """Like `allocate`, with what the new ones use, one gang each."""
        new = list({h.attempt: h for h in holdings if self._is_new(h)}.values())
        uses = self._flatten(new)
        codes = take_gangs(self.table.nodes, self.table.arrays()[0].mode, uses, False)
        if codes.any():
            self._undo(uses, codes == FINE)
            first = new[int(np.flatnonzero(codes)[0])]
            raise AlreadyTaken(f"a device share of {attempt_name(first.attempt)} has an owner")
        self.holdings.update((holding.attempt, holding) for holding in new)
        for holding in new:
            self.apart.add(holding.attempt, holding.run, holding.tasks)
        return tuple(new), uses

    def release(
        self, attempts: Sequence[AttemptId], uses: Uses | None = None
    ) -> tuple[Holding, ...]:
        """Give back what attempts hold; raises NotHeld, and then gives nothing back.

        `uses`: what they hold, where that is known in this form.
        """
        missing = next((a for a in attempts if a not in self.holdings), None)
        if missing is not None:
            raise NotHeld(missing)
        ended = tuple(self.holdings.pop(attempt) for attempt in attempts)
        for holding in ended:
            self.apart.remove(holding.attempt, holding.run)
        given = flatten([h.tasks for h in ended], self.table) if uses is None else uses
        give_tasks(self.table.nodes, given, 0, len(given.row))
        return ended

    def differences(self, rows: Iterable[AllocationRow]) -> tuple[Difference, ...]:
        """Where the ledger and the committed rows differ, sorted; empty when they agree."""
        held = _amounts(_rows_of(self.holdings.values()))
        stored = _amounts(_plain(row) for row in rows)
        keys = sorted(k for k in held.keys() | stored.keys() if held.get(k, 0) != stored.get(k, 0))
        return tuple(Difference(*key, held.get(key, 0), stored.get(key, 0)) for key in keys)

    def _is_new(self, holding: Holding) -> bool:
        held = self.holdings.get(holding.attempt)
        if held is not None and held.tasks != holding.tasks:
            raise AlreadyTaken(f"attempt {attempt_name(holding.attempt)} holds other things")
        return held is None

    def _flatten(self, holdings: Sequence[Holding]) -> Uses:
        # Nodes and devices that no inventory has told of yet are below zero until one does.
        known = self.table.row_of
        for holding in holdings:
            for task in holding.tasks:
                if task.node not in known:
                    self.table.ensure(task.node, holding.cluster, task.node_name)
                    known = self.table.row_of
        uses = flatten([h.tasks for h in holdings], self.table)
        self.table.widen(int(uses.device.max(initial=-1)) + 1)
        return uses

    def _undo(self, uses: Uses, taken: np.ndarray) -> None:
        for gang in np.flatnonzero(taken).tolist():
            give_tasks(self.table.nodes, uses, uses.first_task[gang], uses.first_task[gang + 1])


class HasRows(Protocol):
    """A table of nodes, or what a snapshot has of it."""

    @property
    def row_of(self) -> dict[NodeId, int]:
        """Rows by node."""
        ...


def flatten(gangs: Sequence[Sequence[TaskPlacement]], table: HasRows) -> Uses:
    """Tasks as arrays; their nodes must be in the table and their devices within its width."""
    tasks = list(chain.from_iterable(gangs))
    count, row = len(tasks), map(table.row_of.__getitem__, map(_NODE, tasks))
    # Most tasks have the same few devices, so those are looked at once.
    devices = {id(task.devices): task.devices for task in tasks}
    place = {key: at for at, key in enumerate(devices)}
    kinds = np.fromiter((place[id(task.devices)] for task in tasks), np.int64, count)
    grants = list(chain.from_iterable(devices.values()))
    first = _first(devices.values())
    chosen = spans(first, kinds)
    return Uses(
        first_task=_first(gangs),
        row=np.fromiter(row, np.int64, count),
        cpu=np.fromiter(map(_CPU, tasks), np.int64, count),
        memory=np.fromiter(map(_MEMORY, tasks), np.int64, count),
        first_grant=offsets(first[kinds + 1] - first[kinds]),
        device=np.array([grant.index for grant in grants], np.int64)[chosen],
        blocks=np.array([grant.blocks for grant in grants], np.int64)[chosen],
        bits=np.array(
            [g.slice_mask and grant_bits(g.profile, g.slice_mask) for g in grants], np.int64
        )[chosen],
    )


_NODE: Final = attrgetter("node")
_CPU: Final = attrgetter("cpu_milli")
_MEMORY: Final = attrgetter("memory_bytes")


def _first(lists: Collection[Sequence[object]]) -> np.ndarray:
    return offsets(np.fromiter(map(len, lists), np.int64, len(lists)))


_Row = tuple[AttemptId, NodeId, int, int, DeviceGrant | None]


def _plain(row: AllocationRow) -> _Row:
    return row.attempt, row.node, row.cpu_milli, row.memory_bytes, row.device


def _rows_of(holdings: Iterable[Holding]) -> Iterable[_Row]:
    for holding in holdings:
        for task in holding.tasks:
            yield holding.attempt, task.node, task.cpu_milli, task.memory_bytes, None
            for grant in task.devices:
                yield holding.attempt, task.node, 0, 0, grant


def _amounts(rows: Iterable[_Row]) -> dict[tuple[AttemptId, NodeId, str], int]:
    amounts: dict[tuple[AttemptId, NodeId, str], int] = {}
    for attempt, node, cpu, memory, grant in rows:
        for what, amount in _parts(cpu, memory, grant):
            key = (attempt, node, what)
            amounts[key] = amounts.get(key, 0) + amount
    return amounts


def _parts(cpu: int, memory: int, grant: DeviceGrant | None) -> Iterable[tuple[str, int]]:
    yield "cpu_milli", cpu
    yield "memory_bytes", memory
    if grant is not None:
        yield f"device {grant.index}", grant.blocks
        yield f"device {grant.index} slices", grant_bits(grant.profile, grant.slice_mask)
