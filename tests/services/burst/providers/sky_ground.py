"""SkyPilot as a small stand-in for its SDK plays it: the real one is in no lock."""

import sys
from pathlib import Path
from typing import Any

import pytest

from atoll.adapters.memory.clock import ManualClock
from atoll.burst.providers.registry import Site, make_provider
from atoll.ports.provider import Provider
from tests.services.burst.providers.fake_sky import (
    PermissionDeniedError,
    ResourcesUnavailableError,
    Sky,
)
from tests.services.burst.providers.orders import DEPLOYMENT


class SkyGround:
    """One API server with nothing in it."""

    def __init__(self) -> None:
        self.sky = Sky()
        self.given: dict[str, Any] = {
            "settle_s": 0.5,
            "types": {
                "g5.xlarge": {
                    "infras": ["aws/us-east-1", "aws/eu-west-1"],
                    "cpu": 4, "memory_gib": 16, "kind": "A10G", "devices": 1,
                    "on_demand": 1.006, "spot": 0.35,
                },
            },
        }  # fmt: skip
        self._changed = pytest.MonkeyPatch()

    async def begin(self, folder: Path) -> None:
        self._folder = folder
        self._changed.setitem(sys.modules, "sky", self.sky)

    def broker(self, *, deployment: str = DEPLOYMENT, **given: Any) -> Provider:
        site = Site(ManualClock(), deployment, self._folder, ("dispatch.example.org:7074",))
        return make_provider("skypilot", self.given | given, site)

    async def no_capacity(self) -> None:
        self.sky.fails = ResourcesUnavailableError("none in any zone")

    async def refuse(self) -> None:
        self.sky.fails = PermissionDeniedError("not you")

    async def fall_silent(self) -> None:
        self.sky.silent = True

    async def pass_time(self) -> None:
        """It launches and ends at once."""

    async def end(self) -> None:
        self._changed.undo()
