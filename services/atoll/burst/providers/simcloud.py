"""A cloud that is only thought of: its machines, zones and what becomes of them with time.

The state is plain values, so that it can outlive a broker in a file. All randomness is
drawn from the seed and the token: the same orders have the same fate.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import Field, field_validator

from atoll.burst.providers.site import Settings, chance
from atoll.burst.providers.steps import PLENTY, Steps, steps
from atoll.core.model.burst import MOST_NODES, Market
from atoll.ports.provider import CreateOrder, NoCapacity, Phase, ProviderRefused, Sighting

NEVER: Final = 0.0


class MachineType(Settings):
    """One type of instance, and its prices in dollars per hour."""

    cpu: float = 4.0
    memory_gib: float = 16.0
    kind: str = ""
    devices: int = 0
    nodes: int = Field(default=1, ge=1, le=MOST_NODES)
    """So many machines are one instance; zones count instances."""
    on_demand: float | None = Field(default=1.0, ge=0)
    """None: not to be had."""
    spot: float | None = Field(default=0.3, ge=0)


class Zone(Settings):
    """One zone; what changes with time is written as steps from the cloud's beginning on."""

    region: str = ""
    on_demand: Any = PLENTY
    """How many machines on demand there are."""
    spot: Any = PLENTY
    """How many spot machines there are; when it falls, the youngest are taken back."""
    spot_price: Any = 1.0
    """By what the types' spot price is multiplied."""
    trace_zone: str = ""
    """The zone's name in a file of windows; empty: the first."""
    trace_window: int | None = None
    boots: bool = True
    """False: what is created here never comes up."""


class CloudSettings(Settings):
    """The whole cloud."""

    types: Mapping[str, MachineType] = {"sim.large": MachineType()}
    zones: Mapping[str, Zone] = {"sim-a": Zone()}
    boot_s: float = Field(default=60.0, ge=0)
    boot_spread_s: float = Field(default=0.0, ge=0)
    """Boots take up to that much longer."""
    end_s: float = Field(default=5.0, ge=0)
    """From being told to end until it is gone."""
    notice_s: float = Field(default=120.0, ge=0)
    never_up: float = Field(default=0.0, ge=0, le=1)
    """Share of machines that never come up."""
    no_capacity: float = Field(default=0.0, ge=0, le=1)
    """Share of orders for which there is no machine, whatever the zone says."""
    quota: int = Field(default=1_000_000, ge=0)
    """Machines at a time; more are refused."""
    seed: int = 0

    @field_validator("zones")
    @classmethod
    def _steps_can_be_read(cls, zones: Mapping[str, Zone]) -> Mapping[str, Zone]:
        for zone in zones.values():
            for given in (zone.on_demand, zone.spot, zone.spot_price):
                steps(given, zone=zone.trace_zone, window=zone.trace_window)
        return zones


@dataclass(slots=True)
class Machine:
    """One machine."""

    token: str
    number: int
    zone: str
    instance_type: str
    market: str
    cluster: str
    created_at: float
    up_at: float
    """NEVER: it does not come up."""
    interrupted_at: float = NEVER
    end_told_at: float = NEVER

    @property
    def provider_id(self) -> str:
        """Its name."""
        return f"sim-{self.number}"


@dataclass(slots=True)
class State:
    """What has to outlive the broker."""

    begun_at: float = NEVER
    seen_until: float = 0.0
    """Seconds since the beginning up to which interruptions were made."""
    calls: int = 0
    machines: dict[str, Machine] = field(default_factory=dict)
    """By token; what is gone stays known, so that its token is never another machine's."""


