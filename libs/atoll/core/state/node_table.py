"""Nodes in arrays, kept sorted by id so that the first of equals is the lowest id.

Snapshots share the columns that seldom change; the first write after one was
taken works on a copy (copy on write).
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.ids import ClusterName, NodeId
from atoll.core.model.inventory import Node
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.core.state.columns import (
    FREE_COLUMNS,
    MODE_BLOCKS,
    STATUS_CORDONED,
    STATUS_DOWN,
    STATUS_OK,
    STATUS_SUSPECT,
    Cuts,
    Models,
    Nodes,
    copy_leading,
    empty_nodes,
)
from atoll.core.state.interning import Interner, ModelTable
from atoll.core.state.labels import LabelSets

_DESCRIBED: Final = tuple(name for name in Nodes._fields if name not in {"id", *FREE_COLUMNS})

Domain = tuple[str, ...]
"""Level, cluster, and the names from the widest level down to this one."""


class NodeTable:
    """Rows of nodes. `nodes` is valid until the next upsert."""

    def __init__(self) -> None:
        self.clusters: Interner[str] = Interner()
        self.labels = LabelSets()
        self.levels: Interner[str] = Interner()
        self.domains: Interner[Domain] = Interner()
        self.depth: dict[str, int] = {}
        """Level to its position in the lists of domains, 0 for the widest."""
        self.models = ModelTable()
        self.names: list[str] = []
        self.row_of: dict[NodeId, int] = {}
        self.nodes = empty_nodes(0, 1, 1)
        self._store = self.nodes
        self._shared = False

    def row(self, node: NodeId) -> int | None:
        """Row of a node, None when it is not known."""
        return self.row_of.get(node)

    def arrays(self) -> tuple[Models, Cuts]:
        """What the model column points to."""
        return self.models.arrays()

    def share(self) -> tuple[Nodes, list[str], dict[NodeId, int]]:
        """What a snapshot may keep: columns, names and rows that will never change."""
        self._shared = True
        free = {name: getattr(self.nodes, name).copy() for name in FREE_COLUMNS}
        return self.nodes._replace(**free), self.names, self.row_of

    def upsert(self, nodes: Sequence[Node]) -> NDArray[np.int64]:
        """Write nodes; returns the rows on which more may fit than before."""
        self._unshare()
        nodes = tuple({node.id: node for node in nodes}.values())
        self._make_rows((n.id, n.cluster, n.inventory.name) for n in nodes)
        rows = np.fromiter((self.row_of[n.id] for n in nodes), np.int64, len(nodes))
        devices = max((d.index + 1 for n in nodes for d in n.inventory.devices), default=1)
        for node in nodes:
            for level, _ in node.inventory.domains:
                self.levels(level)
        self._reserve(len(self.names), devices)
        fresh = self._encode(nodes)
        better = _improves(self.nodes, rows, fresh)
        _overwrite(self.nodes, rows, fresh)
        for row, node in zip(rows.tolist(), nodes, strict=True):
            self.names[row] = node.inventory.name
        return rows[better]

    def drop(self, ids: Iterable[NodeId]) -> None:
        """Take all capacity from nodes; what runs there leaves them below zero."""
        self._unshare()
        rows = np.array([self.row_of[i] for i in ids if i in self.row_of], np.int64)
        gone = empty_nodes(len(rows), self.nodes.model.shape[1], self.nodes.domain.shape[1])
        gone.id[:] = self.nodes.id[rows]
        gone.cluster[:] = self.nodes.cluster[rows]
        gone.status[:] = STATUS_DOWN
        _overwrite(self.nodes, rows, gone)

    def set_status(self, rows: NDArray[np.int64], before: int, after: int) -> None:
        """Change the status of those rows that have status `before`."""
        self._unshare()
        self.nodes.status[rows[self.nodes.status[rows] == before]] = after

    def ensure(self, node: NodeId, cluster: ClusterName, name: str) -> None:
        """Make a row without capacity for a node that nothing is known of."""
        self._unshare()
        self._make_rows([(node, cluster, name)])

    def widen(self, devices: int) -> None:
        """Make room for so many devices per node."""
        if devices > self.nodes.model.shape[1]:
            self._unshare()
            self._reserve(len(self.names), devices)

    def _unshare(self) -> None:
        if self._shared:
            self._store = Nodes._make(column.copy() for column in self._store)
            self.names = self.names.copy()
            self.row_of = self.row_of.copy()
            self._shared = False
            self._view(len(self.names))

    def _view(self, count: int) -> None:
        self.nodes = Nodes._make(column[:count] for column in self._store)

    def _make_rows(self, wanted: Iterable[tuple[NodeId, ClusterName, str]]) -> None:
        new = {i: (cluster, name) for i, cluster, name in wanted if i not in self.row_of}
        if not new:
            return
        old = len(self.names)
        self._reserve(old + len(new), 1)
        for row, (node, (cluster, name)) in enumerate(sorted(new.items()), old):
            self._store.id[row] = node
            self._store.cluster[row] = self.clusters(cluster)
            self._store.status[row] = STATUS_DOWN
            self.row_of[node] = row
            self.names.append(name)
        self._view(len(self.names))
        if old and self.nodes.id[old - 1] > self.nodes.id[old]:
            self._sort()

    def _sort(self) -> None:
        order = np.argsort(self.nodes.id, kind="stable")
        for column in self.nodes:
            column[:] = column[order]
        self.names = [self.names[row] for row in order.tolist()]
        self.row_of = {NodeId(i): row for row, i in enumerate(self.nodes.id.tolist())}

    def _reserve(self, count: int, devices: int) -> None:
        have, wide = self._store.model.shape
        deep = self._store.domain.shape[1]
        if count <= have and devices <= wide and len(self.levels) <= deep:
            self._view(len(self.names))
            return
        rows = have if count <= have else max(64, count, have * 2 if have < 2**20 else count)
        grown = empty_nodes(rows, max(devices, wide), max(len(self.levels), deep))
        copy_leading(self._store, grown)
        self._store = grown
        self._view(len(self.names))

    def _encode(self, nodes: Sequence[Node]) -> Nodes:
        fresh = empty_nodes(len(nodes), self.nodes.model.shape[1], self.nodes.domain.shape[1])
        for row, node in enumerate(nodes):
            self._encode_one(fresh, row, node)
        mode = self.arrays()[0].mode
        fresh.blocks_cap[mode[fresh.model] & MODE_BLOCKS == 0] = 0
        for row, node in enumerate(nodes):
            for device, used in node.inventory.local_use.blocks:
                if device < fresh.model.shape[1]:
                    fresh.blocks_cap[row, device] -= used
        return fresh

    def _encode_one(self, fresh: Nodes, row: int, node: Node) -> None:
        inventory = node.inventory
        fresh.id[row] = node.id
        fresh.cluster[row] = self.clusters(node.cluster)
        fresh.status[row] = node_status(node)
        fresh.labels[row] = self.labels.number(inventory.labels)
        if node.present and inventory.up:
            fresh.cpu_cap[row] = inventory.cpu_milli - inventory.local_use.cpu_milli
            fresh.memory_cap[row] = inventory.memory_bytes - inventory.local_use.memory_bytes
            for device in inventory.devices:
                fresh.model[row, device.index] = self.models.number(device)
                fresh.blocks_cap[row, device.index] = BLOCKS_PER_DEVICE
        path: Domain = (node.cluster,)
        for depth, (level, name) in enumerate(inventory.domains):
            path = (*path, name)
            self.depth[level] = max(depth, self.depth.get(level, 0))
            fresh.domain[row, self.levels(level)] = self.domains((level, *path))


def node_status(node: Node) -> int:
    """Whether new work may go to a node, as a STATUS_* number."""
    if not node.present or not node.inventory.up:
        return STATUS_DOWN
    if node.cordoned:
        return STATUS_CORDONED
    return STATUS_SUSPECT if node.suspect else STATUS_OK


def _improves(nodes: Nodes, rows: NDArray[np.int64], fresh: Nodes) -> NDArray[np.bool_]:
    better = (fresh.cpu_cap > nodes.cpu_cap[rows]) | (fresh.memory_cap > nodes.memory_cap[rows])
    better |= (fresh.blocks_cap > nodes.blocks_cap[rows]).any(axis=1)
    better |= (fresh.model != nodes.model[rows]).any(axis=1)
    better |= (fresh.status == STATUS_OK) & (nodes.status[rows] != STATUS_OK)
    better |= (fresh.domain != nodes.domain[rows]).any(axis=1)
    better |= fresh.labels != nodes.labels[rows]
    result: NDArray[np.bool_] = better & (fresh.status == STATUS_OK)
    return result


def _overwrite(nodes: Nodes, rows: NDArray[np.int64], fresh: Nodes) -> None:
    # What is used stays what it was, so free = new capacity - (old capacity - old free).
    nodes.cpu_free[rows] += fresh.cpu_cap - nodes.cpu_cap[rows]
    nodes.memory_free[rows] += fresh.memory_cap - nodes.memory_cap[rows]
    nodes.blocks_free[rows] += fresh.blocks_cap - nodes.blocks_cap[rows]
    for name in _DESCRIBED:
        getattr(nodes, name)[rows] = getattr(fresh, name)
