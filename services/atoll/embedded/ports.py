"""Which ports a stack listens on: those of last time, else the usual ones, else free ones."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from atoll.runtime.servers.ports import LOOPBACK, free_ports, is_free

USUAL: Final[Mapping[str, int]] = {
    "submission": 7070,
    "submission.metrics": 7071,
    "placement": 7072,
    "placement.metrics": 7073,
    "dispatch": 7074,
    "dispatch.metrics": 7075,
    "reservation": 7076,
    "reservation.metrics": 7077,
    "burst": 7078,
    "burst.metrics": 7079,
    "postgres": 7090,
    "etcd": 7091,
    "valkey": 7092,
}
FIRST_AGENT_METRICS: Final = 7081
LAST_AGENT_METRICS: Final = 7089


class PortBook:
    """Gives every listener a port and remembers it, so that clients find it again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, int] = _read(path)
        self._given: dict[str, int] = {}
        self._settled: frozenset[str] = frozenset()

    def port(self, name: str) -> int:
        """A port for the listener `name` that is free now; others' remembered ones are not used.

        For a settled name the one that it had, whether it is free or not. Who asks again
        before that has lost a race for the first one, and gets one that nobody else wants.
        """
        if name in self._settled:
            return self._known[name]
        lost = name in self._given and not self._settled
        wishes = [] if lost else [self._known.get(name), USUAL.get(name), *_agents(name)]
        port = next((wish for wish in wishes if wish and self._can_have(name, wish)), None)
        self._known[name] = self._given[name] = port = port or self._any()
        self._path.write_text(json.dumps(self._known, indent=1, sort_keys=True))
        return port

    def address(self, name: str) -> str:
        """The same as `host:port`."""
        return f"{LOOPBACK}:{self.port(name)}"

    def settle(self, names: Iterable[str]) -> None:
        """Others have been told these ports: from now on they must not change."""
        self._settled = frozenset(names)

    def _can_have(self, name: str, port: int) -> bool:
        others = {key for key, known in (self._known | self._given).items() if known == port}
        return not (others - {name}) and is_free(port)

    def _any(self) -> int:
        taken = set(self._given.values()) | set(self._known.values())
        return next(port for port in free_ports(len(taken) + 1) if port not in taken)


def _agents(name: str) -> range:
    if not name.startswith("agent-"):
        return range(0)
    return range(FIRST_AGENT_METRICS, LAST_AGENT_METRICS + 1)


def _read(path: Path) -> dict[str, int]:
    try:
        return {str(name): int(port) for name, port in json.loads(path.read_text()).items()}
    except (FileNotFoundError, ValueError, AttributeError):
        return {}
