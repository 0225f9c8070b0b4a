"""Rents "machines" that are real agents on this machine, with the local backend.

An instance is a folder `<token>`: once its `order.json` is there, it was created. A keeper
(`machine.py`) runs in it that outlives the broker; its lock on the folder tells whether it
lives, and whoever finds `ended` there never starts again. `gone` is the confirmation.
A file `interrupt` in the folder is an interruption: a notice, and the end after it.
"""

import asyncio
import fcntl
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import yaml
from pydantic import Field

from atoll.burst.providers.boot import agent_settings
from atoll.burst.providers.folders import PROVIDER_PREFIX, Folder
from atoll.burst.providers.site import DEPLOYMENT_TAG, Settings, Site, micros, read
from atoll.core.model.burst import MOST_NODES, Market, Offer
from atoll.ports.provider import (
    CreateOrder,
    NoCapacity,
    Phase,
    ProviderRefused,
    ProviderUnavailable,
    Sighting,
)

T = TypeVar("T")
GIB: Final = 1 << 30
TOKEN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
START_WITHIN_S: Final = 20.0
KEPT_FOLDERS: Final = 200
"""Of instances that are gone."""


class ProcessType(Settings):
    """What an agent says that it has, and what it "costs", in dollars per hour."""

    cpu: float = Field(default=1.0, gt=0)
    memory_gib: float = Field(default=1.0, gt=0)
    kind: str = ""
    devices: int = Field(default=0, ge=0)
    """Pretended: work is told of them, and there are none."""
    nodes: int = Field(default=1, ge=1, le=MOST_NODES)
    """Pretended too: its agent shows so many machines, and all work runs on this one."""
    on_demand: float | None = Field(default=0.04, ge=0)
    """None: not to be had."""
    spot: float | None = Field(default=0.012, ge=0)


class ProcessZone(Settings):
    """One "zone" of this machine."""

    most: int = Field(default=2, ge=0)
    """Instances at a time."""
    boots: bool = True
    """False: what is created here never comes up."""
    spot_lasts_s: float = Field(default=0.0, ge=0)
    """After that time, spot instances get their notice; 0: never."""


class ProcessSettings(Settings):
    """What may be "rented" here."""

    types: Mapping[str, ProcessType] = {"process": ProcessType()}
    zones: Mapping[str, ProcessZone] = {"here": ProcessZone()}
    region: str = "local"
    boot_s: float = Field(default=0.0, ge=0)
    """Before the agent is started."""
    lead_s: float = Field(default=5.0, ge=0)
    """What starting an agent takes besides."""
    notice_s: float = Field(default=30.0, ge=0)
    grace_s: float = Field(default=5.0, ge=0)
    """For all that runs there to end by itself."""
    quota: int = Field(default=16, ge=0)
    """Instances at a time; more are refused."""
    ends_with: int = Field(default=0, ge=0)
    """Process with which all instances end; 0: they live on."""


