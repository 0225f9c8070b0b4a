"""What a booking wants, as nodes of a snapshot to choose from: pools, one of which is enough."""

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.bookings.start_kernels import (
    COUNT_NODES,
    COUNT_PARTS,
    COUNT_WHOLE,
    Counted,
)
from atoll.core.engine.bookings.terrain import Terrain
from atoll.core.engine.bookings.unit_kernels import DEFAULT, Ask
from atoll.core.model.ids import ClusterName
from atoll.core.model.reservation import Amount, What, WholeDomains, WholeNodes
from atoll.core.model.resources import TaskShape
from atoll.core.state.columns import ANY
from atoll.core.state.shape_table import shapes_of

Ints = NDArray[np.int64]
NO_KIND: Final = 1 << 20
"""Number of a kind that no device has."""
_NO_ROWS: Final = np.zeros(0, np.int64)


class Sort(enum.Enum):
    """What is counted of the nodes."""

    UNITS = enum.auto()
    NODES = enum.auto()
    DOMAINS = enum.auto()


@dataclass(frozen=True, slots=True, eq=False)
class Need:
    """So many units, nodes or domains, of these nodes."""

    sort: Sort
    rows: Ints
    count: int
    ask: Ask | None = None
    profile: str = ""
    counted: Counted | None = None
    """How starts are counted beforehand; None: that tells nothing."""
    domain: Ints | None = None
    """(rows) number of each node's domain, where domains are wanted."""
    kind: int = ANY
    """Of device, as numbered in the snapshot."""


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Needs that are all to be met."""

    name: str
    """The cluster, or empty when there are several."""
    needs: tuple[Need, ...]

    @property
    def rows(self) -> Ints:
        """All nodes that may be taken, in order."""
        if len(self.needs) == 1:
            return self.needs[0].rows
        return np.unique(np.concatenate([need.rows for need in self.needs]))


def pools_of(terrain: Terrain, what: What, *, nobody: bool) -> tuple[Pool, ...]:
    """The pools for what is wanted; none when there is nothing of the sort.

    `nobody`: it is for maintenance, and nodes that take no work will do.
    """
    if what.nodes is not None:
        return tuple(_for_nodes(terrain, what, what.nodes, nobody=nobody))
    if what.domains is not None:
        return tuple(_for_domains(terrain, what, what.domains, nobody=nobody))
    if what.percent:
        return tuple(_for_percent(terrain, what))
    return tuple(_for_amounts(terrain, what))


def units_need(terrain: Terrain, amount: Amount, rows: Ints) -> Need:
    """An amount of these nodes."""
    device = amount.device

    def number(kind: str) -> int:
        return terrain.snapshot.kinds.get(kind, NO_KIND)

    return Need(
        Sort.UNITS,
        rows,
        amount.count,
        ask=Ask(
            shapes_of([TaskShape(0, 0, device)], number),
            DEFAULT if amount.cpu_milli is None else amount.cpu_milli,
            DEFAULT if amount.memory_bytes is None else amount.memory_bytes,
        ),
        profile=device.profile if device else "",
        counted=_counted(amount, number),
        kind=number(device.kind) if device and device.kind else ANY,
    )


def _counted(amount: Amount, number: Callable[[str], int]) -> Counted | None:
    device = amount.device
    if device is None or device.profile:
        return None
    kind = number(device.kind) if device.kind else ANY
    form = COUNT_WHOLE if device.whole else COUNT_PARTS
    return Counted(form, kind, device.count, device.blocks, device.memory_bytes, amount.count)


def amounts_of(terrain: Terrain, what: What) -> list[Amount]:
    """What is booked as amounts, in the order of a pool's needs; none of nodes and domains."""
    if not what.percent:
        return sorted(what.amounts, key=_size, reverse=True)
    return [each for name in what.clusters for each in _percent(terrain, what, name)]


def _for_amounts(terrain: Terrain, what: What) -> Iterator[Pool]:
    amounts = amounts_of(terrain, what)
    places = [(name, terrain.rows(name)) for name in _clusters(terrain, what)]
    places = [(name, rows) for name, rows in places if len(rows)]
    if what.split and len(places) > 1:
        places.append((ClusterName(""), np.sort(np.concatenate([rows for _, rows in places]))))
    # A hundred clusters are asked for the same.
    needs = [units_need(terrain, amount, _NO_ROWS) for amount in amounts]
    for name, rows in places:
        yield Pool(name, tuple(replace(need, rows=rows) for need in needs))


def _size(amount: Amount) -> tuple[float, int]:
    # What is hard to place comes first: large units, then parts of devices.
    device = amount.device
    if device is None:
        return 0.0, 0
    if device.whole:
        return float(device.count), 0
    return 0.5 if device.profile else 0.25, device.blocks


def _for_nodes(terrain: Terrain, what: What, nodes: WholeNodes, *, nobody: bool) -> Iterator[Pool]:
    if nodes.names:
        rows = terrain.named_nodes(nodes.names, nobody=nobody)
        if rows is not None:
            yield _whole("", rows, len(rows))
        return
    for name in _clusters(terrain, what):
        rows = terrain.rows(name, nobody=nobody)
        rows = rows[terrain.labelled(rows, nodes.labels)]
        if len(rows):
            yield _whole(name, rows, nodes.count)


def _for_domains(
    terrain: Terrain, what: What, domains: WholeDomains, *, nobody: bool
) -> Iterator[Pool]:
    numbers = terrain.domains(domains.level, nobody=nobody)
    if domains.names:
        rows = terrain.named_domains(domains.level, domains.names, nobody=nobody)
        if rows is not None:
            yield _whole("", rows, len(rows))
        return
    for name in _clusters(terrain, what):
        rows = terrain.rows(name, nobody=True)
        rows = rows[numbers[rows] >= 0]
        sizes = np.sort(np.bincount(numbers[rows])) if len(rows) else np.zeros(0, np.int64)
        sizes = sizes[sizes > 0]
        if len(sizes):
            least = int(sizes[: domains.count].sum())
            counted = Counted(COUNT_NODES, ANY, 0, 0, 0, least)
            need = Need(Sort.DOMAINS, rows, domains.count, counted=counted, domain=numbers[rows])
            yield Pool(name, (need,))


def _for_percent(terrain: Terrain, what: What) -> Iterator[Pool]:
    needs: list[Need] = []
    for name in what.clusters:
        rows = terrain.rows(name)
        found = _percent(terrain, what, name)
        needs += [units_need(terrain, amount, rows) for amount in found]
        if not found:
            count = -(-len(rows) * what.percent // 100)
            needs += _whole(name, rows, max(1, count)).needs
    yield Pool(what.clusters[0] if len(what.clusters) == 1 else "", tuple(needs))


def _percent(terrain: Terrain, what: What, name: ClusterName) -> list[Amount]:
    found = terrain.devices_by_request(terrain.rows(name))
    return [Amount(request, -(-total * what.percent // 100)) for request, total in found]


def _whole(name: str, rows: Ints, count: int) -> Pool:
    counted = Counted(COUNT_NODES, ANY, 0, 0, 0, count)
    return Pool(name, (Need(Sort.NODES, rows, count, counted=counted),))


def _clusters(terrain: Terrain, what: What) -> Sequence[ClusterName]:
    return what.clusters or terrain.clusters
