"""What keeps a task from every node, compiled."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.room_kernels import slices_free
from atoll.core.engine.score_kernels import Scoring
from atoll.core.model.reason import ReasonCode
from atoll.core.policies.interfaces import MAY_GO, WHY_NUMBER
from atoll.core.state.columns import (
    ANY,
    FORM_NONE,
    FORM_SLICES,
    FORM_WHOLE,
    MODE_BLOCKS,
    MODE_MIG,
    SHAPE_CPU,
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
from atoll.core.state.fit_kernels import (
    VIEW_FREE,
    View,
    best_share,
    look,
    of_kind,
    whole_free,
)

# Places in WHY.
FITS: Final = MAY_GO
KIND_ABSENT: Final = WHY_NUMBER[ReasonCode.DEVICE_KIND_ABSENT]
PROFILE_ABSENT: Final = WHY_NUMBER[ReasonCode.PROFILE_ABSENT]
CPU_SHORT: Final = WHY_NUMBER[ReasonCode.CPU_SHORT]
MEMORY_SHORT: Final = WHY_NUMBER[ReasonCode.MEMORY_SHORT]
DEVICES_SHORT: Final = WHY_NUMBER[ReasonCode.DEVICES_SHORT]


def blockers(
    nodes: Nodes, scoring: Scoring, shape: int, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Of every row the first thing that is short, and what it has of the devices asked for.

    Whole devices and slices are counted; of shares it is the free blocks of the freest device.
    """
    codes, devices = np.zeros(len(rows), np.int8), np.zeros(len(rows), np.int64)
    write_blockers(nodes, scoring, shape, rows, codes, devices)
    return codes, devices


@bare
def write_blockers(
    nodes: Nodes,
    scoring: Scoring,
    shape: int,
    rows: NDArray[np.int64],
    codes: NDArray[np.int8],
    devices: NDArray[np.int64],
) -> None:
    """`blockers`, written to `codes` and `devices`."""
    models, cuts, shapes, _, seen, _, _ = scoring
    for i in range(rows.shape[0]):
        row = rows[i]
        code = FITS
        if shapes[shape, SHAPE_FORM] != FORM_NONE:
            look(nodes, models, row, seen)
            devices[i] = _available(seen, cuts, shapes, shape)
            code = _absence(nodes, models, cuts, shapes, shape, row)
            if code == FITS and not _enough(seen, shapes, shape, devices[i]):
                code = DEVICES_SHORT
        # What no device could mend comes before what only some device lacks.
        if code in (FITS, DEVICES_SHORT):
            if nodes.cpu_free[row] < shapes[shape, SHAPE_CPU]:
                code = CPU_SHORT
            elif nodes.memory_free[row] < shapes[shape, SHAPE_MEMORY]:
                code = MEMORY_SHORT
        codes[i] = code


@inlined
def _absence(nodes: Nodes, models: Models, cuts: Cuts, shapes: Shapes, shape: int, row: int) -> int:
    sliced = shapes[shape, SHAPE_FORM] == FORM_SLICES
    wanted, profile = shapes[shape, SHAPE_KIND], shapes[shape, SHAPE_PROFILE]
    code = KIND_ABSENT
    for device in range(nodes.model.shape[1]):
        model = nodes.model[row, device]
        if models.mode[model] & (MODE_MIG if sliced else MODE_BLOCKS) == 0:
            continue
        if wanted == ANY or models.kind[model] == wanted:
            cut = not sliced or (profile >= 0 and cuts.charge[models.cut[model], profile] > 0)
            if cut:
                return FITS
            code = PROFILE_ABSENT
    return code


@inlined
def _enough(seen: View, shapes: Shapes, shape: int, available: int) -> bool:
    if shapes[shape, SHAPE_FORM] in (FORM_WHOLE, FORM_SLICES):
        return bool(available >= shapes[shape, SHAPE_SHARES])
    return best_share(seen, shapes, shape) >= 0


@inlined
def _available(seen: View, cuts: Cuts, shapes: Shapes, shape: int) -> int:
    form = shapes[shape, SHAPE_FORM]
    if form == FORM_NONE:
        return 0
    if form == FORM_WHOLE:
        return whole_free(seen, shapes, shape)
    if form == FORM_SLICES:
        return slices_free(seen, cuts, shapes, shape)
    most = 0
    for device in range(seen.shape[1]):
        if of_kind(seen, shapes, shape, device):
            most = max(most, seen[VIEW_FREE, device])
    return int(most)
