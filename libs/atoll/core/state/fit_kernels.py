"""Whether a task fits on a node, and with which devices: the one check that everything uses."""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.state.columns import (
    ANY,
    FORM_BLOCKS,
    FORM_MEMORY,
    FORM_NONE,
    FORM_WHOLE,
    MODE_BLOCKS,
    MODE_MIG,
    Cuts,
    Models,
    Nodes,
    Shapes,
)

NO_FIT: Final = -1
_WHOLE: Final = 100
_FAR: Final = 1 << 30


class Devices(NamedTuple):
    """Where chosen shares of devices are written, one entry per share."""

    device: NDArray[np.int64]
    blocks: NDArray[np.int64]
    bits: NDArray[np.int64]


class Hardware(NamedTuple):
    """Device models and MIG tables."""

    models: Models
    cuts: Cuts


@njit(cache=True, nogil=True)
def pick(
    nodes: Nodes, hardware: Hardware, shapes: Shapes, shape: int, row: int, out: Devices, at: int
) -> int:
    """Shares for one task of `shape` on node `row`, written to out[at:]; their number.

    NO_FIT when the node is too small; `out` may have been written to then, too. There must
    be room for `count` shares. Ignores status and labels: those are filters.
    """
    if nodes.cpu_free[row] < shapes.cpu[shape] or nodes.memory_free[row] < shapes.memory[shape]:
        return NO_FIT
    form = shapes.form[shape]
    if form == FORM_NONE:
        return 0
    if form == FORM_WHOLE:
        return _pick_whole(nodes, hardware, shapes, shape, row, out, at)
    if form in (FORM_BLOCKS, FORM_MEMORY):
        return _pick_share(nodes, hardware, shapes, shape, row, out, at)
    return _pick_slices(nodes, hardware, shapes, shape, row, out, at)


@njit(cache=True, nogil=True)
def blocks_needed(hardware: Hardware, shapes: Shapes, shape: int, model: int) -> int:
    """Blocks of a device of `model` that a share takes; more than 100 when it is too small."""
    if shapes.form[shape] != FORM_MEMORY:
        return int(shapes.blocks[shape])
    memory = hardware.models.memory[model]
    if memory <= 0:
        return _FAR
    return int(-(-_WHOLE * shapes.device_memory[shape] // memory))


@njit(cache=True, nogil=True)
def _usable(
    nodes: Nodes, hardware: Hardware, shapes: Shapes, shape: int, row: int, device: int, mode: int
) -> bool:
    model = nodes.model[row, device]
    if hardware.models.mode[model] != mode:
        return False
    return bool(shapes.kind[shape] == ANY or hardware.models.kind[model] == shapes.kind[shape])


@njit(cache=True, nogil=True)
def _pick_whole(
    nodes: Nodes, hardware: Hardware, shapes: Shapes, shape: int, row: int, out: Devices, at: int
) -> int:
    found = 0
    for device in range(nodes.model.shape[1]):
        if nodes.blocks_free[row, device] != _WHOLE or nodes.slices[row, device] != 0:
            continue
        if _usable(nodes, hardware, shapes, shape, row, device, MODE_BLOCKS):
            out.device[at + found] = device
            out.blocks[at + found] = _WHOLE
            out.bits[at + found] = 0
            found += 1
            if found == shapes.shares[shape]:
                return found
    return NO_FIT


@njit(cache=True, nogil=True)
def _pick_share(
    nodes: Nodes, hardware: Hardware, shapes: Shapes, shape: int, row: int, out: Devices, at: int
) -> int:
    best, least = -1, _FAR
    for device in range(nodes.model.shape[1]):
        if nodes.slices[row, device] != 0:
            continue
        if not _usable(nodes, hardware, shapes, shape, row, device, MODE_BLOCKS):
            continue
        need = blocks_needed(hardware, shapes, shape, nodes.model[row, device])
        left = nodes.blocks_free[row, device] - need
        if 0 <= left < least:
            best, least = device, left
    if best < 0:
        return NO_FIT
    out.device[at] = best
    out.blocks[at] = nodes.blocks_free[row, best] - least
    out.bits[at] = 0
    return 1


@njit(cache=True, nogil=True)
def _pick_slices(
    nodes: Nodes, hardware: Hardware, shapes: Shapes, shape: int, row: int, out: Devices, at: int
) -> int:
    if shapes.profile[shape] < 0:
        return NO_FIT
    for found in range(shapes.shares[shape]):
        device, bits = _best_slice(nodes, hardware, shapes, shape, row, out, at, at + found)
        if device < 0:
            return NO_FIT
        out.device[at + found] = device
        out.blocks[at + found] = 0
        out.bits[at + found] = bits
    return int(shapes.shares[shape])


@njit(cache=True, nogil=True)
def _best_slice(
    nodes: Nodes,
    hardware: Hardware,
    shapes: Shapes,
    shape: int,
    row: int,
    out: Devices,
    first: int,
    end: int,
) -> tuple[int, int]:
    best, best_bits, best_key = -1, 0, _FAR
    profile = shapes.profile[shape]
    for device in range(nodes.model.shape[1]):
        if not _unblocked(nodes, row, device):
            continue
        if not _usable(nodes, hardware, shapes, shape, row, device, MODE_MIG):
            continue
        cut = hardware.models.cut[nodes.model[row, device]]
        state = nodes.slices[row, device]
        for earlier in range(first, end):
            if out.device[earlier] == device:
                state |= out.bits[earlier]
        if hardware.cuts.start[cut, state, profile] < 0:
            continue
        # The least growth first, then the fullest device, then the lowest index.
        key = hardware.cuts.growth[cut, state, profile] * 16 - _ones(state)
        if key < best_key:
            best, best_key = device, key
            best_bits = hardware.cuts.mask[cut, state, profile]
    return best, best_bits


@njit(cache=True, nogil=True)
def _unblocked(nodes: Nodes, row: int, device: int) -> bool:
    # A device of which somebody holds blocks is not free for slices.
    cap = nodes.blocks_cap[row, device]
    return bool(cap >= 0 and nodes.blocks_free[row, device] == cap)


@njit(cache=True, nogil=True)
def _ones(state: int) -> int:
    count = 0
    while state:
        state &= state - 1
        count += 1
    return count


@njit(cache=True, nogil=True)
def charge(
    nodes: Nodes,
    hardware: Hardware,
    shapes: Shapes,
    shape: int,
    row: int,
    out: Devices,
    at: int,
    end: int,
) -> int:
    """What shares cost of a queue's limit, in 1/56 block."""
    units = 0
    for share in range(at, end):
        if out.bits[share] != 0:
            cut = hardware.models.cut[nodes.model[row, out.device[share]]]
            units += hardware.cuts.charge[cut, shapes.profile[shape]]
        else:
            units += 56 * out.blocks[share]
    return units
