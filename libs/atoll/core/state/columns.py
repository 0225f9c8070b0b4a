"""The arrays that kernels work on: one row per node, sorted by node id.

N nodes, D devices per node at most, L topology levels. Free amounts are
capacity less local use less allocations and may be negative.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

STATUS_OK: Final = 0
STATUS_DOWN: Final = 1
STATUS_CORDONED: Final = 2
STATUS_SUSPECT: Final = 3

MODE_NONE: Final = 0
MODE_BLOCKS: Final = 1
MODE_MIG: Final = 2
MODE_EITHER: Final = MODE_BLOCKS | MODE_MIG
"""Whole and in blocks, or in slices: the first that takes something of it decides."""


class Nodes(NamedTuple):
    """All nodes of all clusters."""

    id: NDArray[np.int64]
    cluster: NDArray[np.int32]
    status: NDArray[np.int8]
    """One of STATUS_*: whether new work may go there, and why not."""
    labels: NDArray[np.int32]
    """Number of the node's label set."""
    cpu_cap: NDArray[np.int64]
    """Milli-CPU less local use; so are the other capacities."""
    cpu_free: NDArray[np.int64]
    memory_cap: NDArray[np.int64]
    memory_free: NDArray[np.int64]
    model: NDArray[np.int16]
    """(N, D) device model, 0 where there is no usable device."""
    blocks_cap: NDArray[np.int16]
    """(N, D) blocks that can be handed out: 100 less local use; 0 for MIG and broken devices."""
    blocks_free: NDArray[np.int16]
    slices: NDArray[np.int16]
    """(N, D) MIG slices taken, the media engine as MEDIA_BIT."""
    domain: NDArray[np.int32]
    """(N, L) number of the node's domain at a level, -1 where it has none."""


class Models(NamedTuple):
    """Distinct devices: kind, memory, mode and, for MIG, how they can be cut. 0 is no device."""

    kind: NDArray[np.int32]
    memory: NDArray[np.int64]
    mode: NDArray[np.int8]
    """One of MODE_*; its bits are the ways in which a device may be handed out."""
    cut: NDArray[np.int32]
    """Row of `Cuts` for MIG devices."""


class Cuts(NamedTuple):
    """MIG tables by (cut, device state, profile), and charges by (cut, profile)."""

    start: NDArray[np.int8]
    growth: NDArray[np.int16]
    mask: NDArray[np.int16]
    charge: NDArray[np.int32]
    """1/56 blocks; 0 where the device has no such profile."""


Shapes = NDArray[np.int64]
"""Distinct task shapes, one per row; the columns are SHAPE_*."""

SHAPE_CPU: Final = 0
SHAPE_MEMORY: Final = 1
SHAPE_FORM: Final = 2
"""One of FORM_*."""
SHAPE_SHARES: Final = 3
"""Devices or slices that one task takes."""
SHAPE_BLOCKS: Final = 4
SHAPE_KIND: Final = 5
"""Number of the device kind, ANY for any."""
SHAPE_PROFILE: Final = 6
"""Place in ALL_PROFILES, -1 for none that is known."""
SHAPE_DEVICE_MEMORY: Final = 7
SHAPE_WIDTH: Final = 8

ANY: Final = -1

FORM_NONE: Final = 0
FORM_WHOLE: Final = 1
FORM_BLOCKS: Final = 2
FORM_MEMORY: Final = 3
FORM_SLICES: Final = 4

FREE_COLUMNS: Final = ("cpu_free", "memory_free", "blocks_free", "slices")


def empty_nodes(count: int, devices: int, levels: int) -> Nodes:
    """Rows of zeros with no domain."""
    wide = (count, devices)
    return Nodes(
        id=np.zeros(count, np.int64),
        cluster=np.zeros(count, np.int32),
        status=np.zeros(count, np.int8),
        labels=np.zeros(count, np.int32),
        cpu_cap=np.zeros(count, np.int64),
        cpu_free=np.zeros(count, np.int64),
        memory_cap=np.zeros(count, np.int64),
        memory_free=np.zeros(count, np.int64),
        model=np.zeros(wide, np.int16),
        blocks_cap=np.zeros(wide, np.int16),
        blocks_free=np.zeros(wide, np.int16),
        slices=np.zeros(wide, np.int16),
        domain=np.full((count, levels), -1, np.int32),
    )


def scratch_copy(nodes: Nodes) -> Nodes:
    """The same nodes with free columns of their own."""
    return nodes._replace(**{name: getattr(nodes, name).copy() for name in FREE_COLUMNS})


def copy_leading(old: tuple[Any, ...], new: tuple[Any, ...]) -> None:
    """Copy arrays into the leading parts of larger ones."""
    for source, target in zip(old, new, strict=True):
        target[tuple(slice(0, size) for size in source.shape)] = source
