"""The score of a task on a node: a weighted sum of terms, or NO when it does not fit."""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.policies.interfaces import Term
from atoll.core.state.columns import FORM_NONE, FORM_SLICES, FORM_WHOLE, Nodes, Shapes
from atoll.core.state.fit_kernels import NO_FIT, Devices, Hardware, pick

NO: Final = np.iinfo(np.int32).max
"""No score: it does not fit."""

_CPU_LEFT: Final = int(Term.CPU_LEFT)
_MEMORY_LEFT: Final = int(Term.MEMORY_LEFT)
_DEVICES_LEFT: Final = int(Term.DEVICES_LEFT)
_BLOCKS_LEFT: Final = int(Term.BLOCKS_LEFT)
_DEVICES_BROKEN: Final = int(Term.DEVICES_BROKEN)
_DEVICES_IDLE: Final = int(Term.DEVICES_IDLE)
_SLICES_LOST: Final = int(Term.SLICES_LOST)
_WHOLE: Final = 100
_SLICE: Final = 12


class Scoring(NamedTuple):
    """What scores depend on besides the nodes. `out` is room to work in."""

    hardware: Hardware
    shapes: Shapes
    weights: NDArray[np.int64]
    out: Devices


@njit(cache=True, nogil=True)
def score(nodes: Nodes, scoring: Scoring, shape: int, row: int) -> int:
    """Score of one task of `shape` on node `row`, NO when it does not fit."""
    shapes, w, out = scoring.shapes, scoring.weights, scoring.out
    shares = pick(nodes, scoring.hardware, shapes, shape, row, out, 0)
    if shares == NO_FIT:
        return NO
    total = w[_CPU_LEFT] * _left(nodes.cpu_free[row] - shapes.cpu[shape], nodes.cpu_cap[row])
    memory = nodes.memory_free[row] - shapes.memory[shape]
    total += w[_MEMORY_LEFT] * _left(memory, nodes.memory_cap[row])
    form = shapes.form[shape]
    if form == FORM_NONE:
        total += w[_DEVICES_IDLE] * _devices(nodes, row)
    elif form == FORM_SLICES:
        total += _slice_terms(nodes, scoring, shape, row, shares)
    else:
        total += _block_terms(nodes, scoring, form, row, shares)
    return int(min(total, NO - 1))


@njit(cache=True, nogil=True)
def _left(free: int, cap: int) -> int:
    return 1000 * free // cap if cap > 0 else 0


@njit(cache=True, nogil=True)
def _devices(nodes: Nodes, row: int) -> int:
    count = 0
    for device in range(nodes.model.shape[1]):
        count += nodes.model[row, device] != 0
    return count


@njit(cache=True, nogil=True)
def _block_terms(nodes: Nodes, scoring: Scoring, form: int, row: int, shares: int) -> int:
    w, out = scoring.weights, scoring.out
    untouched = 0
    for device in range(nodes.model.shape[1]):
        free = nodes.blocks_free[row, device] == _WHOLE and nodes.slices[row, device] == 0
        untouched += free
    if form == FORM_WHOLE:
        return int(w[_DEVICES_LEFT] * (untouched - shares))
    free = nodes.blocks_free[row, out.device[0]]
    broken = 1 if free == _WHOLE and out.blocks[0] < _WHOLE else 0
    touched = 1 if free == _WHOLE else 0
    total = w[_DEVICES_LEFT] * (untouched - touched) + w[_DEVICES_BROKEN] * broken
    return int(total + w[_BLOCKS_LEFT] * (free - out.blocks[0]))


@njit(cache=True, nogil=True)
def _slice_terms(nodes: Nodes, scoring: Scoring, shape: int, row: int, shares: int) -> int:
    w, out, cuts = scoring.weights, scoring.out, scoring.hardware.cuts
    lost, left = 0, 0
    for share in range(shares):
        device = out.device[share]
        state = nodes.slices[row, device]
        for earlier in range(share):
            if out.device[earlier] == device:
                state |= out.bits[earlier]
        cut = scoring.hardware.models.cut[nodes.model[row, device]]
        lost += cuts.growth[cut, state, scoring.shapes.profile[shape]]
        left += _SLICE * (8 - _ones((state | out.bits[share]) & 255))
    untouched = 0
    for device in range(nodes.model.shape[1]):
        if nodes.model[row, device] != 0 and nodes.slices[row, device] == 0:
            untouched += 1
    return int(
        w[_SLICES_LOST] * lost + w[_BLOCKS_LEFT] * left // shares + w[_DEVICES_LEFT] * untouched
    )


@njit(cache=True, nogil=True)
def _ones(bits: int) -> int:
    count = 0
    while bits:
        bits &= bits - 1
        count += 1
    return count
