"""Bookings as demand that is certain: what their windows take, nobody else can have."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from atoll.core.engine.burst.demand.series import Booked, Key
from atoll.core.model.burst import chain_of
from atoll.core.model.reservation import Amount
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.ports.store.bookings import Kept

Bookings = Callable[[], Awaitable[list[Kept]]]
"""All occurrences that are not over."""


@dataclass(frozen=True, slots=True)
class Window:
    """Devices that are booked from one time to another, unix seconds."""

    devices: float
    start_at: float
    end_at: float


Windows = Mapping[Key, tuple[Window, ...]]


async def no_bookings() -> list[Kept]:
    """Where nobody books."""
    return []


def windows_of(kept: Iterable[Kept], *, now: float) -> Windows:
    """Of windows that have not begun: who runs in one that has is among the jobs.

    Amounts of devices only: of whole nodes and of parts of clusters the spec tells no kind.
    """
    found: dict[Key, tuple[Window, ...]] = {}
    for each in kept:
        occurrence, spec = each.occurrence, each.reservation.spec
        if occurrence.start_at <= now:
            continue
        payers = {
            queue or "" for owner in spec.owners.queues or (None,) for queue in chain_of(owner)
        }
        for amount in spec.what.amounts:
            if amount.device is not None and amount.device.kind:
                window = Window(_devices(amount), occurrence.start_at, occurrence.end_at)
                for queue in payers:
                    key = Key(queue, amount.device.kind)
                    found[key] = (*found.get(key, ()), window)
    return found


def ahead(windows: Iterable[Window], at: float, *, stretch: float) -> tuple[Booked, ...]:
    """As seen from an origin, on the forecast's own scale of time."""
    return tuple(
        Booked(each.devices, (each.start_at - at) * stretch, (each.end_at - at) * stretch)
        for each in windows
    )


def _devices(amount: Amount) -> float:
    device = amount.device
    assert device is not None
    return amount.count * device.count * (device.blocks or BLOCKS_PER_DEVICE) / BLOCKS_PER_DEVICE
