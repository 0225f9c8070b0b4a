"""What keeps a task from every node, compiled."""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.pack_kernels import matches, slices_free, whole_free
from atoll.core.engine.score_kernels import Scoring
from atoll.core.model.reason import ReasonCode
from atoll.core.policies.interfaces import MAY_GO, WHY_NUMBER
from atoll.core.state.columns import (
    FORM_NONE,
    FORM_SLICES,
    FORM_WHOLE,
    MODE_BLOCKS,
    MODE_MIG,
    Nodes,
)
from atoll.core.state.fit_kernels import NO_FIT, pick

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
    if pick(nodes, scoring.hardware, scoring.shapes, shape, row, scoring.out, 0) != NO_FIT:
        return FITS
    shapes = scoring.shapes
    if shapes.form[shape] != FORM_NONE:
        kind, profile = _present(nodes, scoring, shape, row)
        if not kind:
            return KIND_ABSENT
        if not profile:
            return PROFILE_ABSENT
    if nodes.cpu_free[row] < shapes.cpu[shape]:
        return CPU_SHORT
    return MEMORY_SHORT if nodes.memory_free[row] < shapes.memory[shape] else DEVICES_SHORT


@njit(cache=True, nogil=True)
def _present(nodes: Nodes, scoring: Scoring, shape: int, row: int) -> tuple[bool, bool]:
    shapes, hardware = scoring.shapes, scoring.hardware
    sliced = shapes.form[shape] == FORM_SLICES
    profile = shapes.profile[shape]
    kind, cut = False, not sliced
    for device in range(nodes.model.shape[1]):
        model = nodes.model[row, device]
        if matches(hardware, shapes, shape, model, MODE_MIG if sliced else MODE_BLOCKS):
            kind = True
            if sliced and profile >= 0:
                cut = cut or hardware.cuts.charge[hardware.models.cut[model], profile] > 0
    return kind, cut


@njit(cache=True, nogil=True)
def _available(nodes: Nodes, scoring: Scoring, shape: int, row: int) -> int:
    shapes, hardware = scoring.shapes, scoring.hardware
    form = shapes.form[shape]
    if form == FORM_NONE:
        return 0
    if form == FORM_WHOLE:
        return whole_free(nodes, hardware, shapes, shape, row)
    if form == FORM_SLICES:
        return slices_free(nodes, hardware, shapes, shape, row)
    most = 0
    for device in range(nodes.model.shape[1]):
        if matches(hardware, shapes, shape, nodes.model[row, device], MODE_BLOCKS):
            most = max(most, nodes.blocks_free[row, device])
    return most
