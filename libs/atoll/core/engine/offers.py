"""What nodes have when they are empty, equal ones summed up."""

from collections import Counter
from dataclasses import dataclass

from atoll.core.model.inventory import Device, NodeInventory
from atoll.core.model.reason import ReasonCode
from atoll.core.model.resources import (
    ANY_KIND,
    BLOCKS_PER_DEVICE,
    DeviceRequest,
    TaskShape,
)
from atoll.core.state.mig import Layout, Profile, layout_of, legal_starts, table_for

Labels = tuple[tuple[str, str], ...]
Domains = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, order=True)
class DeviceOffer:
    """A device of a node; its index does not matter."""

    kind: str
    memory_bytes: int
    mig: bool
    layout: Layout
    mig_dynamic: bool = False


@dataclass(frozen=True, slots=True, order=True)
class NodeOffer:
    """What a node has when nothing runs on it."""

    cpu_milli: int
    memory_bytes: int
    devices: tuple[tuple[DeviceOffer, int], ...]
    labels: Labels
    domains: Domains
    """(level, domain), from the widest level to the narrowest."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What a node lacks for one task, even when it is empty."""

    code: ReasonCode
    available: int = 0


def offer_of(inventory: NodeInventory) -> NodeOffer:
    """A node's offer; broken devices count, they may be repaired."""
    devices = Counter(_device_offer(device) for device in inventory.devices)
    return NodeOffer(
        inventory.cpu_milli,
        inventory.memory_bytes,
        tuple(sorted(devices.items())),
        inventory.labels,
        inventory.domains,
    )


def tasks_on(offer: NodeOffer, shape: TaskShape, *, most: int) -> int:
    """How many tasks of a shape the empty node holds, up to `most`."""
    if not _labels_match(offer, shape):
        return 0
    count = most
    if shape.cpu_milli:
        count = min(count, offer.cpu_milli // shape.cpu_milli)
    if shape.memory_bytes:
        count = min(count, offer.memory_bytes // shape.memory_bytes)
    if shape.device is None:
        return count
    return min(count, _shares(offer, shape.device) // shape.device.count)


def shortfall(offer: NodeOffer, shape: TaskShape) -> Shortfall:
    """Why the empty node does not hold one task of a shape; it is known not to."""
    if not _labels_match(offer, shape):
        return Shortfall(ReasonCode.LABELS_MISMATCH)
    device = shape.device
    if device is not None:
        if not any(_matches(each, device) for each, _ in offer.devices):
            return Shortfall(ReasonCode.DEVICE_KIND_ABSENT)
        if device.profile and not _shares(offer, device):
            return Shortfall(ReasonCode.PROFILE_ABSENT)
        if _shares(offer, device) < device.count:
            return Shortfall(ReasonCode.DEVICES_SHORT, _shares(offer, device))
    if offer.cpu_milli < shape.cpu_milli:
        return Shortfall(ReasonCode.CPU_SHORT, offer.cpu_milli)
    return Shortfall(ReasonCode.MEMORY_SHORT, offer.memory_bytes)


def _labels_match(offer: NodeOffer, shape: TaskShape) -> bool:
    if not set(shape.labels) <= set(offer.labels):
        return False
    keys = {key for key, _ in offer.labels}
    return not any(
        (key, value) in offer.labels if value else key in keys for key, value in shape.labels_not
    )


def _device_offer(device: Device) -> DeviceOffer:
    layout = () if device.mig_dynamic else layout_of(device)
    mig = device.mig and not device.mig_dynamic
    return DeviceOffer(device.kind, device.memory_bytes, mig, layout, device.mig_dynamic)


def _matches(offer: DeviceOffer, device: DeviceRequest) -> bool:
    if not offer.mig_dynamic and offer.mig != bool(device.profile):
        return False
    return device.kind in (ANY_KIND, offer.kind)


def _shares(offer: NodeOffer, device: DeviceRequest) -> int:
    return sum(
        count * _shares_of(each, device) for each, count in offer.devices if _matches(each, device)
    )


def _shares_of(offer: DeviceOffer, device: DeviceRequest) -> int:
    if device.profile:
        return _slices_of(offer, device.profile)
    if device.memory_bytes:
        if not offer.memory_bytes:
            return 0
        blocks = -(-BLOCKS_PER_DEVICE * device.memory_bytes // offer.memory_bytes)
        return BLOCKS_PER_DEVICE // blocks
    return BLOCKS_PER_DEVICE // device.blocks if device.blocks > 0 else 0


def _slices_of(offer: DeviceOffer, name: str) -> int:
    table = table_for(offer.kind, offer.memory_bytes)
    profile = table.find(name) if table else None
    if table is None or profile is None:
        return 0
    starts = legal_starts(table, profile, offer.layout)
    return min(1, len(starts)) if profile.media else _disjoint(profile, starts)


def _disjoint(profile: Profile, starts: tuple[int, ...]) -> int:
    count, free = 0, 0
    for start in sorted(starts):
        if start >= free:
            count, free = count + 1, start + profile.slices
    return count
