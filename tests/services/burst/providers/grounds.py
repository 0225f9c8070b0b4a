"""What the shared suite runs on: one ground for every entry of the registry."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from atoll.adapters.memory.clock import ManualClock
from atoll.burst.providers.registry import Site, make_provider
from atoll.ports.provider import Provider
from tests.services.burst.providers.orders import DEPLOYMENT


class Ground(Protocol):
    """A provider that is reached, and what stands behind it."""

    async def begin(self, folder: Path) -> None:
        """Start what is needed."""
        ...

    def broker(self) -> Provider:
        """A provider as a broker that starts now has it."""
        ...

    async def no_capacity(self) -> None:
        """From now on there are no machines."""
        ...

    async def refuse(self) -> None:
        """From now on nothing more may be created."""
        ...

    async def fall_silent(self) -> None:
        """From now on nobody answers."""
        ...

    async def pass_time(self) -> None:
        """Let happen what needs a moment."""
        ...

    async def end(self) -> None:
        """End what was started."""
        ...


@dataclass
class SimulatedGround:
    """The cloud is a file, time passes by hand."""

    clock: ManualClock
    given: dict[str, Any]

    async def begin(self, folder: Path) -> None:
        self.folder = folder
        self.given["file"] = str(folder / "cloud.json")

    def broker(self) -> Provider:
        site = Site(self.clock, DEPLOYMENT, self.folder)
        return make_provider("simulated", self.given, site)

    async def no_capacity(self) -> None:
        self.given["no_capacity"] = 1.0

    async def refuse(self) -> None:
        self.given["quota"] = 0

    async def fall_silent(self) -> None:
        self.given["throttled"] = 1.0

    async def pass_time(self) -> None:
        await self.clock.advance(10)

    async def end(self) -> None:
        """Nothing runs."""


GROUNDS: Mapping[str, Callable[[], Ground]] = {
    "simulated": lambda: SimulatedGround(ManualClock(), {}),
}
