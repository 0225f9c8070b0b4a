"""Where a gang could go whole: domains from the narrowest level on, the tightest first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Ladder:
    """Levels of the topology for one request."""

    steps: tuple[Step, ...]
    """In the order in which they are tried: from the narrowest on, at most up to the cluster."""
    finer: tuple[tuple[Step, ...], ...]
    """By step: the levels below it, the widest first."""


def ladder(snapshot: Snapshot, topology: Topology | None, *, gathers: bool) -> Ladder:
    """The levels in the order in which they are tried.

    A required level is the only one. A preferred one is followed by the wider ones, and
    every ladder but a required one ends with the cluster.
    """
    columns = [column for _, column in snapshot.levels]
    levels = [np.ascontiguousarray(snapshot.nodes.domain[:, column]) for column in columns]
    levels.append(snapshot.nodes.cluster)
    first, end = level_range(snapshot, topology)
    if topology is None and not gathers:
        first = len(columns)
    chosen = range(first, end)
    return Ladder(
        tuple(levels[at] for at in chosen), tuple(tuple(levels[:at][::-1]) for at in chosen)
    )


def level_range(snapshot: Snapshot, topology: Topology | None) -> tuple[int, int]:
    """First and end of the levels on which a gang may be placed; the last of all is the cluster."""
    columns = [column for _, column in snapshot.levels]
    if topology is None:
        return 0, len(columns) + 1
    at = snapshot.level_column(topology.level)
    if at is None:
        return (0, 0) if topology.required else (len(columns), len(columns) + 1)
    first = columns.index(at)
    return first, first + 1 if topology.required else len(columns) + 1


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


def fewest(finer: Sequence[Step], rows: Rows, room: NDArray[np.int64], *, need: int) -> Rows:
    """Those of a domain's rows that lie in the fewest domains below it that hold `need` tasks.

    On each level the roomiest domains are taken until one holds the rest: of those the
    tightest. Rows outside every domain of the level go together as one.
    """
    for step in finer:
        numbers, first, place = np.unique(step[rows], return_index=True, return_inverse=True)
        sums = np.bincount(place, room[rows], len(numbers)).astype(np.int64)
        chosen = _cover(sums, first, need)
        rows = rows[np.isin(place, chosen)]
    return rows


def _cover(sums: NDArray[np.int64], first: Rows, need: int) -> list[int]:
    left = set(range(len(sums)))
    chosen: list[int] = []
    while left:
        holds = [at for at in left if sums[at] >= need]
        if holds:
            return [*chosen, min(holds, key=lambda at: (int(sums[at]), int(first[at])))]
        roomiest = min(left, key=lambda at: (-int(sums[at]), int(first[at])))
        left.remove(roomiest)
        chosen.append(roomiest)
        need -= int(sums[roomiest])
    return chosen
