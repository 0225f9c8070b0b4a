"""How many tasks of a shape a node holds by itself."""

import numpy as np
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
from atoll.core.state.compiled import bare, inlined
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


@bare
def count_room(
    nodes: Nodes,
    scoring: Scoring,
    shape: int,
    allowed: NDArray[np.bool_],
    most: int,
    rows: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Write to counts[row] how many tasks of `shape` each row holds by itself, up to `most`."""
    models, cuts, shapes, _, seen, _, _ = scoring
    for row in rows:
        counts[row] = 0
        if allowed[row]:
            look(nodes, models, row, seen)
            counts[row] = room_for(nodes, cuts, shapes, shape, row, most, seen)


@bare
def room_for(
    nodes: Nodes, cuts: Cuts, shapes: Shapes, shape: int, row: int, most: int, seen: View
) -> int:
    """How many tasks of `shape` a node holds by itself, up to `most`; `seen` are its devices."""
    form, shares = shapes[shape, SHAPE_FORM], shapes[shape, SHAPE_SHARES]
    count = _by_amounts(nodes, shapes, shape, row, most)
    if count == 0 or form == FORM_NONE:
        return count
    if form == FORM_WHOLE:
        return int(min(count, whole_free(seen, shapes, shape) // shares))
    if form == FORM_SLICES:
        return int(min(count, slices_free(seen, cuts, shapes, shape) // shares))
    return min(count, _shares_free(seen, shapes, shape))


@inlined
def _by_amounts(nodes: Nodes, shapes: Shapes, shape: int, row: int, most: int) -> int:
    free_cpu, free_memory = nodes.cpu_free[row], nodes.memory_free[row]
    cpu, memory = shapes[shape, SHAPE_CPU], shapes[shape, SHAPE_MEMORY]
    if free_cpu < cpu or free_memory < memory:
        return 0
    count = most
    if cpu > 0:
        count = min(count, free_cpu // cpu)
    return int(min(count, free_memory // memory) if memory > 0 else count)


@bare
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


@bare
def _shares_free(view: View, shapes: Shapes, shape: int) -> int:
    count = 0
    for device in range(view.shape[1]):
        free = view[VIEW_FREE, device]
        if free > 0 and of_kind(view, shapes, shape, device):
            count += free // blocks_needed(view, shapes, shape, device)
    return count
