"""Brings the queue tree into the form of the kernel: only queues that have jobs to place."""

from typing import NamedTuple

import numpy as np

from atoll.core.engine.order_kernels import Floats, Forest, Ints
from atoll.core.policies.interfaces import Standing
from atoll.core.state.needs import Needs, stack
from atoll.core.state.shares import Shares
from atoll.core.state.snapshot import Snapshot

NO_PARENT = -1


class _Tree(NamedTuple):
    """Vertices that matter, numbered from 0, parents first."""

    parent: Ints
    held: Ints
    deserved: Ints
    weight: Floats
    bias: Floats
    leaf: Ints
    """(C) vertex of every class."""


def forest(snapshot: Snapshot, standing: Standing | None, full: Ints) -> Forest:
    """Heaps to be built. `full`: classes with jobs; without a standing queues do not count."""
    shares, classes = snapshot.shares, snapshot.queue.classes
    needs = stack((view.need for view in classes), shares.capacity)
    if standing is None:
        return _forest(_flat(shares, len(classes)), needs, unit=np.zeros(0), full=full)
    vertex = np.array([view.vertex for view in classes], np.int64)
    return _forest(_tree(shares, standing, vertex), needs, unit=standing.unit, full=full)


def _flat(shares: Shares, classes: int) -> _Tree:
    return _Tree(
        np.full(1, NO_PARENT, np.int64),
        shares.held[:1].copy(),
        np.zeros((1, 0), np.int64),
        np.ones(1),
        np.zeros(1),
        np.zeros(classes, np.int64),
    )


def _tree(shares: Shares, standing: Standing, vertex: Ints) -> _Tree:
    used = _with_ancestors(shares.parent, np.unique(vertex))
    inner = np.unique(shares.parent[used[used > 0]])
    own = np.intersect1d(inner, vertex)
    # A queue's own jobs compete with its children as one more child of weight 1.
    chosen = np.concatenate([used, own])
    number = np.full(len(shares.parent), NO_PARENT, np.int64)
    number[used] = np.arange(len(used))
    parent = np.where(used > 0, number[shares.parent[used]], NO_PARENT)
    leaf = number.copy()
    leaf[own] = np.arange(len(used), len(chosen))
    tree = _Tree(
        np.concatenate([parent, number[own]]),
        shares.held[chosen],
        shares.deserved[chosen],
        shares.weight[chosen],
        standing.bias[chosen],
        leaf[vertex],
    )
    _leave_to_own(tree, shares, own)
    return tree


def _leave_to_own(tree: _Tree, shares: Shares, own: Ints) -> None:
    for at, vertex in enumerate(own.tolist(), len(tree.parent) - len(own)):
        children = np.flatnonzero(shares.parent == vertex)
        tree.held[at] -= shares.held[children].sum(axis=0)
        tree.deserved[at] -= shares.deserved[children].sum(axis=0)
        tree.weight[at] = 1.0
    np.maximum(tree.deserved, 0, out=tree.deserved)


def _with_ancestors(parent: Ints, vertices: Ints) -> Ints:
    seen = np.zeros(len(parent), np.bool_)
    seen[0] = True
    while len(vertices):
        seen[vertices] = True
        vertices = np.unique(parent[vertices])
        vertices = vertices[~seen[np.maximum(vertices, 0)]]
    return np.flatnonzero(seen)


def _forest(tree: _Tree, needs: Needs, *, unit: Floats, full: Ints) -> Forest:
    size = len(tree.parent)
    leaf = np.zeros(size, np.bool_)
    leaf[tree.leaf] = True
    leaf[0] |= size == 1
    filled = np.bincount(tree.leaf[full], minlength=size)
    room = filled + np.bincount(tree.parent[1:], minlength=size)[:size]
    first = np.zeros(size + 1, np.int64)
    np.cumsum(room, out=first[1:])
    entry = np.zeros(int(first[-1]) + 1, np.int64)
    order = np.argsort(tree.leaf[full], kind="stable")
    mine = tree.leaf[full][order]
    within = np.arange(len(full)) - np.concatenate([[0], np.cumsum(filled)])[mine]
    entry[first[mine] + within] = full[order]
    return Forest(
        vertex=tree.leaf,
        parent=tree.parent,
        leaf=leaf,
        first=first,
        entry=entry,
        size=filled.astype(np.int64),
        place=np.zeros(size, np.int64),
        best=np.zeros(size, np.int64),
        tier=np.zeros(size, np.int64),
        share=np.zeros(size, np.float64),
        held=tree.held,
        deserved=tree.deserved,
        weight=tree.weight,
        bias=tree.bias,
        unit=unit,
        need=needs.amount,
        kind=needs.kind,
        amount=np.zeros(needs.amount.shape[1], np.int64),
    )
