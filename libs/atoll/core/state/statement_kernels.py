"""The journal of a statement: tasks taken from scratch columns, in order, so they can go back."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.state.columns import SHAPE_CPU, SHAPE_MEMORY, Cuts, Models, Nodes, Shapes
from atoll.core.state.compiled import bare
from atoll.core.state.fit_kernels import NO_FIT, Devices, View, charge, pick
from atoll.core.state.ledger_kernels import Uses, take_task


class Journal(NamedTuple):
    """Operations: entry t is one task with its shares in `uses`."""

    uses: Uses
    size: NDArray[np.int64]
    """(1) operations so far."""
    job: NDArray[np.int64]
    """Number of the candidate job."""
    group: NDArray[np.int64]
    """Task group of the job."""
    shape: NDArray[np.int64]
    """Row of the shape table."""
    units: NDArray[np.int64]
    """Charge in 1/56 block."""
    seen: View
    """Room to look at a node."""


@bare
def has_room(journal: Journal, tasks: int, shares: int) -> bool:
    """Whether so many more tasks with up to `shares` shares each can be noted."""
    size = journal.size[0]
    if size + tasks >= journal.uses.first_grant.shape[0]:
        return False
    used = journal.uses.first_grant[size]
    return bool(used + tasks * shares < journal.uses.device.shape[0])


@bare
def place(
    nodes: Nodes,
    models: Models,
    cuts: Cuts,
    shapes: Shapes,
    journal: Journal,
    shape: int,
    row: int,
    device: int,
) -> int:
    """Take one task and note it; its charge, or NO_FIT. There must be room.

    `device`: where a share of one device goes, or ANY_DEVICE.
    """
    uses = journal.uses
    task = journal.size[0]
    at = uses.first_grant[task]
    out = Devices(uses.device, uses.blocks, uses.bits)
    shares = pick(nodes, models, cuts, shapes, shape, row, device, journal.seen, out, at)
    if shares == NO_FIT:
        return NO_FIT
    journal.shape[task] = shape
    uses.row[task] = row
    uses.cpu[task] = shapes[shape, SHAPE_CPU]
    uses.memory[task] = shapes[shape, SHAPE_MEMORY]
    uses.first_grant[task + 1] = at + shares
    units = charge(cuts, shapes, shape, journal.seen, out, at, at + shares)
    journal.units[task] = units
    journal.size[0] = task + 1
    take_task(nodes, uses, task)
    return units
