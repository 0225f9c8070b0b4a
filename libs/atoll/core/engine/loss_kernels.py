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
from numpy.typing import NDArray

from atoll.core.state.compiled import bare, inlined
from atoll.core.state.fit_kernels import VIEW_FREE, VIEW_KIND, WHOLE, View

FINE: Final = 1 << 16
"""Parts of a block."""

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


class Parts(NamedTuple):
    """What the loss of a node is made of, but for fragments."""

    step: int
    """How many of the table's amounts of CPU are free."""
    fed: int
    """Blocks that the free CPU could feed by the first strand, in 1/FINE."""
    fed_too: int
    """By the second one."""
    free: int
    """Blocks."""
    opened: int
    """Those of touched devices."""
    holes: int


NO_PARTS: Final = Parts(0, 0, 0, 0, 0, 0)


@bare
def loss(seen: View, cpu_free: int, tables: LossTables) -> int:
    """Loss of a node with these devices and this free CPU, in 1/256 of 1/FINE block."""
    constants = tables.constants
    if constants[USED] == 0:
        return 0
    parts = parts_of(seen, cpu_free, tables)
    lost = weighed(parts, parts.free, parts.opened, parts.holes, tables)
    if constants[FRAGMENTS] != 0 and parts.free > 0:
        lost += constants[FRAGMENTS] * (parts.free * FINE - usable(seen, parts.step, tables))
    return int(lost)


@inlined
def has_parts(tables: LossTables) -> bool:
    """Whether the loss is the weighed parts, and nothing else."""
    return bool(tables.constants[USED] != 0 and tables.constants[FRAGMENTS] == 0)


@inlined
def parts_of(seen: View, cpu_free: int, tables: LossTables) -> Parts:
    """The parts of a node with these devices and this free CPU."""
    step, total, opened, holes = _step(cpu_free, tables), 0, 0, 0
    for device in range(seen.shape[1]):
        free = seen[VIEW_FREE, device]
        if free > 0:
            total += free
            opened += free if free < WHOLE else 0
            holes += tables.hole[seen[VIEW_KIND, device], step, free]
    fine = max(cpu_free, 0) * FINE * WHOLE
    constants = tables.constants
    return Parts(step, fine // constants[FEED], fine // constants[FEED + 1], total, opened, holes)


@inlined
def less_a_share(parts: Parts, seen: View, device: int, left: int, tables: LossTables) -> int:
    """The weighed parts once a device has only `left` blocks free, 0 or more."""
    free, hole = seen[VIEW_FREE, device], tables.hole[seen[VIEW_KIND, device], parts.step]
    opened = parts.opened - (free if free < WHOLE else 0) + (left if left < WHOLE else 0)
    holes = parts.holes - hole[free] + (hole[left] if left > 0 else 0)
    return int(weighed(parts, parts.free - free + left, opened, holes, tables))


@inlined
def weighed(parts: Parts, free: int, opened: int, holes: int, tables: LossTables) -> int:
    """Parts by their weights, with these amounts of blocks."""
    constants = tables.constants
    lost = constants[HOLES] * holes
    lost += constants[OPEN] * (opened * opened * FINE // (WHOLE * WHOLE))
    lost += constants[STRAND] * max(0, free * FINE - parts.fed)
    lost += constants[STRAND + 1] * max(0, free * FINE - parts.fed_too)
    return int(lost)


@inlined
def _step(cpu_free: int, tables: LossTables) -> int:
    low, high = 0, tables.cpu.shape[0]
    while low < high:
        middle = (low + high) // 2
        if tables.cpu[middle] <= cpu_free:
            low = middle + 1
        else:
            high = middle
    return low


@bare
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


@inlined
def _was_seen(seen: View, first: int) -> bool:
    for device in range(first):
        if seen[VIEW_FREE, device] > 0 and seen[VIEW_KIND, device] == seen[VIEW_KIND, first]:
            return True
    return False
