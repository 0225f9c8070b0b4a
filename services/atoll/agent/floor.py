"""What is really used on the nodes of a backend, and who uses it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from atoll.core.model.ids import AttemptId
from atoll.core.model.inventory import NodeInventory
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.reason import ReasonCode
from atoll.core.model.resources import BLOCKS_PER_DEVICE, DeviceGrant
from atoll.ports.backend import Refusal

Look = Callable[[str], NodeInventory | None]
"""A node as it really is now; None: it is not there."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A decision that gives away what has an owner: a mistake of the control plane."""

    what: str
    """DOUBLE_ALLOCATION or OVERCOMMIT."""
    node: str
    owners: tuple[AttemptId, ...]


@dataclass(frozen=True, slots=True)
class Objection:
    """Why tasks cannot be placed, and whether somebody made a mistake."""

    refusal: Refusal
    violation: Violation | None = None


@dataclass(slots=True)
class _DeviceUse:
    blocks: int = 0
    mask: int = 0
    owners: list[AttemptId] = field(default_factory=list)


@dataclass(slots=True)
class _NodeUse:
    cpu_milli: int = 0
    memory_bytes: int = 0
    devices: dict[int, _DeviceUse] = field(default_factory=dict)
    runs: set[AttemptId] = field(default_factory=set)


UNUSED: Final = _DeviceUse()
"""Stands for a device that nobody uses."""


class Floor:
    """Who runs where."""

    def __init__(self) -> None:
        self._used: dict[str, _NodeUse] = {}

    def objection(self, tasks: Sequence[TaskPlacement], look: Look) -> Objection | None:
        """Why these tasks cannot run now; None when they can."""
        for name, mine in by_node(tasks).items():
            node = look(name)
            if node is None or not node.up:
                why = "is not there" if node is None else "is down"
                refusal = _refusal(ReasonCode.NODE_ABSENT, f"node {name} {why}", mine)
                return Objection(refusal)
            found = (
                self._absent(node, mine)
                or self._taken(node, mine)
                or self._overcommitted(node, mine)
            )
            if found is not None:
                return found
        return None

    def occupy(self, attempt: AttemptId, tasks: Iterable[TaskPlacement]) -> None:
        """The tasks run from now on."""
        for task in tasks:
            used = self._used.setdefault(task.node_name, _NodeUse())
            used.cpu_milli += task.cpu_milli
            used.memory_bytes += task.memory_bytes
            used.runs.add(attempt)
            for grant in task.devices:
                device = used.devices.setdefault(grant.index, _DeviceUse())
                device.blocks += grant.blocks
                device.mask |= grant.slice_mask
                device.owners.append(attempt)

    def release(self, attempt: AttemptId, tasks: Iterable[TaskPlacement]) -> None:
        """The tasks run no more."""
        for task in tasks:
            used = self._used[task.node_name]
            used.cpu_milli -= task.cpu_milli
            used.memory_bytes -= task.memory_bytes
            used.runs.discard(attempt)
            for grant in task.devices:
                device = used.devices[grant.index]
                device.blocks -= grant.blocks
                device.mask &= ~grant.slice_mask
                device.owners.remove(attempt)

    def runs_on(self, node: str) -> tuple[AttemptId, ...]:
        """The attempts that have a task there."""
        used = self._used.get(node)
        return () if used is None else tuple(sorted(used.runs))

    def _absent(self, node: NodeInventory, tasks: Sequence[TaskPlacement]) -> Objection | None:
        there = {device.index for device in node.devices if device.healthy}
        missing = sorted({grant.index for task in tasks for grant in task.devices} - there)
        if not missing:
            return None
        message = f"{node.name} has no device {', '.join(map(str, missing))} now"
        return Objection(_refusal(ReasonCode.DEVICE_ABSENT, message, tasks))

    def _taken(self, node: NodeInventory, tasks: Sequence[TaskPlacement]) -> Objection | None:
        """Shares that have an owner, be it another task of these, or a local user."""
        used_here = self._used.get(node.name)
        devices = {} if used_here is None else used_here.devices
        local = dict(node.local_use.blocks)
        fresh: dict[int, _DeviceUse] = {}
        for grant in (grant for task in tasks for grant in task.devices):
            used = devices.get(grant.index, UNUSED)
            mine = fresh.setdefault(grant.index, _DeviceUse())
            blocks, mask = used.blocks + mine.blocks, used.mask | mine.mask
            if overlaps(grant, blocks + local.get(grant.index, 0), mask):
                message = f"device {grant.index} of {node.name} is taken"
                refusal = _refusal(ReasonCode.CAPACITY_TAKEN, message, tasks)
                if not overlaps(grant, blocks, mask):
                    return Objection(refusal)
                owners = tuple(sorted(used.owners))
                return Objection(refusal, Violation("DOUBLE_ALLOCATION", node.name, owners))
            mine.blocks += grant.blocks
            mine.mask |= grant.slice_mask
        return None

    def _overcommitted(
        self, node: NodeInventory, tasks: Sequence[TaskPlacement]
    ) -> Objection | None:
        used, local = self._used.get(node.name, _NodeUse()), node.local_use
        free_cpu = node.cpu_milli - used.cpu_milli - sum(task.cpu_milli for task in tasks)
        free_memory = node.memory_bytes - used.memory_bytes - sum(t.memory_bytes for t in tasks)
        if free_cpu >= local.cpu_milli and free_memory >= local.memory_bytes:
            return None
        message = f"{node.name} has not enough CPU or memory left"
        refusal = _refusal(ReasonCode.CAPACITY_TAKEN, message, tasks)
        if free_cpu < 0 or free_memory < 0:
            owners = tuple(sorted(used.runs))
            return Objection(refusal, Violation("OVERCOMMIT", node.name, owners))
        return Objection(refusal)  # what local users take is nobody's mistake


def by_node(tasks: Iterable[TaskPlacement]) -> Mapping[str, list[TaskPlacement]]:
    """The tasks of each node."""
    found: dict[str, list[TaskPlacement]] = {}
    for task in tasks:
        found.setdefault(task.node_name, []).append(task)
    return found


def overlaps(grant: DeviceGrant, blocks: int, mask: int) -> bool:
    """Whether a share cannot be given beside what is taken of the device."""
    if grant.slice_mask:
        return blocks > 0 or bool(grant.slice_mask & mask)
    return mask != 0 or blocks + grant.blocks > BLOCKS_PER_DEVICE


def _refusal(reason: ReasonCode, message: str, tasks: Sequence[TaskPlacement]) -> Refusal:
    return Refusal(reason, message, (tasks[0].node,))
