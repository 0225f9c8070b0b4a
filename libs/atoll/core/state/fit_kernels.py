"""Whether a task fits on a node, and with which devices: the one check that everything uses.

A node's devices are looked at once and written to a small view; all questions
about a shape are then answered from the view. Functions below take few arrays:
passing bundles of them from call to call costs more than the work itself.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.state.columns import (
    ANY,
    FORM_MEMORY,
    FORM_NONE,
    FORM_SLICES,
    FORM_WHOLE,
    MODE_BLOCKS,
    MODE_MIG,
    SHAPE_BLOCKS,
    SHAPE_CPU,
    SHAPE_DEVICE_MEMORY,
    SHAPE_FORM,
    SHAPE_KIND,
    SHAPE_MEMORY,
    SHAPE_PROFILE,
    SHAPE_SHARES,
    Cuts,
    Models,
    Nodes,
    Shapes,
)
from atoll.core.state.compiled import bare, inlined

NO_FIT: Final = -1
ANY_DEVICE: Final = -1
"""Let a share go to the device that it fills best."""
WHOLE: Final = 100
UNITS: Final = 56
"""Quota units of a block."""
_FAR: Final = 1 << 30
_CUT_ANEW: Final = 1 << 20

View = NDArray[np.int64]
"""(VIEW_ROWS, D) the devices of one node."""
VIEW_FREE: Final = 0
"""Free blocks; UNUSABLE when it is not handed out in blocks just now."""
VIEW_STATE: Final = 1
"""MIG slices taken; UNUSABLE when it is not handed out in slices just now."""
VIEW_KIND: Final = 2
VIEW_MEMORY: Final = 3
VIEW_CUT: Final = 4
VIEW_AGAIN: Final = 5
"""1 where an earlier device looks the same; only where scores are asked for."""
VIEW_ROWS: Final = 6
UNUSABLE: Final = -1


class Devices(NamedTuple):
    """Where chosen shares of devices are written, one entry per share."""

    device: NDArray[np.int64]
    blocks: NDArray[np.int64]
    bits: NDArray[np.int64]


class Hardware(NamedTuple):
    """Device models and MIG tables."""

    models: Models
    cuts: Cuts


@inlined
def look(nodes: Nodes, models: Models, row: int, view: View) -> None:
    """Write the devices of node `row` to `view`."""
    for device in range(nodes.model.shape[1]):
        model = nodes.model[row, device]
        mode = models.mode[model]
        free, cap = nodes.blocks_free[row, device], nodes.blocks_cap[row, device]
        slices = nodes.slices[row, device]
        # A device with any share taken one way is not free the other way.
        in_blocks = mode & MODE_BLOCKS != 0 and slices == 0
        untouched = free == cap and cap == (0 if mode == MODE_MIG else WHOLE)
        in_slices = mode & MODE_MIG != 0 and untouched
        view[VIEW_FREE, device] = free if in_blocks else UNUSABLE
        view[VIEW_STATE, device] = slices if in_slices else UNUSABLE
        view[VIEW_KIND, device] = models.kind[model]
        view[VIEW_MEMORY, device] = models.memory[model]
        view[VIEW_CUT, device] = models.cut[model]


@inlined
def pick(
    nodes: Nodes,
    models: Models,
    cuts: Cuts,
    shapes: Shapes,
    shape: int,
    row: int,
    device: int,
    seen: View,
    out: Devices,
    at: int,
) -> int:
    """Shares for one task of `shape` on node `row`, written to out[at:]; their number.

    `device`: where a share of one device goes, or ANY_DEVICE. NO_FIT when the node is too
    small; `out` may have been written to then, too. There must be room for the shares that
    a node can give. Ignores status and labels: those are filters.
    """
    cpu, memory = nodes.cpu_free[row], nodes.memory_free[row]
    if cpu < shapes[shape, SHAPE_CPU] or memory < shapes[shape, SHAPE_MEMORY]:
        return NO_FIT
    form = shapes[shape, SHAPE_FORM]
    if form == FORM_NONE:
        return 0
    look(nodes, models, row, seen)
    if form == FORM_WHOLE:
        return _pick_whole(seen, shapes, shape, out, at)
    if form == FORM_SLICES:
        return _pick_slices(seen, cuts, shapes, shape, out, at)
    if device == ANY_DEVICE:
        device = best_share(seen, shapes, shape)
    if device < 0 or left_of_share(seen, shapes, shape, device) < 0:
        return NO_FIT
    out.device[at] = device
    out.blocks[at] = blocks_needed(seen, shapes, shape, device)
    out.bits[at] = 0
    return 1


@inlined
def charge(
    cuts: Cuts, shapes: Shapes, shape: int, seen: View, out: Devices, at: int, end: int
) -> int:
    """What picked shares cost of a queue's limit, in 1/56 block; `seen` is their node."""
    units = 0
    for share in range(at, end):
        if out.bits[share] != 0:
            cut = seen[VIEW_CUT, out.device[share]]
            units += cuts.charge[cut, shapes[shape, SHAPE_PROFILE]]
        else:
            units += UNITS * out.blocks[share]
    return units


