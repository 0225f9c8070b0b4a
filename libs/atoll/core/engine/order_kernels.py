"""The order of the queue while a cycle goes on: a tree of heaps over classes and queues.

A vertex of the queue tree holds a heap of its children, a leaf one of its
classes; the first of all is at the root. When a queue gets something, only it
and its ancestors move, each in the heap of its parent: O(depth x log(siblings)).
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.state.compiled import bare

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

BELOW: Final = 0
"""Of a queue that holds less than it deserves of the kind that its first class asks for."""
OVER: Final = 1
NOBODY: Final = -1
_DEVICES: Final = 2
"""Column of device kind 0 in amounts."""


class Line(NamedTuple):
    """The queue in the kernel: J jobs of C classes; a class waits, or is found not to fit."""

    outer: Ints
    """(J) the smallest first, whatever the queue."""
    inner: Ints
    """(J) in a queue."""
    key: Floats
    """(J) in a queue among equals; then submit time, then id."""
    job: Ints
    """(J) ids."""
    submitted_at: Floats
    next: Ints
    """(C) index of the class's next job."""
    end: Ints
    """(C) index after its last one."""
    more: NDArray[np.bool_]
    """(C) jobs behind `end`."""
    state: NDArray[np.int8]
    """(C) WAITING, NO_PLACE or AT_LIMIT."""
    first_column: Ints
    """(C + 1) into `column`: a class without columns is a gang, placed outside."""
    column: Ints
    """Tree columns of a class's alternatives, the preferred first."""
    first_limit: Ints
    limit: Ints
    """Limits that bind the class."""


class Forest(NamedTuple):
    """Queues in the kernel: V vertices, R resources, K device kinds; vertex 0 is the root."""

    vertex: Ints
    """(C) the leaf that each class is in."""
    parent: Ints
    """(V) -1 for the root; a parent comes before its children."""
    leaf: NDArray[np.bool_]
    """(V) its entries are classes, not vertices."""
    first: Ints
    """(V + 1) into `entry`."""
    entry: Ints
    """Heaps, one after another."""
    size: Ints
    """(V) entries that are in the heap."""
    place: Ints
    """(V) where a vertex is in its parent's heap."""
    best: Ints
    """(V) the first class below it."""
    tier: Ints
    """(V) BELOW or OVER."""
    share: Floats
    """(V) the smallest first in a tier."""
    held: Ints
    """(V, R) with what the cycle has placed."""
    deserved: Ints
    """(V, K)."""
    weight: Floats
    """(V)."""
    bias: Floats
    """(V) added to the share of one over what it deserves, for its use in the past."""
    unit: Floats
    """(R) share of the whole that one unit of a resource is."""
    need: Ints
    """(C, R) what a job of the class would add."""
    kind: Ints
    """(C) device kind that the class asks for; negative for none."""
    amount: Ints
    """(R) what was placed last."""


