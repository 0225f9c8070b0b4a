"""Task shapes as rows of numbers, counted by use so that old ones do not pile up."""

from collections.abc import Callable, Sequence

import numpy as np

from atoll.core.model.plan import GangRequest
from atoll.core.model.resources import ANY_KIND, DeviceRequest, TaskShape
from atoll.core.state.columns import (
    ANY,
    FORM_BLOCKS,
    FORM_MEMORY,
    FORM_NONE,
    FORM_SLICES,
    FORM_WHOLE,
    SHAPE_BLOCKS,
    SHAPE_CPU,
    SHAPE_DEVICE_MEMORY,
    SHAPE_FORM,
    SHAPE_KIND,
    SHAPE_MEMORY,
    SHAPE_PROFILE,
    SHAPE_SHARES,
    SHAPE_WIDTH,
    Shapes,
)
from atoll.core.state.interning import Interner
from atoll.core.state.mig import PROFILE_INDEX

NO_PROFILE = -1
NEVER_BLOCKS = 1 << 20
"""More than any device has: a share that says no size fits nowhere."""


class ShapeTable:
    """Rows of shapes; a row is used again once nobody holds its shape."""

    def __init__(self, kinds: Interner[str]) -> None:
        self.values: list[TaskShape | None] = []
        self._kinds = kinds
        self._number: dict[TaskShape, int] = {}
        self._uses: list[int] = []
        self._free: list[int] = []
        self._rows = _empty(16)

    def hold(self, shape: TaskShape) -> int:
        """The shape's row; to be let go as often as it was held."""
        number = self._number.get(shape)
        if number is None:
            number = self._number[shape] = self._new(shape)
        self._uses[number] += 1
        return number

    def let_go(self, number: int) -> None:
        """End one use of a row."""
        self._uses[number] -= 1
        shape = self.values[number]
        if not self._uses[number] and shape is not None:
            del self._number[shape]
            self.values[number] = None
            self._free.append(number)

    def copy(self) -> Shapes:
        """All rows as they stand."""
        return self._rows[: max(1, len(self.values))].copy()

    def _new(self, shape: TaskShape) -> int:
        if self._free:
            number = self._free.pop()
            self.values[number] = shape
        else:
            number = len(self.values)
            self.values.append(shape)
            self._uses.append(0)
        if number == len(self._rows):
            self._rows = np.concatenate([self._rows, _empty(len(self._rows))])
        write_shape(self._rows, number, shape=shape, kinds=self._kinds)
        return number


def shapes_of(values: Sequence[TaskShape], kinds: Callable[[str], int]) -> Shapes:
    """Rows for some shapes, in their order."""
    rows = _empty(max(1, len(values)))
    for number, shape in enumerate(values):
        write_shape(rows, number, shape=shape, kinds=kinds)
    return rows


def write_shape(
    rows: Shapes, number: int, *, shape: TaskShape, kinds: Callable[[str], int]
) -> None:
    """Write one shape as numbers."""
    device = shape.device
    row = rows[number]
    row[SHAPE_CPU] = shape.cpu_milli
    row[SHAPE_MEMORY] = shape.memory_bytes
    row[SHAPE_FORM] = form_of(device)
    row[SHAPE_SHARES] = device.count if device else 0
    row[SHAPE_BLOCKS] = device.blocks if device and device.blocks > 0 else NEVER_BLOCKS
    row[SHAPE_KIND] = kinds(device.kind) if device and device.kind != ANY_KIND else ANY
    row[SHAPE_PROFILE] = PROFILE_INDEX.get(device.profile, NO_PROFILE) if device else NO_PROFILE
    row[SHAPE_DEVICE_MEMORY] = device.memory_bytes if device else 0


def watched_kinds(request: GangRequest, kinds: Interner[str]) -> tuple[int, ...]:
    """Device kinds whose release could make a request fit; ANY when every release could."""
    devices = {shape.device for group in request.groups for shape in group.shapes}
    if any(device is None or device.kind == ANY_KIND for device in devices):
        return (ANY,)
    return tuple(sorted(kinds(device.kind) for device in devices if device))


def form_of(device: DeviceRequest | None) -> int:
    """Which of the forms FORM_* a device request has."""
    if device is None or not device.count:
        return FORM_NONE
    if device.profile:
        return FORM_SLICES
    if device.memory_bytes:
        return FORM_MEMORY
    return FORM_WHOLE if device.whole else FORM_BLOCKS


def _empty(size: int) -> Shapes:
    return np.zeros((size, SHAPE_WIDTH), np.int64)