@bare
def of_kind(view: View, shapes: Shapes, shape: int, device: int) -> bool:
    """Whether a device is of the kind that the shape asks for."""
    kind = shapes[shape, SHAPE_KIND]
    return bool(kind == ANY or kind == view[VIEW_KIND, device])


@bare
def whole_free(view: View, shapes: Shapes, shape: int) -> int:
    """Devices of the shape's kind with nothing on them."""
    count, kind = 0, shapes[shape, SHAPE_KIND]
    for device in range(view.shape[1]):
        free = view[VIEW_FREE, device] == WHOLE
        count += free and (kind == ANY or kind == view[VIEW_KIND, device])
    return count


@bare
def blocks_needed(view: View, shapes: Shapes, shape: int, device: int) -> int:
    """Blocks of a device that a share takes; more than 100 when it is too small."""
    if shapes[shape, SHAPE_FORM] != FORM_MEMORY:
        return int(shapes[shape, SHAPE_BLOCKS])
    memory = view[VIEW_MEMORY, device]
    if memory <= 0:
        return _FAR
    return int(-(-WHOLE * shapes[shape, SHAPE_DEVICE_MEMORY] // memory))


@bare
def best_share(view: View, shapes: Shapes, shape: int) -> int:
    """The device that a share fills best, the first of equals; -1 when none has room."""
    best, least = -1, _FAR
    for device in range(view.shape[1]):
        left = left_of_share(view, shapes, shape, device)
        if 0 <= left < least:
            best, least = device, left
    return best


@bare
def left_of_share(view: View, shapes: Shapes, shape: int, device: int) -> int:
    """Blocks that a share leaves free of a device; less than 0 when it has no room there."""
    free = view[VIEW_FREE, device]
    if free <= 0 or not of_kind(view, shapes, shape, device):
        return NO_FIT
    return int(free - blocks_needed(view, shapes, shape, device))


@bare
def best_slice(view: View, cuts: Cuts, shapes: Shapes, shape: int) -> int:
    """The device on which a slice costs other profiles least, the fullest of equals; or -1.

    One that could still be handed out whole is the last choice.
    """
    best, least = -1, _FAR
    profile = shapes[shape, SHAPE_PROFILE]
    for device in range(view.shape[1]):
        state = view[VIEW_STATE, device]
        if state < 0 or profile < 0 or not of_kind(view, shapes, shape, device):
            continue
        cut = view[VIEW_CUT, device]
        if cuts.start[cut, state, profile] >= 0:
            key = cuts.growth[cut, state, profile] * 16 - ones(state)
            key += _CUT_ANEW if view[VIEW_FREE, device] == WHOLE else 0
            if key < least:
                best, least = device, key
    return best


@bare
def ones(bits: int) -> int:
    """Bits that are set."""
    count = 0
    while bits:
        bits &= bits - 1
        count += 1
    return count


@bare
def _pick_whole(view: View, shapes: Shapes, shape: int, out: Devices, at: int) -> int:
    wanted = shapes[shape, SHAPE_SHARES]
    if whole_free(view, shapes, shape) < wanted:
        return NO_FIT
    found, device = 0, 0
    while found < wanted:
        if view[VIEW_FREE, device] == WHOLE and of_kind(view, shapes, shape, device):
            out.device[at + found] = device
            out.blocks[at + found] = WHOLE
            out.bits[at + found] = 0
            found += 1
        device += 1
    return int(wanted)


@bare
def _pick_slices(view: View, cuts: Cuts, shapes: Shapes, shape: int, out: Devices, at: int) -> int:
    profile = shapes[shape, SHAPE_PROFILE]
    for found in range(shapes[shape, SHAPE_SHARES]):
        device = best_slice(view, cuts, shapes, shape)
        if device < 0:
            return NO_FIT
        bits = cuts.mask[view[VIEW_CUT, device], view[VIEW_STATE, device], profile]
        view[VIEW_STATE, device] |= bits
        view[VIEW_FREE, device] = UNUSABLE
        out.device[at + found] = device
        out.blocks[at + found] = 0
        out.bits[at + found] = bits
    return int(shapes[shape, SHAPE_SHARES])
