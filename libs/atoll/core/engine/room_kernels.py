"""How many tasks of a shape a node holds by itself."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.score_kernels import Scoring
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
    Nodes,
    Shapes,
)
from atoll.core.state.fit_kernels import (
    VIEW_CUT,
    VIEW_FREE,
    VIEW_STATE,
    View,
    blocks_needed,
    look,
    of_kind,
    whole_free,
)


@njit(cache=True, nogil=True)
def room(
    nodes: Nodes, scoring: Scoring, shape: int, allowed: NDArray[np.bool_], most: int
) -> NDArray[np.int64]:
    """(N) how many tasks of `shape` every allowed node holds by itself, up to `most`."""
    counts = np.zeros(nodes.id.shape[0], np.int64)
    for row in range(counts.shape[0]):
        if allowed[row]:
            counts[row] = room_on(nodes, scoring, shape, row, most)
    return counts


@njit(cache=True, nogil=True)
def update_room(
    nodes: Nodes,
    scoring: Scoring,
    shape: int,
    allowed: NDArray[np.bool_],
    most: int,
    rows: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Count some rows anew."""
    for i in range(rows.shape[0]):
        row = rows[i]
        if allowed[row]:
            counts[row] = room_on(nodes, scoring, shape, row, most)


@njit(cache=True, nogil=True)
def room_on(nodes: Nodes, scoring: Scoring, shape: int, row: int, most: int) -> int:
    """How many tasks of `shape` node `row` holds, up to `most`."""
    shapes = scoring.shapes
    free_cpu, free_memory = nodes.cpu_free[row], nodes.memory_free[row]
    cpu, memory = shapes[shape, SHAPE_CPU], shapes[shape, SHAPE_MEMORY]
    if free_cpu < cpu or free_memory < memory:
        return 0
    count = most
    if cpu > 0:
        count = min(count, free_cpu // cpu)
    if memory > 0:
        count = min(count, free_memory // memory)
    form = shapes[shape, SHAPE_FORM]
    if form == FORM_NONE:
        return int(count)
    view = scoring.seen
    look(nodes, scoring.hardware.models, row, view)
    if form == FORM_WHOLE:
        return int(min(count, whole_free(view, shapes, shape) // shapes[shape, SHAPE_SHARES]))
    if form == FORM_SLICES:
        slices = slices_free(view, scoring.hardware.cuts, shapes, shape)
        return int(min(count, slices // shapes[shape, SHAPE_SHARES]))
    return int(min(count, _shares_free(view, shapes, shape)))


@njit(cache=True, nogil=True)
def slices_free(view: View, cuts: Cuts, shapes: Shapes, shape: int) -> int:
    """Slices of the shape's profile that could still be taken one after another."""
    count = 0
    profile = shapes[shape, SHAPE_PROFILE]
    for device in range(view.shape[1]):
        state = view[VIEW_STATE, device]
        if state < 0 or profile < 0 or not of_kind(view, shapes, shape, device):
            continue
        cut = view[VIEW_CUT, device]
        while cuts.start[cut, state, profile] >= 0:
            state |= cuts.mask[cut, state, profile]
            count += 1
    return count


@njit(cache=True, nogil=True)
def _shares_free(view: View, shapes: Shapes, shape: int) -> int:
    count = 0
    for device in range(view.shape[1]):
        free = view[VIEW_FREE, device]
        if free > 0 and of_kind(view, shapes, shape, device):
            count += free // blocks_needed(view, shapes, shape, device)
    return count
