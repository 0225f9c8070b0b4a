"""How a simulated cluster is told to misbehave: a JSON file that may change at any time."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

from atoll.core.model.inventory import LocalUse, NodeInventory
from atoll.ports.clock import Clock
from atoll.runtime import logs

log = logs.logger(__name__)

FILE: Final = "misbehave.json"
NO_USE: Final = LocalUse()
LOOK_S: Final = 0.05
"""How often the file is looked at."""


@dataclass(frozen=True, slots=True)
class NodeFault:
    """What is wrong with one node."""

    down: bool = False
    gone: bool = False
    hang: bool = False
    fail_bind: bool = False
    hidden: frozenset[int] = frozenset()
    """Devices that are not there any more."""
    local_use: LocalUse = NO_USE

    @property
    def dead(self) -> bool:
        """Whether nothing can run there."""
        return self.down or self.gone


@dataclass(frozen=True, slots=True)
class Misbehaviour:
    """All that is wrong just now."""

    nodes: Mapping[str, NodeFault] = field(default_factory=dict)
    hang: bool = False
    reject: bool = False
    delay_s: float = 0.0
    bind_timeout_s: float = 2.0
    inventory_lag_s: float = 0.0

    def of(self, node: str) -> NodeFault:
        """What is wrong with that node."""
        return self.nodes.get(node, NO_FAULT)

    def shown(self, node: NodeInventory) -> NodeInventory | None:
        """The node as an inventory has it; None when it is not in it."""
        fault = self.of(node.name)
        if fault is NO_FAULT:
            return node
        if fault.gone:
            return None
        devices = tuple(device for device in node.devices if device.index not in fault.hidden)
        return replace(node, up=not fault.down, devices=devices, local_use=fault.local_use)


NO_FAULT: Final = NodeFault()
GOOD: Final = Misbehaviour()


class Control(Protocol):
    """Whoever says how the cluster is to misbehave."""

    def look(self) -> Misbehaviour:
        """What is wrong now; the same object as long as nothing changes."""
        ...

    async def changed(self, clock: Clock) -> None:
        """Return when it may be time to look again."""
        ...


class ControlFile:
    """The file, read again when it has changed."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._seen: tuple[int, int, int] | None = None
        self._last = GOOD

    def look(self) -> Misbehaviour:
        """What the file says now; what it said before while it makes no sense."""
        try:
            stat = self._path.stat()
        except FileNotFoundError:
            self._seen, self._last = None, GOOD
            return GOOD
        mark = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        if mark != self._seen:
            self._seen = mark
            self._read()
        return self._last

    async def changed(self, clock: Clock) -> None:
        """Return after a moment: nobody tells when a file has changed."""
        await clock.sleep(LOOK_S)

    def _read(self) -> None:
        try:
            self._last = parse(json.loads(self._path.read_text() or "{}"))
        except (OSError, ValueError, TypeError, AttributeError) as error:
            log.error("misbehaviour not understood", file=str(self._path), why=str(error))


def parse(given: Mapping[str, Any]) -> Misbehaviour:
    """What a document asks for; raises TypeError or ValueError."""
    rest = dict(given)
    nodes = {name: _fault(entry) for name, entry in rest.pop("nodes", {}).items()}
    return Misbehaviour(nodes=nodes, **rest)


def _fault(given: Mapping[str, Any]) -> NodeFault:
    rest = dict(given)
    hidden = frozenset(rest.pop("hide_devices", ()))
    use = rest.pop("local_use", {})
    blocks = tuple(sorted((int(index), taken) for index, taken in use.get("blocks", {}).items()))
    local_use = LocalUse(use.get("cpu_milli", 0), use.get("memory_bytes", 0), blocks)
    return NodeFault(hidden=hidden, local_use=local_use, **rest)
