"""Where a gang could go whole: domains from the narrowest level on, the tightest first."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.domain_kernels import NOWHERE, rows_in, sum_up
from atoll.core.model.spec import Topology
from atoll.core.state.snapshot import Snapshot

Rows = NDArray[np.int64]
Step = NDArray[np.int32]
"""(N) number of each node's domain on one level; negative outside."""

MOST_DOMAINS = 16
"""Domains of one level that are tried."""


def ladder(snapshot: Snapshot, topology: Topology | None, *, gathers: bool) -> tuple[Step, ...]:
    """The levels in the order in which they are tried.

    A required level is the only one. A preferred one is followed by the wider ones, and
    every ladder but a required one ends with the cluster.
    """
    columns = [column for _, column in snapshot.levels]
    if topology is None:
        chosen = columns if gathers else []
    else:
        at = snapshot.level_column(topology.level)
        chosen = [] if at is None else columns[columns.index(at) :]
        chosen = chosen[:1] if topology.required else chosen
    steps = tuple(np.ascontiguousarray(snapshot.nodes.domain[:, column]) for column in chosen)
    required = topology is not None and topology.required
    return steps if required else (*steps, snapshot.nodes.cluster)


def feasible(
    step: Step, rooms: NDArray[np.int64], need: Sequence[int], *, widest: bool = False
) -> Iterator[Rows]:
    """Rows of each domain in which every group has room for its need, the tightest first.

    `rooms` (G, N) says how many tasks of a group each node holds by itself, so that with
    several groups a domain may still turn out too small. Widest: the roomiest first.
    """
    sums, first = sum_up(step, rooms)
    fits = (sums >= np.array(need, np.int64)[:, None]).all(axis=0) & (first != NOWHERE)
    numbers = np.flatnonzero(fits)
    total = sums[:, numbers].sum(axis=0)
    order = np.lexsort((first[numbers], -total if widest else total))
    for number in numbers[order][:MOST_DOMAINS].tolist():
        yield rows_in(step, rooms, number)
