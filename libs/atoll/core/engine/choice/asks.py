"""What a whole job takes of one instance, if one of a kind that can be rented can take it.

A rented machine has whole devices, no labels and no place in a topology but of its own.
"""

from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Final

from atoll.core.model.burst_wants import Ask, TaskAsk
from atoll.core.model.plan import GangRequest, GroupRequest
from atoll.core.model.resources import BLOCKS_PER_DEVICE, DeviceRequest, TaskShape

MOST: Final = 8
"""Alternatives of a job."""


def asks_of(request: GangRequest) -> tuple[Ask, ...]:
    """Alternatives in order of preference; none: it cannot run on what is rented."""
    if not request.burst or request.reservation:
        return ()
    topology = request.topology
    if topology is not None and topology.required:
        return ()
    if any(group.spread is not None and group.min_count > 1 for group in request.groups):
        return ()
    ways = (group.shapes for group in request.groups)
    asks = (_ask(request.groups, shapes) for shapes in islice(product(*ways), MOST))
    return tuple(dict.fromkeys(ask for ask in asks if ask is not None))


def _ask(groups: Sequence[GroupRequest], shapes: Sequence[TaskShape]) -> Ask | None:
    if not all(map(_can_be_had, shapes)):
        return None
    pairs = list(zip(groups, shapes, strict=True))
    kinds = {shape.device.kind for shape in shapes if _wants_devices(shape) and shape.device}
    kinds.discard("")
    if len(kinds) > 1:
        return None
    return Ask(
        kind=next(iter(kinds), ""),
        blocks=_packed(list(_blocks(pairs))),
        cpu_milli=sum(group.count * shape.cpu_milli for group, shape in pairs),
        memory_bytes=sum(group.count * shape.memory_bytes for group, shape in pairs),
        tasks=_tasks(pairs),
    )


def _tasks(pairs: Sequence[tuple[GroupRequest, TaskShape]]) -> tuple[TaskAsk, ...]:
    """None for a job that is one task."""
    if sum(group.count for group, _ in pairs) == 1:
        return ()
    return tuple(
        TaskAsk(group.count, _whole(shape), shape.cpu_milli, shape.memory_bytes)
        for group, shape in pairs
    )


def _whole(shape: TaskShape) -> int:
    """Blocks of the devices of which a task has a part."""
    return shape.device.count * BLOCKS_PER_DEVICE if shape.device is not None else 0


def _can_be_had(shape: TaskShape) -> bool:
    device = shape.device
    asks_for_more = device is not None and bool(device.profile or device.memory_bytes)
    return not shape.labels and not asks_for_more


def _wants_devices(shape: TaskShape) -> bool:
    return shape.device is not None and shape.device.count > 0


def _blocks(pairs: Sequence[tuple[GroupRequest, TaskShape]]) -> Iterator[tuple[int, DeviceRequest]]:
    for group, shape in pairs:
        if shape.device is not None and shape.device.count:
            yield group.count, shape.device


def _packed(wanted: Sequence[tuple[int, DeviceRequest]]) -> int:
    """Blocks of all tasks; whole devices where shares do not fill one device together."""
    total = sum(count * device.count * device.blocks for count, device in wanted)
    if total <= BLOCKS_PER_DEVICE:
        return total
    devices = 0
    for count, device in wanted:
        on_one = BLOCKS_PER_DEVICE // max(1, device.blocks)
        devices += count * device.count if device.whole else -(-count // on_one)
    return devices * BLOCKS_PER_DEVICE
