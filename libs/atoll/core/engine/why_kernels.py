"""What keeps a task from every node, compiled."""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.room_kernels import slices_free
from atoll.core.engine.score_kernels import Scoring
from atoll.core.model.reason import ReasonCode
from atoll.core.policies.interfaces import MAY_GO, WHY_NUMBER
from atoll.core.state.columns import (
    FORM_NONE,
    FORM_SLICES,
    FORM_WHOLE,
    MODE_BLOCKS,
    MODE_MIG,
    SHAPE_CPU,
    SHAPE_FORM,
    SHAPE_MEMORY,
    SHAPE_PROFILE,
    Nodes,
)
from atoll.core.state.fit_kernels import (
    NO_FIT,
    VIEW_CUT,
    VIEW_FREE,
    look,
    of_kind,
    pick,
    whole_free,
)

# Places in WHY.
FITS: Final = MAY_GO
KIND_ABSENT: Final = WHY_NUMBER[ReasonCode.DEVICE_KIND_ABSENT]
PROFILE_ABSENT: Final = WHY_NUMBER[ReasonCode.PROFILE_ABSENT]
CPU_SHORT: Final = WHY_NUMBER[ReasonCode.CPU_SHORT]
MEMORY_SHORT: Final = WHY_NUMBER[ReasonCode.MEMORY_SHORT]
DEVICES_SHORT: Final = WHY_NUMBER[ReasonCode.DEVICES_SHORT]


@njit(cache=True, nogil=True)
def blockers(
    nodes: Nodes, scoring: Scoring, shape: int, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Of every row the first thing that is short, and what it has of the devices asked for.

    Whole devices and slices are counted; of shares it is the free blocks of the freest device.
    """
    codes = np.zeros(rows.shape[0], np.int8)
    devices = np.zeros(rows.shape[0], np.int64)
    for i in range(rows.shape[0]):
        codes[i] = _blocker(nodes, scoring, shape, rows[i])
        devices[i] = _available(nodes, scoring, shape, rows[i])
    return codes, devices


@njit(cache=True, nogil=True)
def _blocker(nodes: Nodes, scoring: Scoring, shape: int, row: int) -> int:
    shapes, view = scoring.shapes, scoring.seen
    if pick(nodes, scoring.hardware, shapes, shape, row, view, scoring.out, 0) != NO_FIT:
        return FITS
    if shapes[shape, SHAPE_FORM] != FORM_NONE:
        kind, profile = _present(nodes, scoring, shape, row)
        if not kind:
            return KIND_ABSENT
        if not profile:
            return PROFILE_ABSENT
    if nodes.cpu_free[row] < shapes[shape, SHAPE_CPU]:
        return CPU_SHORT
    return MEMORY_SHORT if nodes.memory_free[row] < shapes[shape, SHAPE_MEMORY] else DEVICES_SHORT


@njit(cache=True, nogil=True)
def _present(nodes: Nodes, scoring: Scoring, shape: int, row: int) -> tuple[bool, bool]:
    shapes, view, charges = scoring.shapes, scoring.seen, scoring.hardware.cuts.charge
    look(nodes, scoring.hardware.models, row, view)
    sliced = shapes[shape, SHAPE_FORM] == FORM_SLICES
    profile = shapes[shape, SHAPE_PROFILE]
    kind, cut = False, not sliced
    for device in range(view.shape[1]):
        mode = scoring.hardware.models.mode[nodes.model[row, device]]
        if mode == (MODE_MIG if sliced else MODE_BLOCKS) and of_kind(view, shapes, shape, device):
            kind = True
            if sliced and profile >= 0:
                cut = cut or charges[view[VIEW_CUT, device], profile] > 0
    return kind, cut


@njit(cache=True, nogil=True)
def _available(nodes: Nodes, scoring: Scoring, shape: int, row: int) -> int:
    shapes, view = scoring.shapes, scoring.seen
    form = shapes[shape, SHAPE_FORM]
    if form == FORM_NONE:
        return 0
    look(nodes, scoring.hardware.models, row, view)
    if form == FORM_WHOLE:
        return whole_free(view, shapes, shape)
    if form == FORM_SLICES:
        return slices_free(view, scoring.hardware.cuts, shapes, shape)
    most = 0
    for device in range(view.shape[1]):
        if of_kind(view, shapes, shape, device):
            most = max(most, view[VIEW_FREE, device])
    return int(most)
