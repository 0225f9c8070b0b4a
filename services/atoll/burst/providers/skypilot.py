"""Rents through SkyPilot: every cloud that it knows, by its SDK and its API server.

An instance is a SkyPilot cluster of one node, and the token is a part of its name: SkyPilot
works on one cluster of a name at a time, and takes one that is there for what is launched. It
has no tags that it can be asked for, so the name also tells whose the cluster is.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from importlib import import_module
from typing import Any, Final

from atoll.burst.providers.boot import script
from atoll.burst.providers.site import Site, read
from atoll.burst.providers.sky_calls import Calls, Records, field
from atoll.burst.providers.sky_offers import SkySettings, offers_of, zone_of
from atoll.core.model.burst import MICROS, Market, Offer
from atoll.ports.provider import (
    CreateOrder,
    NoCapacity,
    Phase,
    ProviderRefused,
    ProviderUnavailable,
    Sighting,
)

PHASES: Final = {"PENDING": Phase.PENDING, "INIT": Phase.PENDING, "UP": Phase.RUNNING}
"""Other states are on the way to the end."""
LOOK_S: Final = 0.5
LAUNCH: Final = "launch"
DOWN: Final = "down"
REFUSALS: Final = frozenset({
    "InvalidClusterNameError",
    "NoCloudAccessError",
    "NotSupportedError",
    "PermissionDeniedError",
    "ResourcesMismatchError",
})
"""Of SkyPilot's exceptions: asking again changes nothing."""


class SkyProvider:
    """A `Provider` over SkyPilot's SDK."""

    def __init__(self, name: str, settings: SkySettings, site: Site, *, sky: Any) -> None:
        self.name = name
        self._settings = settings
        self._site = site
        self._calls = Calls(sky, timeout_s=settings.timeout_s)
        self._prefix = f"atoll-{sha256(site.deployment.encode()).hexdigest()[:8]}-"

    async def offers(self) -> Sequence[Offer]:
        """What the settings name, if SkyPilot answers."""
        await self._calls.alive()
        return tuple(offers_of(self.name, self._settings))

    async def create(self, order: CreateOrder) -> Sighting:
        """Launch it, or find what the same token launched before."""
        if known := await self.describe([order.token]):
            return known[0]
        cluster = self._prefix + order.token
        try:
            task = self._calls.task(cluster, run=self._run(order), **_resources(order.offer))
            request = await self._calls.launch(task, cluster)
            await self._settled(request)
        except ProviderUnavailable:
            raise
        except Exception as error:
            raise _refusal(error) from error
        seen = await self.describe([order.token])
        return seen[0] if seen else self._launching(cluster)

    async def describe(self, tokens: Sequence[str]) -> Sequence[Sighting]:
        """What became of them; of those that are gone SkyPilot's history tells."""
        names = [self._prefix + token for token in tokens]
        found = list(self._seen(await self._calls.look(names), names))
        missing = set(names) - {seen.provider_id for seen in found}
        if missing:
            found += [self._gone(name) for name in await self._calls.ended(missing)]
        return tuple(found)

    async def list_tagged(self) -> Sequence[Sighting]:
        """All of this deployment that are not gone."""
        return tuple(self._seen(await self._calls.look(None), None))

    async def terminate(self, provider_id: str) -> None:
        """Take it down, unless that is under way."""
        records = await self._calls.look([provider_id])
        there = any(field(each, "name") == provider_id for each in records.clusters)
        under_way = records.requests.get(provider_id, "")
        if under_way != DOWN and (there or under_way == LAUNCH):
            await self._calls.down(provider_id)

    async def close(self) -> None:
        """Let the threads go."""
        self._calls.close()

    def _run(self, order: CreateOrder) -> str:
        try:
            text = script(order, self._site, self._settings.boot)
        except OSError as error:
            raise ProviderUnavailable(f"its certificates cannot be read: {error}") from error
        return f"sudo -n bash -c {shlex.quote(text)}"

    async def _settled(self, request: str) -> None:
        """Wait a while for a launch to fail; one that does not goes on by itself."""
        for _ in range(round(self._settings.settle_s / LOOK_S)):
            if await self._calls.finished(request):
                await self._calls.result(request)
                return
            await self._site.clock.sleep(LOOK_S)

    def _seen(self, records: Records, names: Sequence[str] | None) -> Iterator[Sighting]:
        """Clusters, and launches that have made none yet."""
        known = set()
        for each in records.clusters:
            known.add(field(each, "name"))
            if self._is_ours(field(each, "name"), names):
                yield self._sighting(each, ending=records.requests.get(field(each, "name")) == DOWN)
        for name, what in records.requests.items():
            if what == LAUNCH and name not in known and self._is_ours(name, names):
                yield self._launching(name)

    def _is_ours(self, name: str, names: Sequence[str] | None) -> bool:
        return name.startswith(self._prefix) and (names is None or name in names)

    def _sighting(self, record: Any, *, ending: bool) -> Sighting:
        status = str(getattr(field(record, "status"), "value", field(record, "status")))
        launched = field(field(record, "handle"), "launched_resources")
        return Sighting(
            token=field(record, "name").removeprefix(self._prefix),
            provider_id=field(record, "name"),
            phase=Phase.ENDING if ending else PHASES.get(status, Phase.ENDING),
            zone=zone_of(launched, self._settings) if launched is not None else "",
            instance_type=str(field(launched, "instance_type") or ""),
            created_at=float(field(record, "launched_at") or 0.0),
        )

    def _launching(self, name: str) -> Sighting:
        return Sighting(name.removeprefix(self._prefix), name, Phase.PENDING)

    def _gone(self, name: str) -> Sighting:
        return Sighting(name.removeprefix(self._prefix), name, Phase.GONE)


def make(name: str, given: Mapping[str, Any], site: Site) -> SkyProvider:
    """SkyPilot as it is set up for this user; raises BadProvider, and ImportError without it."""
    settings = read(SkySettings, name, given)
    return SkyProvider(name, settings, site, sky=import_module("sky"))


def _resources(offer: Offer) -> dict[str, Any]:
    """No dearer than what was bound for it."""
    return {
        "infra": offer.zone.replace(":", "/"),
        "instance_type": offer.instance_type,
        "use_spot": offer.market is Market.SPOT,
        "max_hourly_cost": offer.price / MICROS,
    }


def _refusal(error: Exception) -> Exception:
    kind = type(error).__name__
    if kind == "ResourcesUnavailableError":
        return NoCapacity(str(error))
    if kind in REFUSALS:
        return ProviderRefused(str(error))
    return ProviderUnavailable(f"{kind}: {error}")
