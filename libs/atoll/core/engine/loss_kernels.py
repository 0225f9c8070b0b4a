"""What typical tasks could not use of a node's free devices: the loss that placements add to.

A loss is a weighted sum of
- fragments: free blocks that a typical task cannot use, by popularity (F of FGD, ATC'23);
- strands: free blocks beyond what the free CPU could feed, at two rates of CPU per device;
- holes: blocks of each device that are left when typical tasks fill it one after another;
- openness: the square of what is free on touched devices, so that it is spread over nodes.
Devices of different kinds on one node are counted apart, as if they were two nodes.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.state.fit_kernels import VIEW_FREE, VIEW_KIND, WHOLE, View

FINE: Final = 1 << 16
"""Parts of a block."""
STRANDS: Final = 2

FRAGMENTS: Final = 0
HOLES: Final = 1
QUANTUM: Final = 2
"""Loss that counts as one."""
USED: Final = 3
"""0: the policy does not look at the loss."""
STRAND: Final = 4
"""And the next one."""
FEED: Final = 6
"""Milli-CPU per device of a strand, and the next one."""
OPEN: Final = 8
CONSTANTS: Final = 9


class LossTables(NamedTuple):
    """A policy's constants, and typical tasks by what they need; FINE is the whole."""

    constants: NDArray[np.int64]
    """(CONSTANTS) weights in 1/256, and sizes."""
    cpu: NDArray[np.int64]
    """(B) distinct milli-CPU of typical tasks, ascending."""
    devices: NDArray[np.int64]
    """(G) devices of a group of typical tasks that differ only in CPU and kind."""
    blocks: NDArray[np.int64]
    """(G)."""
    runs: NDArray[np.int64]
    """(K, B + 1, G) popularity of those that run on a kind with less CPU than the next of cpu."""
    hole: NDArray[np.int64]
    """(K, B + 1, 101) blocks left of a device of a kind, by the node's CPU, in 1/FINE."""


@njit(cache=True, nogil=True)
def loss(seen: View, cpu_free: int, tables: LossTables) -> int:
    """Loss of a node with these devices and this free CPU, in 1/256 of 1/FINE block."""
    constants = tables.constants
    if constants[USED] == 0:
        return 0
    total, holes, opened = 0, 0, 0
    step = int(np.searchsorted(tables.cpu, cpu_free, side="right"))
    for device in range(seen.shape[1]):
        free = seen[VIEW_FREE, device]
        if free > 0:
            total += free
            opened += free if free < WHOLE else 0
            holes += tables.hole[seen[VIEW_KIND, device], step, free]
    lost = constants[HOLES] * holes
    lost += constants[OPEN] * (opened * opened * FINE // (WHOLE * WHOLE))
    for strand in range(STRANDS):
        fed = max(cpu_free, 0) * FINE * WHOLE // constants[FEED + strand]
        lost += constants[STRAND + strand] * max(0, total * FINE - fed)
    if constants[FRAGMENTS] != 0 and total > 0:
        lost += constants[FRAGMENTS] * (total * FINE - usable(seen, step, tables))
    return int(lost)


@njit(cache=True, nogil=True)
def usable(seen: View, step: int, tables: LossTables) -> int:
    """Free blocks that typical tasks can use, by their popularity, in 1/FINE.

    `step`: how many of the table's amounts of CPU are free.
    """
    found = 0
    for first in range(seen.shape[1]):
        kind = seen[VIEW_KIND, first]
        if seen[VIEW_FREE, first] <= 0 or _was_seen(seen, first):
            continue
        for group in range(tables.blocks.shape[0]):
            popularity = tables.runs[kind, step, group]
            if popularity == 0:
                continue
            count, blocks = 0, 0
            for device in range(first, seen.shape[1]):
                free = seen[VIEW_FREE, device]
                if free >= tables.blocks[group] and seen[VIEW_KIND, device] == kind:
                    count += 1
                    blocks += free
            if count >= tables.devices[group]:
                found += popularity * blocks
    return int(found)


@njit(cache=True, nogil=True, forceinline=True)
def _was_seen(seen: View, first: int) -> bool:
    for device in range(first):
        if seen[VIEW_FREE, device] > 0 and seen[VIEW_KIND, device] == seen[VIEW_KIND, first]:
            return True
    return False
