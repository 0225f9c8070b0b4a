"""How many tasks fit where, and packing the tasks of a group onto chosen nodes."""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.score_kernels import NO, Scoring, score
from atoll.core.state.columns import (
    ANY,
    FORM_NONE,
    FORM_SLICES,
    FORM_WHOLE,
    MODE_BLOCKS,
    MODE_MIG,
    Nodes,
    Shapes,
)
from atoll.core.state.fit_kernels import Hardware, blocks_needed
from atoll.core.state.ledger_kernels import give_tasks
from atoll.core.state.statement_kernels import Journal, place

_WHOLE: Final = 100


@njit(cache=True, nogil=True)
def room(
    nodes: Nodes, scoring: Scoring, shape: int, allowed: NDArray[np.bool_], most: int
) -> NDArray[np.int64]:
    """(N) how many tasks of `shape` every allowed node holds by itself, up to `most`."""
    counts = np.zeros(nodes.id.shape[0], np.int64)
    for row in range(counts.shape[0]):
        if allowed[row]:
            counts[row] = room_on(nodes, scoring.hardware, scoring.shapes, shape, row, most)
    return counts


@njit(cache=True, nogil=True)
def room_on(
    nodes: Nodes, hardware: Hardware, shapes: Shapes, shape: int, row: int, most: int
) -> int:
    """How many tasks of `shape` node `row` holds, up to `most`."""
    if nodes.cpu_free[row] < 0 or nodes.memory_free[row] < 0:
        return 0
    count = most
    if shapes.cpu[shape] > 0:
        count = min(count, nodes.cpu_free[row] // shapes.cpu[shape])
    if shapes.memory[shape] > 0:
        count = min(count, nodes.memory_free[row] // shapes.memory[shape])
    form = shapes.form[shape]
    if form == FORM_NONE or count == 0:
        return count
    if form == FORM_SLICES:
        slices = slices_free(nodes, hardware, shapes, shape, row)
        return int(min(count, slices // shapes.shares[shape]))
    if form == FORM_WHOLE:
        return int(
            min(count, whole_free(nodes, hardware, shapes, shape, row) // shapes.shares[shape])
        )
    return min(count, _shares_free(nodes, hardware, shapes, shape, row))


@njit(cache=True, nogil=True)
def pack(
    nodes: Nodes,
    scoring: Scoring,
    journal: Journal,
    rows: NDArray[np.int64],
    shape: int,
    count: int,
    units_left: int,
) -> tuple[int, int]:
    """Place up to `count` tasks on the best of `rows` one after another: (placed, charge).

    Stops before a task whose charge is more than what is left then; the charge returned
    includes it. There must be room in the journal.
    """
    scores = np.empty(rows.shape[0], np.int32)
    for i in range(rows.shape[0]):
        scores[i] = score(nodes, scoring, shape, rows[i])
    units = 0
    for placed in range(count):
        i = _least(scores)
        if i < 0:
            return placed, units
        units += place(nodes, scoring.hardware, scoring.shapes, journal, shape, rows[i])
        if units > units_left:
            journal.size[0] -= 1
            give_tasks(nodes, journal.uses, journal.size[0], journal.size[0] + 1)
            return placed, units
        scores[i] = score(nodes, scoring, shape, rows[i])
    return count, units


@njit(cache=True, nogil=True)
def _least(scores: NDArray[np.int32]) -> int:
    at, least = -1, NO
    for i in range(scores.shape[0]):
        if scores[i] < least:
            at, least = i, scores[i]
    return at


@njit(cache=True, nogil=True)
def matches(hardware: Hardware, shapes: Shapes, shape: int, model: int, mode: int) -> bool:
    """Whether a device model has the mode, and the kind that the shape asks for."""
    if hardware.models.mode[model] != mode:
        return False
    return bool(shapes.kind[shape] == ANY or hardware.models.kind[model] == shapes.kind[shape])


@njit(cache=True, nogil=True)
def whole_free(nodes: Nodes, hardware: Hardware, shapes: Shapes, shape: int, row: int) -> int:
    """Devices of the shape's kind on node `row` with nothing on them."""
    count = 0
    for device in range(nodes.model.shape[1]):
        free = nodes.blocks_free[row, device] == _WHOLE and nodes.slices[row, device] == 0
        if free and matches(hardware, shapes, shape, nodes.model[row, device], MODE_BLOCKS):
            count += 1
    return count


@njit(cache=True, nogil=True)
def _shares_free(nodes: Nodes, hardware: Hardware, shapes: Shapes, shape: int, row: int) -> int:
    count = 0
    for device in range(nodes.model.shape[1]):
        model = nodes.model[row, device]
        free = nodes.blocks_free[row, device]
        if nodes.slices[row, device] != 0 or free <= 0:
            continue
        if matches(hardware, shapes, shape, model, MODE_BLOCKS):
            count += free // blocks_needed(hardware, shapes, shape, model)
    return count


@njit(cache=True, nogil=True)
def slices_free(nodes: Nodes, hardware: Hardware, shapes: Shapes, shape: int, row: int) -> int:
    """Slices of the shape's profile that node `row` could still give."""
    profile = shapes.profile[shape]
    if profile < 0:
        return 0
    count = 0
    for device in range(nodes.model.shape[1]):
        model = nodes.model[row, device]
        cap = nodes.blocks_cap[row, device]
        if cap < 0 or nodes.blocks_free[row, device] != cap:
            continue
        if not matches(hardware, shapes, shape, model, MODE_MIG):
            continue
        cut = hardware.models.cut[model]
        state = nodes.slices[row, device]
        while hardware.cuts.start[cut, state, profile] >= 0:
            state |= hardware.cuts.mask[cut, state, profile]
            count += 1
    return count
