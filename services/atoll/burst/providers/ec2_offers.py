"""What a region of EC2 offers: sizes and spot prices as EC2 says, the rest as the settings say."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import Field

from atoll.burst.providers.boot import BootSettings
from atoll.burst.providers.ec2_calls import Calls
from atoll.burst.providers.site import Settings, SingleMachine, micros
from atoll.core.model.burst import Market, Offer
from atoll.ports.clock import Clock

MIB: Final = 1 << 20
NOTICE_S: Final = 120.0


class Ec2Type(SingleMachine):
    """An instance type to be rented; its size is asked of EC2."""

    on_demand: float | None = Field(default=None, ge=0)
    """Dollars per hour in this region; None: on spot only."""
    spot: bool = True
    kind: str = ""
    """Device kind; empty: what EC2 calls it."""


class Ec2Settings(Settings):
    """One region. Credentials are found as boto3 finds them."""

    region: str
    zones: Mapping[str, str]
    """Subnet by availability zone; an empty one: the zone's default subnet."""
    image_id: str
    types: Mapping[str, Ec2Type]
    boot: BootSettings = BootSettings()
    security_groups: tuple[str, ...] = ()
    key_name: str = ""
    instance_profile: str = ""
    disk_gib: int = Field(default=0, ge=0)
    """0: as the image says."""
    root_device: str = "/dev/sda1"
    products: tuple[str, ...] = ("Linux/UNIX", "Linux/UNIX (Amazon VPC)")
    """Whose spot prices are read."""
    spot_margin: float = Field(default=0.1, ge=0, le=10)
    """Spot is offered, and paid at most, for so much more than it costs now."""
    lead_s: float = Field(default=120.0, ge=0)
    prices_s: float = Field(default=60.0, ge=0)
    """Prices are not read more often."""
    timeout_s: float = Field(default=20.0, gt=0)
    profile: str = ""
    """Of boto3's configuration."""
    endpoint_url: str = ""


class Ec2Offers:
    """The offers of one region."""

    def __init__(self, name: str, settings: Ec2Settings, calls: Calls, *, clock: Clock) -> None:
        self._name = name
        self._settings = settings
        self._calls = calls
        self._clock = clock
        self._sizes: Mapping[str, Mapping[str, Any]] = {}
        self._last: tuple[float, tuple[Offer, ...]] | None = None
        """When they were read, monotonic."""

    async def read(self) -> Sequence[Offer]:
        """Every type in every zone and market; raises ProviderUnavailable."""
        now = self._clock.monotonic()
        if self._last is None or now - self._last[0] >= self._settings.prices_s:
            self._sizes = self._sizes or await self._read_sizes()
            spot = await self._spot_prices()
            self._last = (now, tuple(self._all(spot)))
        return self._last[1]

    def _all(self, spot: Mapping[tuple[str, str], float]) -> Iterator[Offer]:
        """`spot`: dollars by zone and type."""
        for zone in self._settings.zones:
            for name, kind in self._settings.types.items():
                if name not in self._sizes:
                    continue
                if kind.on_demand is not None:
                    yield self._offer(zone, name, Market.ON_DEMAND, dollars=kind.on_demand)
                if (zone, name) in spot:
                    yield self._offer(zone, name, Market.SPOT, dollars=spot[zone, name])

    def _offer(self, zone: str, name: str, market: Market, *, dollars: float) -> Offer:
        kind, size = self._settings.types[name].kind, self._sizes[name]
        return Offer(
            provider=self._name,
            zone=zone,
            region=self._settings.region,
            instance_type=name,
            market=market,
            cpu_milli=size["cpu_milli"],
            memory_bytes=size["memory_bytes"],
            kind=(kind or size["kind"]) if size["devices"] else "",
            devices=size["devices"],
            price=micros(dollars),
            lead_s=self._settings.lead_s,
            notice_s=NOTICE_S if market is Market.SPOT else 0.0,
        )

    async def _spot_prices(self) -> dict[tuple[str, str], float]:
        """Dollars by zone and type, with the margin."""
        wanted = [name for name, kind in self._settings.types.items() if kind.spot]
        if not wanted:
            return {}
        found = await self._calls.pages(
            "describe_spot_price_history",
            "SpotPriceHistory",
            InstanceTypes=wanted,
            ProductDescriptions=list(self._settings.products),
            StartTime=datetime.fromtimestamp(self._clock.now(), tz=UTC),
        )
        factor = 1 + self._settings.spot_margin
        return {
            (each["AvailabilityZone"], each["InstanceType"]): float(each["SpotPrice"]) * factor
            for each in sorted(found, key=lambda each: unix(each["Timestamp"]))
        }

    async def _read_sizes(self) -> dict[str, dict[str, Any]]:
        # By a filter: a type that the region does not have is left out, and is no error.
        wanted = [{"Name": "instance-type", "Values": list(self._settings.types)}]
        found = await self._calls.pages("describe_instance_types", "InstanceTypes", Filters=wanted)
        return {each["InstanceType"]: size_of(each) for each in found}


def size_of(described: Mapping[str, Any]) -> dict[str, Any]:
    """CPUs, memory and GPUs of an instance type."""
    gpus = described.get("GpuInfo", {}).get("Gpus", [])
    return {
        "cpu_milli": described["VCpuInfo"]["DefaultVCpus"] * 1000,
        "memory_bytes": described["MemoryInfo"]["SizeInMiB"] * MIB,
        "kind": gpus[0]["Name"] if gpus else "",
        "devices": sum(gpu["Count"] for gpu in gpus),
    }


def unix(told: datetime) -> float:
    """Seconds since 1970."""
    return told.timestamp()
