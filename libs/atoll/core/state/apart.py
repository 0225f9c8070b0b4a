"""Where jobs are that others are to be kept apart from.

A name stands for jobs of one queue: requests carry the queue in it. Two jobs of a name never
share a domain of the level that either of them gives; nodes without a domain of the level are
each one of their own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.ids import AttemptId, NodeId
from atoll.core.model.plan import RunFacts, TaskPlacement
from atoll.core.state.columns import Nodes

Keys = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Place:
    """Where one job of a name is, and the level that it gives."""

    level: str
    nodes: tuple[NodeId, ...]


class ApartBook:
    """Places of running jobs by name."""

    def __init__(self) -> None:
        self._held: dict[str, dict[AttemptId, Place]] = {}
        self._frozen: dict[str, tuple[Place, ...]] = {}

    def add(self, attempt: AttemptId, run: RunFacts | None, tasks: Iterable[TaskPlacement]) -> None:
        """Note where an attempt is, if its job is to be kept apart from others."""
        if run is not None and run.apart is not None:
            place = Place(run.apart.level, tuple({task.node for task in tasks}))
            self._held.setdefault(run.apart.name, {})[attempt] = place
            self._frozen.pop(run.apart.name, None)

    def remove(self, attempt: AttemptId, run: RunFacts | None) -> None:
        """Forget an attempt."""
        if run is not None and run.apart is not None:
            places = self._held.get(run.apart.name, {})
            places.pop(attempt, None)
            self._frozen.pop(run.apart.name, None)
            if not places:
                self._held.pop(run.apart.name, None)

    def of(self, name: str) -> tuple[Place, ...]:
        """All places of a name."""
        if name not in self._frozen:
            self._frozen[name] = tuple(self._held.get(name, {}).values())
        return self._frozen[name]

    def freeze(self) -> Mapping[str, tuple[Place, ...]]:
        """All places by name; does not change any more."""
        return {name: self.of(name) for name in self._held}


def domain_keys(nodes: Nodes, column: int | None) -> Keys:
    """(N) number of each node's domain, or one of its own, below zero, where it has none."""
    return domain_keys_of(nodes, column, np.arange(len(nodes.id), dtype=np.int64))


def domain_keys_of(nodes: Nodes, column: int | None, rows: Keys) -> Keys:
    """(R) the same for some rows."""
    own = -1 - rows
    if column is None:
        return own
    domain = nodes.domain[rows, column]
    return np.where(domain >= 0, domain, own)


def shared(keys: Keys, rows: Keys) -> NDArray[np.bool_]:
    """(N) True for the nodes that share a domain with one of some rows."""
    if not len(rows):
        return np.zeros(len(keys), np.bool_)
    return np.isin(keys, np.unique(keys[rows]))
