"""Where a gang could go whole: domains from the narrowest level on, the tightest first."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.spec import Topology
from atoll.core.state.snapshot import Snapshot

Rows = NDArray[np.int64]

MOST_DOMAINS = 16
"""Domains of one level that are tried."""


def ladder(
    snapshot: Snapshot, topology: Topology | None, *, gathers: bool
) -> list[NDArray[np.int32]]:
    """(N) domain numbers by level, in the order in which levels are tried; -1 outside.

    A required level is the only one. A preferred one is followed by the wider ones, and
    every ladder but a required one ends with the cluster.
    """
    columns = [column for _, column in snapshot.levels]
    clusters = snapshot.nodes.cluster
    if topology is None:
        chosen = columns if gathers else []
    else:
        at = snapshot.level_column(topology.level)
        chosen = [] if at is None else columns[columns.index(at) :]
        chosen = chosen[:1] if topology.required else chosen
    steps = [np.ascontiguousarray(snapshot.nodes.domain[:, column]) for column in chosen]
    return steps if topology is not None and topology.required else [*steps, clusters]


def feasible(
    domain: NDArray[np.int32], rooms: Sequence[Rows], need: Sequence[int], *, widest: bool = False
) -> Iterator[Rows]:
    """Rows of each domain in which every group has room for its need, the tightest first.

    `rooms` says by group how many tasks each node holds by itself, so that with several
    groups a domain may still turn out too small. Widest: the roomiest first.
    """
    rows = np.flatnonzero((domain >= 0) & (np.sum(rooms, axis=0) > 0))
    if not len(rows):
        return
    numbers, first, place = np.unique(domain[rows], return_index=True, return_inverse=True)
    sums = [np.bincount(place, room[rows], len(numbers)) for room in rooms]
    fits = np.all([s >= n for s, n in zip(sums, need, strict=True)], axis=0)
    total = np.sum(sums, axis=0) * (-1 if widest else 1)
    order = np.lexsort((first, total))
    for number in order[fits[order]][:MOST_DOMAINS].tolist():
        yield rows[place == number]
