"""Bookings as demand that is certain: what their windows take, nobody else can have."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from atoll.core.engine.burst.demand.series import Booked, Key
from atoll.core.model.booking import NodeShare
from atoll.core.model.burst import chain_of
from atoll.core.model.ids import NodeId
from atoll.core.model.reservation import Amount
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.ports.store.bookings import Kept
from atoll.ports.store.demand import NodeParts

CPU: Final = "cpu"
"""Kind of the series of those who take no devices: they are counted in processors."""
NO_PARTS: Final = NodeParts((), 0.0)

Bookings = Callable[[], Awaitable[list[Kept]]]
"""All occurrences that are not over."""


@dataclass(frozen=True, slots=True)
class Window:
    """Devices (or processors) that are booked from one time to another, unix seconds."""

    devices: float
    start_at: float
    end_at: float


Windows = Mapping[Key, tuple[Window, ...]]


async def no_bookings() -> list[Kept]:
    """Where nobody books."""
    return []


def nodes_in(kept: Iterable[Kept]) -> set[NodeId]:
    """Where the windows lie."""
    parts = (part for each in kept for part in each.occurrence.parts)
    return {share.node for part in parts for share in part.shares}


def windows_of(kept: Iterable[Kept], nodes: Mapping[NodeId, NodeParts], *, now: float) -> Windows:
    """Of windows that have not begun: who runs in one that has is among the jobs.

    What is booked is what of its nodes it has, by kind; where it has none, what it asks for.
    """
    found: dict[Key, list[Window]] = defaultdict(list)
    for each in kept:
        occurrence, owners = each.occurrence, each.reservation.spec.owners
        if occurrence.start_at <= now:
            continue
        payers = {queue or "" for owner in owners.queues or (None,) for queue in chain_of(owner)}
        for kind, amount in _booked(each, nodes).items():
            window = Window(amount, occurrence.start_at, occurrence.end_at)
            for queue in payers:
                found[Key(queue, kind)].append(window)
    return {key: tuple(windows) for key, windows in found.items()}


def ahead(windows: Iterable[Window], at: float, *, stretch: float) -> tuple[Booked, ...]:
    """As seen from an origin, on the forecast's own scale of time."""
    return tuple(
        Booked(each.devices, (each.start_at - at) * stretch, (each.end_at - at) * stretch)
        for each in windows
    )


def _booked(kept: Kept, nodes: Mapping[NodeId, NodeParts]) -> dict[str, float]:
    """Devices by kind, and processors."""
    found: dict[str, float] = defaultdict(float)
    for share in (share for part in kept.occurrence.parts for share in part.shares):
        parts = nodes.get(share.node, NO_PARTS)
        found[CPU] += parts.cores if share.whole else share.cpu_milli / 1000
        for kind, amount in _of_share(share, parts):
            found[kind] += amount
    if not found:
        for each in (kept.occurrence.what or kept.reservation.spec.what).amounts:
            kind = each.device.kind if each.device is not None else CPU
            found[kind] += _asked(each)
    return {kind: amount for kind, amount in found.items() if kind and amount > 0}


def _of_share(share: NodeShare, parts: NodeParts) -> Iterator[tuple[str, float]]:
    if share.whole:
        yield from ((kind, 1.0) for kind in parts.kinds)
        return
    for grant in share.devices:
        if grant.index < len(parts.kinds):
            yield parts.kinds[grant.index], (grant.blocks or BLOCKS_PER_DEVICE) / BLOCKS_PER_DEVICE


def _asked(amount: Amount) -> float:
    device = amount.device
    if device is None:
        return amount.count * (amount.cpu_milli or 0) / 1000
    return amount.count * device.count * (device.blocks or BLOCKS_PER_DEVICE) / BLOCKS_PER_DEVICE
