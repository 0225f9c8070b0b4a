"""What a queue's share is a share of: what is schedulable, less a mean of what local users take.

Local users come and go by the minute; shares should not follow them.
"""

import math
from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.ids import NodeId
from atoll.core.model.inventory import Node
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.core.state.columns import STATUS_OK, STATUS_SUSPECT, Models, Nodes
from atoll.core.state.interning import Interner
from atoll.core.state.mig import UNITS_PER_BLOCK
from atoll.core.state.shares import CPU, DEVICES, MEMORY, Floats

MEAN_S: Final = 3600.0
"""Time over which local use is averaged, older use weighing e^(-age / MEAN_S)."""


class CapacityBook:
    """Capacity by resource, its columns as in `Shares`."""

    def __init__(self, kinds: Interner[str]) -> None:
        self._kinds = kinds
        self._local: dict[NodeId, Floats] = {}
        self._now_local = np.zeros(DEVICES, np.float64)
        self._mean = np.zeros(DEVICES, np.float64)
        self._mean_at: float | None = None
        self._total: Floats | None = None
        self._without: tuple[int, ...] = ()

    def without(self, clusters: Iterable[int]) -> None:
        """Clusters whose nodes do not count: they are rented, and come and go."""
        self._without = tuple(clusters)
        self._total = None

    def upsert(self, nodes: Iterable[Node], *, now: float) -> None:
        """Note the local use of nodes; it counts from `now` on."""
        self._follow(now)
        self._total = None
        for node in nodes:
            self._drop(node.id)
            if _has_local(node):
                self._add(node)

    def remove(self, nodes: Iterable[NodeId], *, now: float) -> None:
        """Forget nodes."""
        self._follow(now)
        self._total = None
        for node in nodes:
            self._drop(node)

    def changed(self) -> None:
        """The status of nodes changed."""
        self._total = None

    def capacity(self, nodes: Nodes, models: Models, *, now: float) -> Floats:
        """(R) as of `now`. What is in a cluster that is silent still counts: its runs do, too."""
        wide = DEVICES + len(self._kinds)
        if self._total is None or len(self._total) < wide:
            here = ~np.isin(nodes.cluster, self._without)
            self._total = _offered(nodes, models, here, kinds=len(self._kinds))
        self._follow(now)
        local, mean = _wide(self._now_local, wide), _wide(self._mean, wide)
        # CPU and memory in the table are without local use already, whole devices are not.
        offered = self._total.copy()
        offered[:DEVICES] += local[:DEVICES]
        return np.maximum(offered - mean, 0.0)

    def _follow(self, now: float) -> None:
        if self._mean_at is None:
            self._mean_at = now
        wide = max(len(self._now_local), len(self._mean))
        local, mean = _wide(self._now_local, wide), _wide(self._mean, wide)
        kept = math.exp(-max(0.0, now - self._mean_at) / MEAN_S)
        self._mean = mean * kept + local * (1.0 - kept)
        self._mean_at = max(self._mean_at, now)

    def _add(self, node: Node) -> None:
        use = node.inventory.local_use
        kind = {device.index: device.kind for device in node.inventory.devices}
        amount = np.zeros(DEVICES + len(self._kinds), np.float64)
        amount[CPU], amount[MEMORY] = use.cpu_milli, use.memory_bytes
        for device, blocks in use.blocks:
            if device in kind:
                column = DEVICES + self._kinds(kind[device])
                amount = _wide(amount, column + 1)
                amount[column] += blocks * UNITS_PER_BLOCK
        self._local[node.id] = amount
        self._now_local = _wide(self._now_local, len(amount))
        self._now_local[: len(amount)] += amount

    def _drop(self, node: NodeId) -> None:
        amount = self._local.pop(node, None)
        if amount is not None:
            self._now_local[: len(amount)] -= amount


def _has_local(node: Node) -> bool:
    if not node.present or not node.inventory.up or node.cordoned:
        return False
    use = node.inventory.local_use
    return bool(use.cpu_milli or use.memory_bytes or use.blocks)


def _wide(row: Floats, size: int) -> Floats:
    return row if len(row) >= size else np.pad(row, (0, size - len(row)))


def _offered(nodes: Nodes, models: Models, here: NDArray[np.bool_], *, kinds: int) -> Floats:
    usable = here & ((nodes.status == STATUS_OK) | (nodes.status == STATUS_SUSPECT))
    total = np.zeros(DEVICES + kinds, np.float64)
    total[CPU] = nodes.cpu_cap[usable].sum()
    total[MEMORY] = nodes.memory_cap[usable].sum()
    model = nodes.model[usable].ravel()
    kind = models.kind[model[model > 0]]
    counts = np.bincount(kind, minlength=kinds)[:kinds]
    total[DEVICES:] = counts * BLOCKS_PER_DEVICE * UNITS_PER_BLOCK
    return total
