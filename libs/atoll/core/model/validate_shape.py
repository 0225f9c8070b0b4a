"""Rules of amounts: CPU, memory and the three forms of a device request."""

from collections.abc import Collection
from typing import Final

from atoll.core.model.resources import BLOCKS_PER_DEVICE, DeviceRequest, TaskShape
from atoll.core.model.validate_faults import Faults
from atoll.core.model.validate_text import check_device_kind, check_labels

MOST_TASKS: Final = 1 << 14
MOST_CPU_MILLI: Final = 1_000_000_000
MOST_MEMORY_BYTES: Final = 1 << 48
"""256 TiB: times MOST_TASKS it stays below 2^63."""
MOST_DEVICES: Final = 1_024


def check_shape(faults: Faults, at: str, shape: TaskShape, *, profiles: Collection[str]) -> None:
    """What one task takes: some CPU, any memory, devices in one of three forms."""
    faults.number(f"{at}.cpu_milli", shape.cpu_milli, least=1, most=MOST_CPU_MILLI)
    faults.number(f"{at}.memory_bytes", shape.memory_bytes, least=0, most=MOST_MEMORY_BYTES)
    check_labels(faults, f"{at}.labels", shape.labels)
    check_labels(faults, f"{at}.labels_not", shape.labels_not)
    if shape.device is not None:
        check_device(faults, f"{at}.device", shape.device, profiles=profiles)


def check_device(
    faults: Faults, at: str, device: DeviceRequest, *, profiles: Collection[str]
) -> None:
    """Devices in one of three forms: whole ones, a share of one, MIG slices."""
    check_device_kind(faults, f"{at}.kind", device.kind)
    counted = faults.number(f"{at}.count", device.count, least=1, most=MOST_DEVICES)
    if device.profile:
        _check_slices(faults, at, device, profiles=profiles)
    elif device.memory_bytes:
        _check_memory_share(faults, at, device)
    elif (
        faults.number(
            f"{at}.blocks", device.blocks, least=1, most=BLOCKS_PER_DEVICE, unit="blocks (1 % each)"
        )
        and counted
        and device.count > 1
        and device.blocks < BLOCKS_PER_DEVICE
    ):
        faults.add(f"{at}.count", "a share is of one device; ask for 1, or for whole devices")


def _check_slices(
    faults: Faults, at: str, device: DeviceRequest, *, profiles: Collection[str]
) -> None:
    faults.one_of(f"{at}.profile", device.profile, profiles)
    if device.blocks not in (0, BLOCKS_PER_DEVICE):
        faults.add(f"{at}.blocks", "a MIG profile has no blocks: leave them at 0")
    if device.memory_bytes:
        faults.add(f"{at}.memory_bytes", "follows from the MIG profile: leave it at 0")


def _check_memory_share(faults: Faults, at: str, device: DeviceRequest) -> None:
    faults.number(f"{at}.memory_bytes", device.memory_bytes, least=1, most=MOST_MEMORY_BYTES)
    if device.blocks:
        faults.add(f"{at}.blocks", "follow from memory_bytes: leave them at 0")
    if device.count > 1:
        faults.add(f"{at}.count", "a share by memory is of one device: ask for 1")
