"""MIG slices as another way to give a task the memory that it asks for."""

from collections.abc import Iterator
from dataclasses import replace

from atoll.core.model.mig import profiles_with
from atoll.core.model.resources import BLOCKS_PER_DEVICE, DeviceRequest, TaskShape

Shapes = tuple[TaskShape, ...]


def with_slices(shapes: Shapes) -> Shapes:
    """Alternatives, and behind each that asks for memory those slices that have as much."""
    if not any(shape.device is not None and shape.device.memory_bytes for shape in shapes):
        return shapes
    return tuple(dict.fromkeys(each for shape in shapes for each in _ways(shape)))


def _ways(shape: TaskShape) -> Iterator[TaskShape]:
    yield shape
    device = shape.device
    if device is not None and device.memory_bytes:
        for profile in profiles_with(device.memory_bytes, kind=device.kind):
            slices = DeviceRequest(device.kind, 1, BLOCKS_PER_DEVICE, profile=profile)
            yield replace(shape, device=slices)