class ProcessProvider:
    """A `Provider` over folders and processes."""

    def __init__(self, name: str, settings: ProcessSettings, site: Site) -> None:
        self.name = name
        self._settings = settings
        self._site = site
        self._root = site.data_dir / name

    async def offers(self) -> Sequence[Offer]:
        """Every type in every zone and market."""
        return await _off_loop(lambda: tuple(self._offers()))

    async def create(self, order: CreateOrder) -> Sighting:
        """Start an agent, or find the one that the same token started before."""
        if TOKEN.fullmatch(order.token) is None:
            raise ProviderRefused(f"{order.token!r} cannot be the name of a folder")
        return await _off_loop(lambda: self._create(order))

    async def describe(self, tokens: Sequence[str]) -> Sequence[Sighting]:
        """What became of them."""
        return await _off_loop(
            lambda: tuple(f.sighting() for f in map(self._folder, tokens) if self._is_ours(f))
        )

    async def list_tagged(self) -> Sequence[Sighting]:
        """All of this deployment that are not gone."""
        return await _off_loop(lambda: tuple(self._living()))

    async def terminate(self, provider_id: str) -> None:
        """Tell it to end; by force when it was told long ago."""
        await _off_loop(lambda: self._terminate(provider_id))

    async def close(self) -> None:
        """Nothing is held open."""

    def _create(self, order: CreateOrder) -> Sighting:
        folder = Folder(self._root / order.token)
        with self._lock():
            if not folder.exists:
                self._check(order.offer)
                self._forget_old()
                folder.create(self._noted(order), self._files(folder, order))
        folder.start(_environment(), within_s=START_WITHIN_S)
        return folder.sighting()

    def _check(self, offer: Offer) -> None:
        zone = self._settings.zones.get(offer.zone)
        if zone is None or offer.instance_type not in self._settings.types:
            raise ProviderRefused(f"there is no {offer.instance_type} in {offer.zone}")
        living = [seen.zone for seen in self._living()]
        if len(living) >= self._settings.quota:
            raise ProviderRefused(f"quota: {self._settings.quota} instances at a time")
        if living.count(offer.zone) >= zone.most:
            raise NoCapacity(f"{offer.zone} has {zone.most} instances already")

    def _noted(self, order: CreateOrder) -> dict[str, Any]:
        return {
            "deployment": order.tags.get(DEPLOYMENT_TAG, ""),
            "cluster": order.cluster,
            "zone": order.offer.zone,
            "instance_type": order.offer.instance_type,
            "market": str(order.offer.market),
            "created_at": self._site.clock.now(),
        }

    def _files(self, folder: Folder, order: CreateOrder) -> dict[str, str]:
        settings, zone = self._settings, self._settings.zones[order.offer.zone]
        config = folder.path / "agent.yaml"
        machine = {
            "argv": [sys.executable, "-m", "atoll.agent", "--config", str(config)],
            "boot_s": settings.boot_s,
            "boots": zone.boots,
            "lasts_s": zone.spot_lasts_s if order.offer.market is Market.SPOT else 0.0,
            "notice_s": settings.notice_s,
            "grace_s": settings.grace_s,
            "ends_with": settings.ends_with,
        }
        return {
            "machine.json": json.dumps(machine),
            "devices.yaml": yaml.safe_dump(_devices(order.offer)),
            config.name: yaml.safe_dump({"agent": self._agent(folder, order)}),
        }

    def _agent(self, folder: Folder, order: CreateOrder) -> dict[str, Any]:
        return {
            **agent_settings(order, self._site, str(folder.data)),
            "measure_load": False,
            "cpu_milli": order.offer.cpu_milli,
            "memory_bytes": order.offer.memory_bytes,
            "node_count": order.offer.nodes,
            "devices_file": str(folder.path / "devices.yaml"),
        }

    def _terminate(self, provider_id: str) -> None:
        folder = self._folder(provider_id.removeprefix(PROVIDER_PREFIX))
        if self._is_ours(folder):
            folder.end(self._site.clock.monotonic(), grace_s=self._settings.grace_s)

    def _offers(self) -> Iterator[Offer]:
        living = [seen.zone for seen in self._living()]
        for zone, what in self._settings.zones.items():
            for name, kind in self._settings.types.items():
                for market, price in ((Market.ON_DEMAND, kind.on_demand), (Market.SPOT, kind.spot)):
                    if price is not None:
                        yield Offer(
                            provider=self.name,
                            zone=zone,
                            region=self._settings.region,
                            instance_type=name,
                            market=market,
                            cpu_milli=round(kind.cpu * 1000),
                            memory_bytes=round(kind.memory_gib * GIB),
                            kind=kind.kind,
                            devices=kind.devices,
                            nodes=kind.nodes,
                            price=micros(price),
                            lead_s=self._settings.boot_s + self._settings.lead_s,
                            notice_s=self._settings.notice_s if market is Market.SPOT else 0.0,
                            available=living.count(zone) < what.most,
                            most=max(0, what.most - living.count(zone)),
                        )

    def _living(self) -> Iterator[Sighting]:
        for folder in self._folders():
            if folder.gone or not self._is_ours(folder):
                continue
            if (seen := folder.sighting()).phase is not Phase.GONE:
                yield seen

    def _forget_old(self) -> None:
        gone = [folder for folder in self._folders() if folder.gone]
        for folder in sorted(gone, key=Folder.ended_at)[:-KEPT_FOLDERS]:
            folder.remove()

    def _folders(self) -> list[Folder]:
        self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
        return [Folder(path) for path in sorted(self._root.iterdir()) if TOKEN.fullmatch(path.name)]

    def _folder(self, token: str) -> Folder:
        """Of any text: one that cannot be a token names a folder that is none."""
        self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Folder(self._root / (token if TOKEN.fullmatch(token) else ".none"))

    def _is_ours(self, folder: Folder) -> bool:
        return folder.exists and bool(folder.order()["deployment"] == self._site.deployment)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """One creation at a time: they are counted."""
        self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self._root / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def make(name: str, given: Mapping[str, Any], site: Site) -> ProcessProvider:
    """Agents on this machine; raises BadProvider."""
    return ProcessProvider(name, read(ProcessSettings, name, given), site)


def _devices(offer: Offer) -> list[dict[str, Any]]:
    return [{"kind": offer.kind, "count": offer.devices}] if offer.devices else []


def _environment() -> dict[str, str]:
    """Ours, without settings that are meant for the broker."""
    return {key: text for key, text in os.environ.items() if not key.startswith("ATOLL_")}


async def _off_loop(act: Callable[[], T]) -> T:
    try:
        return await asyncio.to_thread(act)
    except (OSError, subprocess.SubprocessError) as error:
        raise ProviderUnavailable(f"this machine does not serve: {error}") from error
