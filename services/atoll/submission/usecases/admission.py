"""Whether a job could ever run, on any cluster there is, were everything free.

The sums over all nodes are costly to make and change slowly. An old one is good enough to let a
job in, while a new one is made beside; one that is about to refuse a job is made anew first.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from atoll.core.engine.capacity import CapacitySummary, fits_ever
from atoll.core.model.burst import Offer
from atoll.core.model.burst_join import is_rented
from atoll.core.model.errors import DomainError, ErrorCode, FieldViolation, InvalidInput
from atoll.core.model.ids import DEFAULT_SHARD, ShardId
from atoll.core.model.inventory import Cluster, ClusterState, Node
from atoll.core.model.plan import GangRequest
from atoll.core.model.reason import Reason
from atoll.ports.clock import Clock

FRESH_S: Final = 3.0
"""A summary that refuses a job is at most this old, or MOST_SHARE of the time would go into it."""
STALE_S: Final = 60.0
"""A summary older than this is made anew, after having been used once more."""
MOST_SHARE: Final = 0.05
NODES_PER_PAGE: Final = 500
"""Few, so that calls in between need not wait long."""
MOST_REMEMBERED: Final = 50_000
MOST_REASONS: Final = 5


class Inventory(Protocol):
    """The part of the store that admission reads."""

    async def clusters(self) -> list[Cluster]:
        """All clusters by name, retired ones too."""
        ...

    async def nodes(self, cluster: str, *, after: tuple[str, str], limit: int) -> list[Node]:
        """Present nodes by (cluster, name), only those after `after`; cluster empty: all."""
        ...

    async def rentable(self) -> list[Offer]:
        """Machines on offer that some queue may rent."""
        ...


@dataclass(slots=True)
class _Known:
    """What is known of the clusters, and what was found out with it."""

    at: float
    """Monotonic time."""
    took_s: float
    shards: Mapping[ShardId, CapacitySummary]
    rentable: CapacitySummary
    """Machines that may be rented, each for itself."""
    fitting: dict[GangRequest, tuple[ShardId, ...]] = field(default_factory=dict)


class Admission:
    """Finds the shards that could ever run a request."""

    def __init__(self, inventory: Inventory, clock: Clock) -> None:
        self._inventory = inventory
        self._clock = clock
        self._known: _Known | None = None
        self._loading = asyncio.Lock()
        self._refreshing: asyncio.Task[None] | None = None

    async def shards_for(self, requests: Iterable[GangRequest]) -> list[tuple[ShardId, ...]]:
        """The shards that could run each request; raises InvalidInput NEVER_FITS.

        Without any cluster nothing is refused: the first one may be about to register.
        """
        asked = list(requests)
        known = self._known or await self._fresh()
        if self._age_s(known) > STALE_S:
            self._refresh_soon()
        found = [_fitting(known, request) for request in asked]
        if not all(found):
            known = await self._fresh()
            found = [_fitting(known, request) for request in asked]
        if not all(found):
            raise _never_fits(known, asked)
        return found

    async def _fresh(self) -> _Known:
        async with self._loading:
            known = self._known
            if known is None or self._age_s(known) > max(FRESH_S, known.took_s / MOST_SHARE):
                known = self._known = await self._load()
            return known

    def _age_s(self, known: _Known) -> float:
        return self._clock.monotonic() - known.at

    def _refresh_soon(self) -> None:
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._refresh())

    async def _refresh(self) -> None:
        # A store that is away refuses the submit itself; the old summary stays until it is back.
        with contextlib.suppress(DomainError):
            await self._fresh()

    async def _load(self) -> _Known:
        at = self._clock.monotonic()
        clusters = [c for c in await self._inventory.clusters() if _counts(c)]
        nodes: list[Node] = []
        after = ("", "")
        while page := await self._inventory.nodes("", after=after, limit=NODES_PER_PAGE):
            nodes.extend(page)
            after = (page[-1].cluster, page[-1].inventory.name)
        rentable = CapacitySummary.offered(await self._inventory.rentable())
        return _Known(at, self._clock.monotonic() - at, _by_shard(clusters, nodes), rentable)


def _counts(cluster: Cluster) -> bool:
    # What is rented will not stay: what may be rented counts instead.
    return cluster.state is not ClusterState.RETIRED and not is_rented(cluster.name)


def _by_shard(clusters: list[Cluster], nodes: list[Node]) -> dict[ShardId, CapacitySummary]:
    shard_of = {cluster.name: cluster.shard for cluster in clusters}
    return {
        shard: CapacitySummary.of(
            [node for node in nodes if shard_of.get(node.cluster) == shard],
            [cluster for cluster in clusters if cluster.shard == shard],
        )
        for shard in sorted(set(shard_of.values()))
    }


def _fitting(known: _Known, request: GangRequest) -> tuple[ShardId, ...]:
    if not known.shards:
        return (DEFAULT_SHARD,)
    found = known.fitting.get(request)
    if found is None:
        found = tuple(
            shard for shard, summary in known.shards.items() if not fits_ever(summary, request)
        )
        if not found and _may_be_rented_for(known, request):
            found = (DEFAULT_SHARD,)
        if len(known.fitting) < MOST_REMEMBERED:
            known.fitting[request] = found
    return found


def _may_be_rented_for(known: _Known, request: GangRequest) -> bool:
    return bool(
        request.burst
        and not request.reservation
        and known.rentable.clusters
        and not fits_ever(known.rentable, request)
    )


def _never_fits(known: _Known, requests: list[GangRequest]) -> InvalidInput:
    violations = [
        FieldViolation(f"jobs[{i}]", _told(known, request), ErrorCode.NEVER_FITS)
        for i, request in enumerate(requests)
        if not _fitting(known, request)
    ]
    return InvalidInput(tuple(violations), code=ErrorCode.NEVER_FITS)


def _told(known: _Known, request: GangRequest) -> str:
    reasons: dict[str, None] = {}
    for summary in known.shards.values():
        reasons.update(dict.fromkeys(map(_sentence, fits_ever(summary, request))))
    return "can never run on any cluster: " + "; ".join(list(reasons)[:MOST_REASONS])


def _sentence(reason: Reason) -> str:
    return f"{reason.message} ({reason.help})" if reason.help else reason.message
