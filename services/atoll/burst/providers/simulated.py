"""A provider of machines that are only thought of, for tests and the simulator.

The cloud's state is an object that a test can hand from one broker to the next, or a file,
which then is read and written under a lock.
"""

import asyncio
import fcntl
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import Field

from atoll.burst.providers.simcloud import (
    NEVER,
    Cloud,
    CloudSettings,
    Machine,
    MachineType,
    State,
)
from atoll.burst.providers.site import Site, chance, micros, read
from atoll.core.model.burst import Market, Offer
from atoll.ports.clock import Clock
from atoll.ports.provider import CreateOrder, ProviderUnavailable, Sighting

T = TypeVar("T")
GIB: Final = 1 << 30
KNOWN_MOST: Final = 10_000
"""More machines in a zone than that are as good as any number."""


class SimulatedSettings(CloudSettings):
    """The cloud, and how it is reached."""

    file: Path | None = None
    """Where the cloud's state outlives the broker; None: it does not."""
    throttled: float = Field(default=0.0, ge=0, le=1)
    """Share of calls that are not answered."""
    lost_answers: float = Field(default=0.0, ge=0, le=1)
    """Share of creations that happen, and whose answer is lost."""


@dataclass(slots=True)
class Mischief:
    """What a test lets go wrong with the next calls."""

    errors: list[Exception] = field(default_factory=list)
    """One for each call, before anything happens."""
    lost_answers: int = 0
    """That many creations happen and are not answered."""


class SimulatedProvider:
    """A `Provider` over a `Cloud`."""

    def __init__(
        self,
        name: str,
        settings: SimulatedSettings,
        clock: Clock,
        *,
        state: State | None = None,
    ) -> None:
        self.name = name
        self.mischief = Mischief()
        self.cloud = Cloud(settings)
        self._settings = settings
        self._clock = clock
        self._state = State() if state is None else state

    async def offers(self) -> Sequence[Offer]:
        """Every type in every zone and market in which it is sold."""
        return await self._ask(self._offers)

    async def create(self, order: CreateOrder) -> Sighting:
        """Create, or find what the same token created before."""
        return await self._ask(lambda state, now: self._create(state, order, now))

    async def describe(self, tokens: Sequence[str]) -> Sequence[Sighting]:
        """What became of them."""
        wanted = set(tokens)
        return await self._ask(
            lambda state, now: tuple(
                self.cloud.seen(m, now) for m in state.machines.values() if m.token in wanted
            )
        )

    async def list_tagged(self) -> Sequence[Sighting]:
        """All that are not gone."""
        return await self._ask(
            lambda state, now: tuple(self.cloud.seen(m, now) for m in self.cloud.live(state, now))
        )

    async def terminate(self, provider_id: str) -> None:
        """End it."""
        await self._ask(lambda state, now: _end(state, provider_id, now))

    async def close(self) -> None:
        """Nothing is held open."""

    def _create(self, state: State, order: CreateOrder, now: float) -> Sighting:
        fresh = order.token not in state.machines
        machine = self.cloud.create(state, order, now)
        if fresh and self._answer_is_lost(order):
            raise ProviderUnavailable("the answer was lost")
        return self.cloud.seen(machine, now)

    def _answer_is_lost(self, order: CreateOrder) -> bool:
        if self.mischief.lost_answers > 0:
            self.mischief.lost_answers -= 1
            return True
        return chance(self._settings.seed, "answer", order.token) < self._settings.lost_answers

    def _offers(self, state: State, now: float) -> tuple[Offer, ...]:
        return tuple(
            offer
            for zone in self._settings.zones
            for kind in self._settings.types
            for market in Market
            if (offer := self._offer(state, zone, kind, market=market, now=now)) is not None
        )

    def _offer(
        self, state: State, zone: str, name: str, *, market: Market, now: float
    ) -> Offer | None:
        kind = self._settings.types[name]
        price = self.cloud.price(state, zone, kind, market=market, now=now)
        if price is None:
            return None
        free = self.cloud.free(state, zone, market, now=now)
        return Offer(
            provider=self.name,
            zone=zone,
            region=self._settings.zones[zone].region or zone,
            instance_type=name,
            market=market,
            price=micros(price),
            lead_s=self._settings.boot_s + self._settings.boot_spread_s / 2,
            notice_s=self._settings.notice_s if market is Market.SPOT else 0.0,
            available=free > 0,
            most=free if 0 < free < KNOWN_MOST else 0,
            **_sizes(kind),
        )

    async def _ask(self, act: Callable[[State, float], T]) -> T:
        if self.mischief.errors:
            raise self.mischief.errors.pop(0)
        if self._settings.file is None:
            return self._answer(self._state, act)
        return await asyncio.to_thread(self._ask_file, self._settings.file, act)

    def _ask_file(self, path: Path, act: Callable[[State, float], T]) -> T:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with path.with_name(f"{path.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = _load(path)
            try:
                return self._answer(state, act)
            finally:
                _save(path, state)

    def _answer(self, state: State, act: Callable[[State, float], T]) -> T:
        now = self._clock.now()
        self.cloud.advance(state, now)
        state.calls += 1
        if chance(self._settings.seed, "call", state.calls) < self._settings.throttled:
            raise ProviderUnavailable("throttled")
        return act(state, now)


def make(name: str, given: Mapping[str, Any], site: Site) -> SimulatedProvider:
    """A cloud of its own; raises BadProvider."""
    return SimulatedProvider(name, read(SimulatedSettings, name, given), site.clock)


def _sizes(kind: MachineType) -> dict[str, Any]:
    return {
        "cpu_milli": round(kind.cpu * 1000),
        "memory_bytes": round(kind.memory_gib * GIB),
        "kind": kind.kind,
        "devices": kind.devices,
        "nodes": kind.nodes,
    }


def _end(state: State, provider_id: str, now: float) -> None:
    for machine in state.machines.values():
        if machine.provider_id == provider_id and machine.end_told_at == NEVER:
            machine.end_told_at = now


def _load(path: Path) -> State:
    if not path.exists():
        return State()
    told = json.loads(path.read_text())
    machines = {token: Machine(**machine) for token, machine in told.pop("machines").items()}
    return State(**told, machines=machines)


def _save(path: Path, state: State) -> None:
    draft = path.with_name(f"{path.name}.new")
    draft.write_text(json.dumps(asdict(state)))
    draft.replace(path)
