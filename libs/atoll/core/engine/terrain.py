"""The tree of domains as arrays: every node has a vertex on every level, from the narrowest up."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.state.snapshot import Snapshot

Ints = NDArray[np.int64]


class Terrain(NamedTuple):
    """L levels, the narrowest first, the clusters last; vertices are numbered level by level.

    Nodes outside every domain of a level share a vertex there with those of the same
    vertex above: no gang is asked to stay in it, but it counts when room is summed up.
    """

    vertex: NDArray[np.int32]
    """(N, L) of every node."""
    real: NDArray[np.bool_]
    """(V) False for those outside."""
    first_vertex: Ints
    """(L + 1) numbers of a level."""
    first_row: Ints
    """(V + 1) into `rows`."""
    rows: NDArray[np.int32]
    """Ascending by vertex."""
    first_child: Ints
    """(V + 1) into `child`; the narrowest level has none."""
    child: NDArray[np.int32]


def terrain_of(snapshot: Snapshot) -> Terrain | None:
    """The terrain of a snapshot; None when a domain lies in several others of a wider level."""
    nodes = snapshot.nodes
    levels = [nodes.domain[:, column] for _, column in snapshot.levels]
    above, inverse = np.unique(nodes.cluster, return_inverse=True)
    places, real = [inverse], [np.ones(len(above), np.bool_)]
    for domain in reversed(levels):
        place, is_real = _below(domain, places[-1])
        if is_real is None:
            return None
        places.append(place)
        real.append(is_real)
    return _terrain(places[::-1], real[::-1])


def flat_terrain(nodes: int) -> Terrain:
    """All nodes in one vertex: for boards that know of no domains."""
    return _terrain([np.zeros(nodes, np.int64)], [np.ones(1, np.bool_)])


def _below(domain: NDArray[np.int32], above: Ints) -> tuple[Ints, NDArray[np.bool_] | None]:
    # Outside, the vertex above stands for the domain.
    wide = int(above.max(initial=0)) + 1
    key = np.where(domain >= 0, domain.astype(np.int64) + wide, above)
    numbers, first, place = np.unique(key, return_index=True, return_inverse=True)
    nested = np.array_equal(above, above[first][place])
    return place, (numbers >= wide) if nested else None


def _terrain(places: list[Ints], real: list[NDArray[np.bool_]]) -> Terrain:
    first_vertex = np.cumsum([0, *(len(each) for each in real)])
    vertex = np.stack(places, axis=1) + first_vertex[:-1]
    rows, children, sizes = [], [], []
    for level, own in enumerate(vertex.T):
        order = np.argsort(own, kind="stable")
        rows.append(order)
        sizes.append(np.bincount(places[level], minlength=len(real[level])))
    numbers = np.zeros(first_vertex[-1], np.int64)
    for level in range(1, vertex.shape[1]):
        below, first = np.unique(vertex[:, level - 1], return_index=True)
        parent = vertex[first, level]
        children.append(below[np.argsort(parent, kind="stable")])
        numbers += np.bincount(parent, minlength=len(numbers))
    return Terrain(
        vertex=vertex.astype(np.int32),
        real=np.concatenate(real),
        first_vertex=first_vertex,
        first_row=_offsets(np.concatenate(sizes)),
        rows=np.concatenate(rows).astype(np.int32),
        first_child=_offsets(numbers),
        child=np.concatenate([np.zeros(0, np.int64), *children]).astype(np.int32),
    )


def _offsets(sizes: Ints) -> Ints:
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets
