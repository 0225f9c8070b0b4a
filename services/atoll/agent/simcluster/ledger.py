"""The ledger of a simulated cluster: what was really started and stopped, whoever asked for it.

It is written before anything is reported, and by nobody but the cluster: tests
hold it against what the control plane believes.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from atoll.agent.grouplog import GroupLog

FILE: Final = "ledger.jsonl"
LEASE_FILE: Final = "lease.json"

_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class Ledger:
    """Appends entries, one line each, in groups."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._entries = tuple(_read(folder / FILE))
        self._log = GroupLog(folder / FILE)

    def entries(self) -> tuple[Mapping[str, Any], ...]:
        """What earlier processes wrote; once, as they are let go then."""
        entries, self._entries = self._entries, ()
        return entries

    async def append(self, *entries: Mapping[str, Any]) -> None:
        """Return when the entries are durable; raises LogBroken."""
        await self._log.append("".join(f"{_encode(entry)}\n" for entry in entries).encode())

    def lease_until(self) -> float:
        """Wall time to which guarded runs were allowed to go on, as far as was written."""
        try:
            return float(json.loads((self._folder / LEASE_FILE).read_text())["until"])
        except (FileNotFoundError, ValueError, KeyError):
            return 0.0

    def write_lease(self, until: float) -> None:
        """Note the wall time to which guarded runs may go on."""
        draft = self._folder / f"{LEASE_FILE}.new"
        draft.write_text(json.dumps({"until": until}))
        draft.replace(self._folder / LEASE_FILE)

    async def close(self) -> None:
        """Flush and close."""
        await self._log.close()


def _read(path: Path) -> Iterator[Mapping[str, Any]]:
    """Whole lines; a torn one at the end is cut off, as nothing was reported of it."""
    if not path.exists():
        return
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    if end < len(data):
        with path.open("r+b") as file:
            file.truncate(end)
    for line in data[:end].splitlines():
        yield json.loads(line)
