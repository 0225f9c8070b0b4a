"""What can be rented through SkyPilot: types, places and prices, as the settings say."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import Field, field_validator

from atoll.burst.providers.boot import BootSettings
from atoll.burst.providers.site import Settings, SingleMachine, micros
from atoll.burst.providers.sky_calls import field
from atoll.core.model.burst import Market, Offer

GIB: Final = 1 << 30


class SkyType(SingleMachine):
    """An instance type of a cloud, and where it is to be had."""

    infras: tuple[str, ...]
    """As SkyPilot writes them: `aws/us-east-1`, `gcp/us-central1/us-central1-a`."""
    cpu: float = Field(gt=0)
    memory_gib: float = Field(gt=0)
    kind: str = ""
    devices: int = Field(default=0, ge=0)
    on_demand: float | None = Field(default=None, gt=0)
    """Dollars per hour; more is not paid. None: not to be had."""
    spot: float | None = Field(default=None, gt=0)

    @field_validator("infras")
    @classmethod
    def _name_a_region(cls, infras: tuple[str, ...]) -> tuple[str, ...]:
        for infra in infras:
            if "/" not in infra:
                raise ValueError(f"{infra!r} names no region")
        return infras


class SkySettings(Settings):
    """Types by name, and how agents come to them."""

    types: Mapping[str, SkyType]
    boot: BootSettings = BootSettings()
    lead_s: float = Field(default=300.0, ge=0)
    notice_s: float = Field(default=0.0, ge=0)
    """SkyPilot passes no notices on: a spot instance is gone when it is."""
    settle_s: float = Field(default=20.0, ge=0)
    """So long a launch is watched for a failure."""
    timeout_s: float = Field(default=60.0, gt=0)


def offers_of(provider: str, settings: SkySettings) -> Iterator[Offer]:
    """Every type in every place and market."""
    for name, kind in settings.types.items():
        for infra in kind.infras:
            for market, price in ((Market.ON_DEMAND, kind.on_demand), (Market.SPOT, kind.spot)):
                if price is not None:
                    yield Offer(
                        provider=provider,
                        zone=infra.replace("/", ":"),
                        region=infra.split("/")[1],
                        instance_type=name,
                        market=market,
                        cpu_milli=round(kind.cpu * 1000),
                        memory_bytes=round(kind.memory_gib * GIB),
                        kind=kind.kind,
                        devices=kind.devices,
                        price=micros(price),
                        lead_s=settings.lead_s,
                        notice_s=settings.notice_s if market is Market.SPOT else 0.0,
                    )


def zone_of(launched: Any, settings: SkySettings) -> str:
    """Of what was launched, as offers name it."""
    parts = (field(launched, name) for name in ("cloud", "region", "zone"))
    place = ":".join(str(part) for part in parts if part).lower()
    named = {i.replace("/", ":") for kind in settings.types.values() for i in kind.infras}
    return max((zone for zone in named if place.startswith(zone.lower())), key=len, default=place)
