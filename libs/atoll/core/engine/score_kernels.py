"""The score of a task on a node: a weighted sum of terms, or NO when it does not fit."""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.policies.interfaces import Term
from atoll.core.state.columns import (
    FORM_NONE,
    FORM_SLICES,
    FORM_WHOLE,
    SHAPE_CPU,
    SHAPE_FORM,
    SHAPE_MEMORY,
    SHAPE_PROFILE,
    SHAPE_SHARES,
    Cuts,
    Models,
    Nodes,
    Shapes,
)
from atoll.core.state.fit_kernels import (
    VIEW_CUT,
    VIEW_FREE,
    VIEW_STATE,
    WHOLE,
    Devices,
    View,
    best_share,
    best_slice,
    blocks_needed,
    look,
    ones,
    whole_free,
)

NO: Final = np.iinfo(np.int32).max
"""No score: it does not fit."""

_CPU_LEFT: Final = int(Term.CPU_LEFT)
_MEMORY_LEFT: Final = int(Term.MEMORY_LEFT)
_DEVICES_LEFT: Final = int(Term.DEVICES_LEFT)
_BLOCKS_LEFT: Final = int(Term.BLOCKS_LEFT)
_DEVICES_BROKEN: Final = int(Term.DEVICES_BROKEN)
_DEVICES_IDLE: Final = int(Term.DEVICES_IDLE)
_SLICES_LOST: Final = int(Term.SLICES_LOST)
_SLICE: Final = 12
_SLICES: Final = 8

NodeView = tuple[int, int, float, float, int, int]
"""Free CPU and memory, thousandths per unit of each, untouched devices, devices."""


class Scoring(NamedTuple):
    """What scores depend on besides the nodes, and room to work in.

    Kernels take it apart before their loops: a bundle of arrays that is passed on for every
    node costs more than the score itself.
    """

    models: Models
    cuts: Cuts
    shapes: Shapes
    weights: NDArray[np.int64]
    seen: View
    trial: View
    out: Devices


@njit(cache=True, nogil=True, forceinline=True)
def look_at(nodes: Nodes, models: Models, row: int, seen: View) -> NodeView:
    """Look at a node: the devices go to `seen`, the rest is returned."""
    look(nodes, models, row, seen)
    untouched, devices = 0, 0
    for device in range(seen.shape[1]):
        untouched += seen[VIEW_FREE, device] == WHOLE or seen[VIEW_STATE, device] == 0
        devices += nodes.model[row, device] != 0
    cpu_cap, memory_cap = nodes.cpu_cap[row], nodes.memory_cap[row]
    cpu_scale = 1000.0 / cpu_cap if cpu_cap > 0 else 0.0
    memory_scale = 1000.0 / memory_cap if memory_cap > 0 else 0.0
    free_cpu, free_memory = nodes.cpu_free[row], nodes.memory_free[row]
    return free_cpu, free_memory, cpu_scale, memory_scale, untouched, devices


@njit(cache=True, nogil=True, forceinline=True)
def score(
    node: NodeView,
    cuts: Cuts,
    shapes: Shapes,
    weights: NDArray[np.int64],
    seen: View,
    trial: View,
    shape: int,
) -> int:
    """Score of one task of `shape` on the node that was looked at."""
    if shapes[shape, SHAPE_FORM] == FORM_SLICES:
        return slice_score(node, cuts, shapes, weights, seen, trial, shape)
    return plain_score(node, shapes, weights, seen, shape)


@njit(cache=True, nogil=True, forceinline=True)
def plain_score(
    node: NodeView, shapes: Shapes, weights: NDArray[np.int64], seen: View, shape: int
) -> int:
    """Score of a shape that asks for no slices."""
    total = _base(node, shapes, weights, shape)
    if total == NO:
        return NO
    form = shapes[shape, SHAPE_FORM]
    if form == FORM_NONE:
        total += weights[_DEVICES_IDLE] * node[5]
    elif form == FORM_WHOLE:
        shares = shapes[shape, SHAPE_SHARES]
        if whole_free(seen, shapes, shape) < shares:
            return NO
        total += weights[_DEVICES_LEFT] * (node[4] - shares)
    else:
        device = best_share(seen, shapes, shape)
        if device < 0:
            return NO
        free = seen[VIEW_FREE, device]
        left = free - blocks_needed(seen, shapes, shape, device)
        touched = 1 if free == WHOLE else 0
        total += weights[_DEVICES_LEFT] * (node[4] - touched) + weights[_BLOCKS_LEFT] * left
        total += weights[_DEVICES_BROKEN] if touched and left > 0 else 0
    return int(min(total, NO - 1))


@njit(cache=True, nogil=True, forceinline=True)
def _base(node: NodeView, shapes: Shapes, weights: NDArray[np.int64], shape: int) -> int:
    cpu_left = node[0] - shapes[shape, SHAPE_CPU]
    memory_left = node[1] - shapes[shape, SHAPE_MEMORY]
    if cpu_left < 0 or memory_left < 0:
        return NO
    cpu = weights[_CPU_LEFT] * int(cpu_left * node[2])
    return int(cpu + weights[_MEMORY_LEFT] * int(memory_left * node[3]))


@njit(cache=True, nogil=True)
def slice_score(
    node: NodeView,
    cuts: Cuts,
    shapes: Shapes,
    weights: NDArray[np.int64],
    seen: View,
    trial: View,
    shape: int,
) -> int:
    """Score of a shape that asks for slices."""
    total = _base(node, shapes, weights, shape)
    if total == NO:
        return NO
    # Slices are taken one by one, so they are tried out on a copy.
    for device in range(seen.shape[1]):
        for line in range(seen.shape[0]):
            trial[line, device] = seen[line, device]
    profile, untouched, left = shapes[shape, SHAPE_PROFILE], node[4], 0
    for _ in range(shapes[shape, SHAPE_SHARES]):
        device = best_slice(trial, cuts, shapes, shape)
        if device < 0:
            return NO
        state, cut = trial[VIEW_STATE, device], trial[VIEW_CUT, device]
        total += weights[_SLICES_LOST] * cuts.growth[cut, state, profile]
        untouched -= state == 0
        trial[VIEW_STATE, device] |= cuts.mask[cut, state, profile]
        left += _SLICE * (_SLICES - ones(trial[VIEW_STATE, device] & 255))
    total += weights[_DEVICES_LEFT] * untouched
    total += weights[_BLOCKS_LEFT] * (left // shapes[shape, SHAPE_SHARES])
    return int(min(total, NO - 1))
