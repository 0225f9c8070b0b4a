"""How much of what is needed some shares have, and what is open still."""

from collections.abc import Iterator, Sequence

import numpy as np

from atoll.core.engine.bookings.terrain import Terrain
from atoll.core.engine.bookings.wanted import Need, Pool, Sort
from atoll.core.model.booking import NodeShare
from atoll.core.model.ids import ClusterName, NodeId
from atoll.core.model.reservation import Parts
from atoll.core.model.resources import BLOCKS_PER_DEVICE, DeviceGrant
from atoll.core.model.validate_reservation import MOST_UNITS
from atoll.core.state.columns import (
    ANY,
    FORM_MEMORY,
    FORM_NONE,
    FORM_SLICES,
    FORM_WHOLE,
    SHAPE_BLOCKS,
    SHAPE_DEVICE_MEMORY,
    SHAPE_FORM,
    SHAPE_SHARES,
)


def open_needs(terrain: Terrain, pool: Pool, parts: Parts) -> Iterator[tuple[Need, int]]:
    """What of each need shares do not have."""
    left = {share.node: list(share.devices) for part in parts for share in part.shares}
    for need in pool.needs:
        have, here = 0, _clusters_of(terrain, need)
        for share in (share for part in parts if part.cluster in here for share in part.shares):
            if need.sort is not Sort.UNITS:
                have += share.whole
            elif need.ask is not None:
                have += _units(terrain, need, share, left=left)
        if have < need.count:
            yield need, need.count - have


def pool_around(terrain: Terrain, pools: Sequence[Pool], parts: Parts) -> Pool | None:
    """The pool in which most of a place lies; the whole of several clusters if split."""
    mine = terrain.rows_of(parts)
    inside = [int(np.isin(mine, pool.rows).sum()) for pool in pools]
    return pools[int(np.argmax(inside))] if pools else None


def _clusters_of(terrain: Terrain, need: Need) -> set[ClusterName]:
    # A part of each of several clusters is a need in each of them.
    numbers = np.unique(terrain.snapshot.nodes.cluster[need.rows]).tolist()
    return {terrain.snapshot.clusters[number].name for number in numbers}


def _units(
    terrain: Terrain, need: Need, share: NodeShare, *, left: dict[NodeId, list[DeviceGrant]]
) -> int:
    """Units of a need that a share has; what they are made of is taken from `left`."""
    assert need.ask is not None
    shape, grants = need.ask.shapes[0], left[share.node]
    form = int(shape[SHAPE_FORM])
    if form == FORM_NONE:
        return min(
            _times(share.cpu_milli, need.ask.cpu), _times(share.memory_bytes, need.ask.memory)
        )
    model = terrain.snapshot.nodes.model[terrain.snapshot.row_of[share.node]]
    mine = [
        grant for grant in grants if _is_of(terrain, need, grant, model=int(model[grant.index]))
    ]
    if form in (FORM_WHOLE, FORM_SLICES):
        units = len(mine) // int(shape[SHAPE_SHARES])
        mine = mine[: units * int(shape[SHAPE_SHARES])]
    else:
        memory = terrain.snapshot.hardware.models.memory
        each = [_blocks(need, int(memory[model[grant.index]])) for grant in mine]
        units = sum(grant.blocks // size for grant, size in zip(mine, each, strict=True))
    left[share.node] = [grant for grant in grants if grant not in mine]
    return units


def _is_of(terrain: Terrain, need: Need, grant: DeviceGrant, *, model: int) -> bool:
    assert need.ask is not None
    form = int(need.ask.shapes[0, SHAPE_FORM])
    if need.kind not in (ANY, int(terrain.snapshot.hardware.models.kind[model])):
        return False
    if form == FORM_SLICES:
        return grant.profile == need.profile
    return grant.blocks == BLOCKS_PER_DEVICE if form == FORM_WHOLE else grant.blocks > 0


def _blocks(need: Need, memory: int) -> int:
    assert need.ask is not None
    shape = need.ask.shapes[0]
    if shape[SHAPE_FORM] != FORM_MEMORY:
        return int(shape[SHAPE_BLOCKS])
    return int(-(-BLOCKS_PER_DEVICE * shape[SHAPE_DEVICE_MEMORY] // max(1, memory)))


def _times(have: int, unit: int) -> int:
    return have // unit if unit > 0 else MOST_UNITS


def devices_of(need: Need) -> int:
    """Devices of a unit, parts rounded up; 1 for nodes."""
    if need.ask is None:
        return 1
    return max(1, int(need.ask.shapes[0, SHAPE_SHARES]))
