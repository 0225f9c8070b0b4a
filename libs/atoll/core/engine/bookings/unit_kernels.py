"""How many units of an amount fit on nodes, and with which devices, compiled.

What fits is asked of the same functions that place jobs. A unit's CPU and memory, when they are
not given, are the share of its node that its devices are.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

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
    Nodes,
    Shapes,
)
from atoll.core.state.compiled import bare
from atoll.core.state.fit_kernels import (
    ANY_DEVICE,
    NO_FIT,
    UNITS,
    VIEW_CUT,
    VIEW_KIND,
    VIEW_MEMORY,
    VIEW_ROWS,
    VIEW_STATE,
    WHOLE,
    Devices,
    Hardware,
    best_slice,
    left_of_share,
    look,
    pick,
    whole_free,
)

DEFAULT: Final = -1
"""CPU or memory: the share of the node that the devices are."""


class Ask(NamedTuple):
    """One amount: a row of shapes of its own, and what of a unit was given."""

    shapes: Shapes
    """(1, SHAPE_WIDTH); its CPU and memory are written anew for every node."""
    cpu: int
    memory: int


class Taken(NamedTuple):
    """Units taken: shares of devices one after another, CPU and memory by node."""

    first: NDArray[np.int64]
    """(rows + 1) where the shares of a node begin."""
    device: NDArray[np.int64]
    blocks: NDArray[np.int64]
    bits: NDArray[np.int64]
    cpu: NDArray[np.int64]
    memory: NDArray[np.int64]
    units: NDArray[np.int64]
    """(rows) that were taken of each."""


@njit(cache=True, nogil=True)
def fitting(
    nodes: Nodes, hardware: Hardware, ask: Ask, rows: NDArray[np.int64], most: int
) -> NDArray[np.int64]:
    """(rows) units that fit on each node, as far as `most`."""
    found = np.zeros(rows.shape[0], np.int64)
    seen = np.zeros((VIEW_ROWS, nodes.model.shape[1]), np.int64)
    for i in range(rows.shape[0]):
        found[i] = _fitting(nodes, hardware, ask, rows[i], seen, most)
    return found


@njit(cache=True, nogil=True)
def take_units(
    nodes: Nodes,
    hardware: Hardware,
    ask: Ask,
    rows: NDArray[np.int64],
    wanted: NDArray[np.int64],
) -> Taken:
    """Take so many units of each node, as far as they fit; `nodes` is written to."""
    wide = nodes.model.shape[1]
    shares = int(wanted.sum()) * int(ask.shapes[0, SHAPE_SHARES])
    room = shares + wide
    out = Devices(np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(room, np.int64))
    size = rows.shape[0]
    first, count = np.zeros(size + 1, np.int64), np.zeros(size, np.int64)
    cpu, memory = np.zeros(size, np.int64), np.zeros(size, np.int64)
    seen = np.zeros((VIEW_ROWS, wide), np.int64)
    at = 0
    for i in range(size):
        before = nodes.cpu_free[rows[i]], nodes.memory_free[rows[i]]
        for _ in range(wanted[i]):
            got = _take(nodes, hardware, ask, rows[i], seen, out, at)
            if got == NO_FIT:
                break
            at += got
            count[i] += 1
        cpu[i] = before[0] - nodes.cpu_free[rows[i]]
        memory[i] = before[1] - nodes.memory_free[rows[i]]
        first[i + 1] = at
    return Taken(first, out.device[:at], out.blocks[:at], out.bits[:at], cpu, memory, count)


@bare
def _take(
    nodes: Nodes,
    hardware: Hardware,
    ask: Ask,
    row: int,
    seen: NDArray[np.int64],
    out: Devices,
    at: int,
) -> int:
    models, cuts, shapes = hardware.models, hardware.cuts, ask.shapes
    look(nodes, models, row, seen)
    _write_share(nodes, hardware, ask, row, seen)
    got = pick(nodes, models, cuts, shapes, 0, row, ANY_DEVICE, seen, out, at)
    if got == NO_FIT:
        return NO_FIT
    nodes.cpu_free[row] -= shapes[0, SHAPE_CPU]
    nodes.memory_free[row] -= shapes[0, SHAPE_MEMORY]
    for share in range(at, at + got):
        nodes.blocks_free[row, out.device[share]] -= out.blocks[share]
        nodes.slices[row, out.device[share]] |= out.bits[share]
    return int(got)


@bare
def _fitting(
    nodes: Nodes, hardware: Hardware, ask: Ask, row: int, seen: NDArray[np.int64], most: int
) -> int:
    shapes = ask.shapes
    look(nodes, hardware.models, row, seen)
    _write_share(nodes, hardware, ask, row, seen)
    cpu, memory = shapes[0, SHAPE_CPU], shapes[0, SHAPE_MEMORY]
    fits = most
    if nodes.cpu_free[row] < cpu or nodes.memory_free[row] < memory:
        return 0
    if cpu > 0:
        fits = min(fits, nodes.cpu_free[row] // cpu)
    if memory > 0:
        fits = min(fits, nodes.memory_free[row] // memory)
    if shapes[0, SHAPE_FORM] != FORM_NONE:
        fits = min(fits, _on_devices(hardware, shapes, seen))
    return int(fits)


@bare
def _on_devices(hardware: Hardware, shapes: Shapes, seen: NDArray[np.int64]) -> int:
    form, shares = shapes[0, SHAPE_FORM], shapes[0, SHAPE_SHARES]
    if form == FORM_WHOLE:
        return int(whole_free(seen, shapes, 0) // shares)
    if form == FORM_SLICES:
        return _slices(hardware, shapes, seen) // int(shares)
    count = 0
    for device in range(seen.shape[1]):
        left = left_of_share(seen, shapes, 0, device)
        if left >= 0:
            each = seen[0, device] - left
            count += 1 + left // max(1, each)
    return count


@bare
def _slices(hardware: Hardware, shapes: Shapes, seen: NDArray[np.int64]) -> int:
    count = 0
    while True:
        device = best_slice(seen, hardware.cuts, shapes, 0)
        if device < 0:
            return count
        cut, state = seen[VIEW_CUT, device], seen[VIEW_STATE, device]
        seen[VIEW_STATE, device] |= hardware.cuts.mask[cut, state, shapes[0, SHAPE_PROFILE]]
        count += 1


@bare
def _write_share(
    nodes: Nodes, hardware: Hardware, ask: Ask, row: int, seen: NDArray[np.int64]
) -> None:
    """CPU and memory of a unit on this node."""
    part = 0.0
    if DEFAULT in (ask.cpu, ask.memory):
        part = _part(nodes, hardware, ask.shapes, row, seen)
    # Rounded down, so that all devices together take no more than the node has.
    cpu = int(max(0, nodes.cpu_cap[row]) * part) if ask.cpu == DEFAULT else ask.cpu
    ask.shapes[0, SHAPE_CPU] = cpu
    memory = int(max(0, nodes.memory_cap[row]) * part) if ask.memory == DEFAULT else ask.memory
    ask.shapes[0, SHAPE_MEMORY] = memory


@bare
def _part(
    nodes: Nodes, hardware: Hardware, shapes: Shapes, row: int, seen: NDArray[np.int64]
) -> float:
    """The part of its node that a unit is, by its devices; of the first that it may have."""
    devices, units = 0, 0
    form, kind = shapes[0, SHAPE_FORM], shapes[0, SHAPE_KIND]
    for device in range(seen.shape[1]):
        if nodes.model[row, device] == 0:
            continue
        devices += 1
        if units == 0 and kind in (ANY, seen[VIEW_KIND, device]):
            units = _units(hardware, shapes, form, seen, device)
    if devices == 0:
        return 0.0
    return float(units / (devices * WHOLE * UNITS))


@bare
def _units(
    hardware: Hardware, shapes: Shapes, form: int, seen: NDArray[np.int64], device: int
) -> int:
    shares = shapes[0, SHAPE_SHARES]
    if form == FORM_SLICES:
        cut, profile = seen[VIEW_CUT, device], shapes[0, SHAPE_PROFILE]
        return int(shares * hardware.cuts.charge[cut, profile]) if profile >= 0 else 0
    if form == FORM_MEMORY:
        memory = max(1, seen[VIEW_MEMORY, device])
        return int(UNITS * min(WHOLE, -(-WHOLE * shapes[0, SHAPE_DEVICE_MEMORY] // memory)))
    if form == FORM_BLOCKS:
        return int(UNITS * shapes[0, SHAPE_BLOCKS])
    return int(UNITS * WHOLE * shares) if form == FORM_WHOLE else 0