class Cloud:
    """The rules, over a state."""

    def __init__(self, settings: CloudSettings) -> None:
        self.settings = settings
        self._spot = {n: self._steps(z, z.spot) for n, z in settings.zones.items()}
        self._on_demand = {n: self._steps(z, z.on_demand) for n, z in settings.zones.items()}
        self._price = {n: self._steps(z, z.spot_price) for n, z in settings.zones.items()}

    def advance(self, state: State, now: float) -> None:
        """Let happen what the traces say up to now; a clock that goes back changes nothing."""
        if state.begun_at == NEVER:
            state.begun_at = now
        until = max(state.seen_until, now - state.begun_at)
        for zone, series in self._spot.items():
            for time, count in series.within(state.seen_until, until):
                self._take_back(state, zone, count, at=state.begun_at + time)
        state.seen_until = until

    def create(self, state: State, order: CreateOrder, now: float) -> Machine:
        """The token's machine; raises NoCapacity and ProviderRefused."""
        if (known := state.machines.get(order.token)) is not None:
            return known
        self._check(state, order, now)
        boot_s = self.settings.boot_s + self.settings.boot_spread_s * self._chance("boot", order)
        stillborn = self._chance("up", order) < self.settings.never_up
        comes_up = self.settings.zones[order.offer.zone].boots and not stillborn
        machine = state.machines[order.token] = Machine(
            token=order.token,
            number=len(state.machines) + 1,
            zone=order.offer.zone,
            instance_type=order.offer.instance_type,
            market=order.offer.market,
            cluster=order.cluster,
            created_at=now,
            up_at=now + boot_s if comes_up else NEVER,
        )
        return machine

    def seen(self, machine: Machine, now: float) -> Sighting:
        """What the cloud says of a machine."""
        return Sighting(
            token=machine.token,
            provider_id=machine.provider_id,
            phase=self.phase(machine, now),
            zone=machine.zone,
            instance_type=machine.instance_type,
            created_at=machine.created_at,
            interrupted_at=machine.interrupted_at,
        )

    def phase(self, machine: Machine, now: float) -> Phase:
        """Where a machine is."""
        told = min(machine.end_told_at or math.inf, machine.interrupted_at or math.inf)
        if now >= told + self.settings.end_s:
            return Phase.GONE
        if now >= told:
            return Phase.ENDING
        return Phase.RUNNING if machine.up_at and now >= machine.up_at else Phase.PENDING

    def free(self, state: State, zone: str, market: Market, *, now: float) -> int:
        """How many more machines a zone has."""
        series = self._spot[zone] if market is Market.SPOT else self._on_demand[zone]
        has = int(series.at(now - state.begun_at))
        return max(0, has - sum(1 for _ in self._live(state, zone, market, now=now)))

    def price(
        self, state: State, zone: str, kind: MachineType, *, market: Market, now: float
    ) -> float | None:
        """Dollars per hour; None: the type is not sold so."""
        if market is Market.ON_DEMAND:
            return kind.on_demand
        factor = self._price[zone].at(now - state.begun_at)
        return None if kind.spot is None else kind.spot * factor

    def live(self, state: State, now: float) -> Iterator[Machine]:
        """All that is not gone."""
        for machine in state.machines.values():
            if self.phase(machine, now) is not Phase.GONE:
                yield machine

    def _check(self, state: State, order: CreateOrder, now: float) -> None:
        offer = order.offer
        kind, zone = self.settings.types.get(offer.instance_type), offer.zone
        if kind is None or zone not in self.settings.zones:
            raise ProviderRefused(f"there is no {offer.instance_type} in {zone}")
        if self.price(state, zone, kind, market=offer.market, now=now) is None:
            raise ProviderRefused(f"{offer.instance_type} is not sold as {offer.market}")
        if sum(1 for _ in self.live(state, now)) >= self.settings.quota:
            raise ProviderRefused(f"quota: {self.settings.quota} machines at a time")
        if not self.free(state, zone, offer.market, now=now):
            raise NoCapacity(f"{zone} has no {offer.instance_type} ({offer.market}) now")
        if self._chance("room", order) < self.settings.no_capacity:
            raise NoCapacity(f"{zone} found no {offer.instance_type}")

    def _take_back(self, state: State, zone: str, count: float, *, at: float) -> None:
        """Give notice to the youngest spot machines of a zone beyond `count`."""
        there = [m for m in self._live(state, zone, Market.SPOT, now=at) if not m.interrupted_at]
        for machine in sorted(there, key=lambda m: m.number)[int(count) :]:
            machine.interrupted_at = at + self.settings.notice_s

    def _live(self, state: State, zone: str, market: Market, *, now: float) -> Iterator[Machine]:
        return (m for m in self.live(state, now) if m.zone == zone and m.market == market)

    def _chance(self, what: str, order: CreateOrder) -> float:
        return chance(self.settings.seed, what, order.token)

    @staticmethod
    def _steps(zone: Zone, given: object) -> Steps:
        return steps(given, zone=zone.trace_zone, window=zone.trace_window)