@bare
def build_heaps(line: Line, forest: Forest) -> None:
    """Order all heaps, after the leaves were filled with classes that have jobs."""
    for vertex in range(forest.parent.shape[0] - 1, -1, -1):
        for at in range(forest.size[vertex] // 2 - 1, -1, -1):
            _sink(line, forest, vertex, at)
        if forest.size[vertex] > 0:
            _stand(line, forest, vertex)
            parent = forest.parent[vertex]
            if parent >= 0:
                _put(forest, parent, forest.size[parent], vertex)
                forest.size[parent] += 1


@bare
def head(forest: Forest) -> int:
    """The class whose turn it is, or NOBODY."""
    return int(forest.best[0]) if forest.size[0] > 0 else NOBODY


@bare
def advance(line: Line, forest: Forest, group: int) -> None:
    """The first class has placed a job, and its queue holds `forest.amount` more."""
    leaf = forest.vertex[group]
    vertex = leaf
    while vertex >= 0:
        for resource in range(forest.amount.shape[0]):
            forest.held[vertex, resource] += forest.amount[resource]
        vertex = forest.parent[vertex]
    if line.next[group] < line.end[group]:
        _sink(line, forest, leaf, 0)
    elif not line.more[group]:
        # Its queue stands by the next class at once.
        _remove(line, forest, leaf, 0)
    _climb(line, forest, leaf)


@bare
def leave(line: Line, forest: Forest, group: int) -> None:
    """Take the first class out."""
    leaf = forest.vertex[group]
    _remove(line, forest, leaf, 0)
    _climb(line, forest, leaf)


@bare
def _climb(line: Line, forest: Forest, vertex: int) -> None:
    while True:
        parent = forest.parent[vertex]
        if forest.size[vertex] > 0:
            _stand(line, forest, vertex)
            if parent >= 0:
                at = _rise(line, forest, parent, forest.place[vertex])
                _sink(line, forest, parent, at)
        elif parent >= 0:
            _remove(line, forest, parent, forest.place[vertex])
        if parent < 0:
            return
        vertex = parent


@bare
def _stand(line: Line, forest: Forest, vertex: int) -> None:
    top = forest.entry[forest.first[vertex]]
    group = top if forest.leaf[vertex] else forest.best[top]
    forest.best[vertex] = group
    kind = forest.kind[group]
    if 0 <= kind < forest.deserved.shape[1]:
        held, deserved = forest.held[vertex, _DEVICES + kind], forest.deserved[vertex, kind]
        if held < deserved:
            forest.tier[vertex] = BELOW
            forest.share[vertex] = held / deserved
            return
    dominant = 0.0
    for resource in range(forest.unit.shape[0]):
        amount = forest.held[vertex, resource] + forest.need[group, resource]
        dominant = max(dominant, amount * forest.unit[resource])
    forest.tier[vertex] = OVER
    forest.share[vertex] = dominant / forest.weight[vertex] + forest.bias[vertex]


@bare
def _put(forest: Forest, vertex: int, at: int, entry: int) -> None:
    forest.entry[forest.first[vertex] + at] = entry
    if not forest.leaf[vertex]:
        forest.place[entry] = at


@bare
def _remove(line: Line, forest: Forest, vertex: int, at: int) -> None:
    forest.size[vertex] -= 1
    size = forest.size[vertex]
    if at < size:
        _put(forest, vertex, at, forest.entry[forest.first[vertex] + size])
        _sink(line, forest, vertex, _rise(line, forest, vertex, at))


@bare
def _rise(line: Line, forest: Forest, vertex: int, at: int) -> int:
    while at > 0 and _ahead(line, forest, vertex, at, (at - 1) // 2):
        _swap(forest, vertex, at, (at - 1) // 2)
        at = (at - 1) // 2
    return at


@bare
def _sink(line: Line, forest: Forest, vertex: int, at: int) -> None:
    size = forest.size[vertex]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _ahead(line, forest, vertex, child + 1, child):
            child += 1
        if not _ahead(line, forest, vertex, child, at):
            return
        _swap(forest, vertex, at, child)
        at = child


@bare
def _swap(forest: Forest, vertex: int, one: int, other: int) -> None:
    first = forest.first[vertex]
    a, b = forest.entry[first + one], forest.entry[first + other]
    _put(forest, vertex, one, b)
    _put(forest, vertex, other, a)


@bare
def _ahead(line: Line, forest: Forest, vertex: int, one: int, other: int) -> bool:
    first = forest.first[vertex]
    a, b = forest.entry[first + one], forest.entry[first + other]
    if forest.leaf[vertex]:
        return _before(line, a, b)
    x, y = _job(line, forest.best[a]), _job(line, forest.best[b])
    if line.outer[x] != line.outer[y]:
        return bool(line.outer[x] < line.outer[y])
    if forest.tier[a] != forest.tier[b]:
        return bool(forest.tier[a] < forest.tier[b])
    if forest.share[a] != forest.share[b]:
        return bool(forest.share[a] < forest.share[b])
    return _before(line, forest.best[a], forest.best[b])


@bare
def _before(line: Line, one: int, other: int) -> bool:
    a, b = _job(line, one), _job(line, other)
    if line.outer[a] != line.outer[b]:
        return bool(line.outer[a] < line.outer[b])
    if line.inner[a] != line.inner[b]:
        return bool(line.inner[a] < line.inner[b])
    if line.key[a] != line.key[b]:
        return bool(line.key[a] < line.key[b])
    if line.submitted_at[a] != line.submitted_at[b]:
        return bool(line.submitted_at[a] < line.submitted_at[b])
    return bool(line.job[a] < line.job[b])


@bare
def _job(line: Line, group: int) -> int:
    # A class that is through stays where its last job was until its turn comes.
    return int(min(line.next[group], line.end[group] - 1))
