"""What the shared suite runs on: one ground for every entry of the registry."""

import asyncio
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from atoll.adapters.memory.clock import ManualClock
from atoll.adapters.system import SystemClock
from atoll.burst.providers.registry import Site, make_provider
from atoll.ports.provider import Provider
from tests.services.burst.providers.moto_ground import MotoGround
from tests.services.burst.providers.orders import DEPLOYMENT
from tests.services.burst.providers.sky_ground import SkyGround


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


@dataclass
class ProcessGround:
    """Real keepers; their agents are not started, which is another test's."""

    given: dict[str, Any]

    async def begin(self, folder: Path) -> None:
        self.root = folder / "burst"
        self.given |= {"boot_s": 3600.0, "zones": {"here": {"most": 4}}}

    def broker(self) -> Provider:
        return make_provider("process", self.given, Site(SystemClock(), DEPLOYMENT, self.root))

    async def no_capacity(self) -> None:
        self.given["zones"] = {"here": {"most": 0}}

    async def refuse(self) -> None:
        self.given["quota"] = 0

    async def fall_silent(self) -> None:
        """The disk is not there."""
        shutil.rmtree(self.root)
        self.root.write_text("")

    async def pass_time(self) -> None:
        await asyncio.sleep(0.02)

    async def end(self) -> None:
        if self.root.is_dir():
            await end_all(self.broker())


async def end_all(provider: Provider) -> None:
    """Return when nothing is left."""
    async with asyncio.timeout(30):
        while left := await provider.list_tagged():
            for seen in left:
                await provider.terminate(seen.provider_id)
            await asyncio.sleep(0.02)


GROUNDS: Mapping[str, Callable[[], Ground]] = {
    "ec2": MotoGround,
    "process": lambda: ProcessGround({}),
    "simulated": lambda: SimulatedGround(ManualClock(), {}),
    "skypilot": SkyGround,
}
