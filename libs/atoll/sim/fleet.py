"""The clusters of a simulation without messages, and how much of them is free to be used."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from atoll.core.model.ids import ClusterName, NodeId
from atoll.core.model.inventory import Cluster, Node, NodeInventory
from atoll.core.model.resources import BLOCKS_PER_DEVICE, TaskShape
from atoll.core.model.spec import JobSpec


@dataclass(frozen=True, slots=True)
class Fleet:
    """Clusters and their nodes, as a store would have them."""

    clusters: tuple[Cluster, ...]
    nodes: tuple[Node, ...]

    @property
    def has_devices(self) -> bool:
        """Whether devices are what is scarce; otherwise CPUs are."""
        return any(node.inventory.devices for node in self.nodes)

    @property
    def units(self) -> int:
        """Device blocks, or milli-CPU without devices."""
        return sum(units_of(node.inventory, devices=self.has_devices) for node in self.nodes)


def fleet(clusters: Mapping[str, Sequence[NodeInventory]]) -> Fleet:
    """A fleet of clusters by name; nodes are numbered from 1 in the order given."""
    nodes: list[Node] = []
    for name, inventory in clusters.items():
        for node in inventory:
            nodes.append(Node(NodeId(len(nodes) + 1), ClusterName(name), node))
    rows = tuple(Cluster(ClusterName(name), can_guard=True) for name in clusters)
    return Fleet(rows, tuple(nodes))


def units_of(node: NodeInventory, *, devices: bool) -> int:
    """What a node offers: blocks of healthy devices, or milli-CPU."""
    if not node.up:
        return 0
    if not devices:
        return node.cpu_milli
    return BLOCKS_PER_DEVICE * sum(device.healthy for device in node.devices)


def wanted_units(spec: JobSpec, *, devices: bool) -> int:
    """What all tasks of a job want by their first alternatives."""
    return sum(group.count * _wanted(group.shapes[0], devices=devices) for group in spec.groups)


def _wanted(shape: TaskShape, *, devices: bool) -> int:
    if not devices:
        return shape.cpu_milli
    device = shape.device
    if device is None:
        return 0
    if device.profile:
        return device.count * BLOCKS_PER_DEVICE * _slices(device.profile) // 7
    return device.count * device.blocks


def _slices(profile: str) -> int:
    return int(profile.partition("g.")[0] or 1)


def fragmentation(
    free: np.ndarray, cpu_free: np.ndarray, tasks: Sequence[tuple[float, int, int]]
) -> float:
    """Share of the free device blocks that typical tasks cannot use, 0 to 1.

    `free`: (N, D) blocks, 0 where there is no device; `cpu_free`: (N) milli-CPU; `tasks`:
    (popularity, milli-CPU, blocks wanted: 1 to 99 of one device, or whole devices times 100).
    The measure F of "Beware of Fragmentation" (USENIX ATC'23): what a task cannot use of a node is
    all that is free there when it does not fit, else the parts of devices too small for it.
    """
    total = int(free.sum())
    if total <= 0 or not tasks:
        return 0.0
    lost = sum(p * _unusable(free, cpu_free, cpu=cpu, blocks=blocks) for p, cpu, blocks in tasks)
    return float(lost / total)


def _unusable(free: np.ndarray, cpu_free: np.ndarray, *, cpu: int, blocks: int) -> float:
    whole = blocks // BLOCKS_PER_DEVICE
    least = min(blocks, BLOCKS_PER_DEVICE)
    fits = (cpu_free >= cpu) & ((free >= least).sum(axis=1) >= max(1, whole))
    small = np.where(free < least, free, 0).sum(axis=1)
    return float(np.where(fits & (blocks > 0), small, free.sum(axis=1)).sum())
