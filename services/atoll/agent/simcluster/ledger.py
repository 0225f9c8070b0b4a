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
BLOCK_BYTES: Final = 1 << 16

_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class Ledger:
    """Appends entries, one line each, in groups."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        _cut_torn_line(folder / FILE)
        self._log = GroupLog(folder / FILE)

    def entries(self) -> Iterator[Mapping[str, Any]]:
        """What is in it, to be read before anything is appended."""
        with (self._folder / FILE).open("rb") as file:
            yield from map(json.loads, file)

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


def _cut_torn_line(path: Path) -> None:
    """Nothing was reported of a line that did not reach the disk whole."""
    if not path.exists():
        return
    with path.open("r+b") as file:
        end = file.seek(0, 2)
        while end > 0:
            begin = max(0, end - BLOCK_BYTES)
            file.seek(begin)
            newline = file.read(end - begin).rfind(b"\n")
            end = begin + newline + 1
            if newline >= 0 or begin == 0:
                break
        file.truncate(end)
