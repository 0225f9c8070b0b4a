"""When a node, and the domain around it, first has room for some tasks of a shape."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.room_kernels import room_for
from atoll.core.state.columns import Cuts, Models, Nodes, Shapes
from atoll.core.state.compiled import bare
from atoll.core.state.fit_kernels import View, look
from atoll.core.state.ledger_kernels import Uses, give_tasks, take_task

Ints = NDArray[np.int64]
OUTSIDE: Final = -1
_SOUGHT: Final = -np.inf


class Ends(NamedTuple):
    """T tasks that hold capacity."""

    uses: Uses
    by_end: Ints
    """(T) in the order in which they end."""
    at: NDArray[np.float64]
    """(T) when."""
    now: float


class Search(NamedTuple):
    """What is looked for, and room to work in."""

    domain: NDArray[np.int32]
    """(N) numbers, OUTSIDE where the shape may not go."""
    cluster: NDArray[np.int32]
    seen: View
    rooms: Ints
    """(N) tasks that a node holds."""
    sums: Ints
    """(domains)."""
    found: NDArray[np.float64]
    """(clusters) when a domain there first holds all; infinity: never."""


@bare
def first_fits(
    nodes: Nodes,
    models: Models,
    cuts: Cuts,
    shapes: Shapes,
    shape: int,
    need: int,
    ends: Ends,
    search: Search,
) -> None:
    """Find when `need` tasks fit in a domain of each cluster, if nothing starts meanwhile.

    The nodes are as before afterwards.
    """
    domain, cluster, seen, rooms, sums, found = search
    left = _begin(nodes, models, cuts, shapes, shape, need, ends.now, search)
    gone = 0
    while left > 0 and gone < ends.by_end.shape[0]:
        task = ends.by_end[gone]
        gone += 1
        give_tasks(nodes, ends.uses, task, task + 1)
        row = ends.uses.row[task]
        if domain[row] == OUTSIDE or found[cluster[row]] != _SOUGHT:
            continue
        look(nodes, models, row, seen)
        room = room_for(nodes, cuts, shapes, shape, row, need, seen)
        sums[domain[row]] += room - rooms[row]
        rooms[row] = room
        if sums[domain[row]] >= need:
            found[cluster[row]] = ends.at[task]
            left -= 1
    for at in range(gone):
        take_task(nodes, ends.uses, ends.by_end[at])
    for at in range(found.shape[0]):
        if found[at] == _SOUGHT:
            found[at] = np.inf


@bare
def _begin(
    nodes: Nodes,
    models: Models,
    cuts: Cuts,
    shapes: Shapes,
    shape: int,
    need: int,
    now: float,
    search: Search,
) -> int:
    """Count the room that there is now; how many clusters have too little."""
    domain, cluster, seen, rooms, sums, found = search
    found[:] = np.inf
    sums[:] = 0
    left = 0
    for row in range(domain.shape[0]):
        rooms[row] = 0
        if domain[row] == OUTSIDE:
            continue
        look(nodes, models, row, seen)
        rooms[row] = room_for(nodes, cuts, shapes, shape, row, need, seen)
        sums[domain[row]] += rooms[row]
        if found[cluster[row]] == np.inf:
            found[cluster[row]] = _SOUGHT
            left += 1
        if sums[domain[row]] >= need and found[cluster[row]] == _SOUGHT:
            found[cluster[row]] = now
            left -= 1
    return left
