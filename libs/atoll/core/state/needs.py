"""What a whole gang asks for by resource, as far as can be said before it has a place."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.plan import GangRequest
from atoll.core.model.resources import ANY_KIND, BLOCKS_PER_DEVICE, DeviceRequest
from atoll.core.state.mig import TABLES, UNITS_PER_BLOCK, UNITS_PER_DEVICE
from atoll.core.state.shares import CPU, DEVICES, MEMORY, Floats, Ints

NO_KIND: Final = -1
"""Of a class that asks for no device."""
_ANY: Final = -1


class Need(NamedTuple):
    """Amounts by the first alternatives: any other may come out instead."""

    cpu_milli: int
    memory_bytes: int
    devices: tuple[tuple[int, int], ...]
    """(device kind, 1/56 block), the kind asked for first in front; kind -1: any."""


NOTHING: Final = Need(0, 0, ())


class Needs(NamedTuple):
    """Needs of C classes over R resources."""

    amount: Ints
    """(C, R)."""
    kind: NDArray[np.int64]
    """(C) the device kind that each asks for, or NO_KIND."""


def need_of(request: GangRequest, kind_number: Callable[[str], int]) -> Need:
    """What all tasks of a request want together."""
    cpu = memory = 0
    devices: dict[int, int] = {}
    for group in request.groups:
        shape = group.shapes[0]
        cpu += group.count * shape.cpu_milli
        memory += group.count * shape.memory_bytes
        if shape.device is not None and shape.device.count:
            kind = _ANY if shape.device.kind == ANY_KIND else kind_number(shape.device.kind)
            devices[kind] = devices.get(kind, 0) + group.count * units_of(shape.device)
    return Need(cpu, memory, tuple(devices.items()))


def least_units(request: GangRequest) -> int:
    """1/56 blocks that the least count of a gang takes; 0 when no number is sure."""
    total = 0
    for group in request.groups:
        devices = [shape.device for shape in group.shapes]
        if any(d is None or d.profile or d.memory_bytes for d in devices):
            return 0
        total += group.min_count * min(units_of(d) for d in devices if d)
    return total


def units_of(device: DeviceRequest) -> int:
    """1/56 blocks of a request; a share given by its memory counts as a whole device."""
    if device.profile:
        tables = [(t, p) for t in TABLES if (p := t.find(device.profile))]
        charge = min((t.charge(p) for t, p in tables), default=UNITS_PER_DEVICE)
        return device.count * charge
    blocks = BLOCKS_PER_DEVICE if device.memory_bytes else device.blocks
    return device.count * blocks * UNITS_PER_BLOCK


def stack(needs: Iterable[Need], capacity: Floats) -> Needs:
    """Needs as arrays; any kind is taken for the one that there is most of. `capacity`: (R)."""
    each: Sequence[Need] = tuple(needs)
    most = int(capacity[DEVICES:].argmax()) if len(capacity) > DEVICES else NO_KIND
    amount = np.zeros((len(each), len(capacity)), np.int64)
    amount[:, CPU] = [need.cpu_milli for need in each]
    amount[:, MEMORY] = [need.memory_bytes for need in each]
    kind = np.full(len(each), NO_KIND, np.int64)
    for at, need in enumerate(each):
        for number, units in reversed(need.devices):
            kind[at] = most if number == _ANY else number
            if 0 <= kind[at] < amount.shape[1] - DEVICES:
                amount[at, DEVICES + kind[at]] += units
    return Needs(amount, kind)
