"""Fake services, and what they witnessed."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

from atoll.embedded.parts import Service, ServicePart
from atoll.runtime.servers.ports import free_ports

FAKE = Path(__file__).with_name("fake_service.py")


class Fakes:
    """Makes fake services, and knows what they witnessed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.witness = folder / "witness"
        self.witness.touch()
        self.names: dict[str, str] = {}

    def part(
        self,
        name: str,
        mode: str = "good",
        *,
        ready_within_s: float = 60.0,
        port: int | None = None,
    ) -> ServicePart:
        port = port or free_ports(1)[0]
        self.names[str(port)] = name
        service = Service(
            argv=(sys.executable, str(FAKE), str(port), str(self.witness), mode),
            folder=self.folder,
            address="",
            metrics=f"127.0.0.1:{port}",
            ready_within_s=ready_within_s,
            grace_s=0.5 if mode == "hangs" else 10.0,
        )
        return ServicePart(name, self.folder / f"{name}.log", lambda: service)

    def told(self, word: str) -> list[str]:
        """Names of the parts that wrote `word`, in the order of writing."""
        lines = (line.split() for line in self.witness.read_text().splitlines())
        return [self.names[line[1]] for line in lines if line[0] == word]

    def pids(self) -> set[int]:
        """All processes that ever wrote a line."""
        return {int(line.split()[-1]) for line in self.witness.read_text().splitlines()}


async def until(condition: Callable[[], bool], within_s: float = 60.0) -> None:
    """Return when it holds; TimeoutError if it does not come to hold."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - what is waited for is in other processes
            await asyncio.sleep(0.02)
