"""What a job counts as in the demand for devices, or for processors."""

from typing import Final

from atoll.core.model.plan import GangRequest, GroupRequest
from atoll.core.model.resources import BLOCKS_PER_DEVICE, DeviceRequest

SLICES_OF_A_DEVICE: Final = 7


def demand_of(request: GangRequest) -> tuple[str, float]:
    """Kind and devices that a job would take first: its first choices, the kind it has most of."""
    devices: dict[str, float] = {}
    for group in request.groups:
        kind, amount = _group(group)
        devices[kind] = devices.get(kind, 0.0) + amount
    kind = max(devices, key=lambda each: devices[each], default="")
    return kind, devices.get(kind, 0.0)


def cores_of(request: GangRequest) -> float:
    """Processors that a job would take first."""
    return sum(group.count * group.shapes[0].cpu_milli for group in request.groups) / 1000


def _group(group: GroupRequest) -> tuple[str, float]:
    device = group.shapes[0].device
    return ("", 0.0) if device is None else (device.kind, group.count * _devices(device))


def _devices(device: DeviceRequest) -> float:
    if device.profile:
        slices = device.profile.partition("g")[0]
        return device.count * int(slices if slices.isdigit() else 1) / SLICES_OF_A_DEVICE
    # How much of a device a share by memory is depends on the device: it counts as a whole one.
    return device.count * (device.blocks or BLOCKS_PER_DEVICE) / BLOCKS_PER_DEVICE
