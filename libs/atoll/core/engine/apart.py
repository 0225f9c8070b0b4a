"""Keeps jobs apart within a cycle, and the tasks of a group apart from each other."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.ids import JobId
from atoll.core.model.plan import GangPlacement, GangRequest
from atoll.core.model.spec import NODE_LEVEL
from atoll.core.state.apart import domain_keys, domain_keys_of, shared
from atoll.core.state.ledger import Ledger
from atoll.core.state.node_table import NodeTable
from atoll.core.state.snapshot import Snapshot

Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]


@dataclass(slots=True)
class Apart:
    """Where jobs of this cycle are that others are kept apart from.

    The filters know of those that ran before it.
    """

    snapshot: Snapshot
    _placed: dict[str, list[tuple[str, Rows]]] = field(default_factory=dict)
    """By name: (level, rows) of each job."""
    _masks: dict[tuple[str, str, int], Mask] = field(default_factory=dict)
    """By name, level and the mask that it was made from, which lives as long as the cycle."""

    def narrow(self, request: GangRequest, mask: Mask) -> Mask:
        """(N) the nodes of a mask that are apart from what this cycle has placed."""
        if request.anti_affinity is None:
            return mask
        name, level = request.anti_affinity.name, request.anti_affinity.level
        key = (name, level, id(mask))
        if key not in self._masks:
            near = [self._near(rows, {level, other}) for other, rows in self._placed.get(name, ())]
            self._masks[key] = mask & ~np.logical_or.reduce(near) if near else mask.copy()
        return self._masks[key]

    def note(self, request: GangRequest, rows: Rows) -> None:
        """A job was placed on some rows."""
        if request.anti_affinity is None:
            return
        name, level = request.anti_affinity.name, request.anti_affinity.level
        self._placed.setdefault(name, []).append((level, rows))
        for key, mask in self._masks.items():
            if key[0] != name:
                continue
            if level == key[1] == NODE_LEVEL:
                # Who counts rooms by this mask looks at these rows again anyhow.
                mask[rows] = False
            else:
                self._masks[key] = mask & ~self._near(rows, {level, key[1]})

    def _near(self, rows: Rows, levels: Iterable[str]) -> Mask:
        near = np.zeros(len(self.snapshot.names), np.bool_)
        for level in sorted(levels):
            keys = domain_keys(self.snapshot.nodes, self.snapshot.level_column(level))
            near |= shared(keys, rows)
        return near


def crowded(placement: GangPlacement, table: NodeTable) -> str:
    """Which bound of tasks in one domain a placement breaks; empty when none."""
    for number, group in enumerate(placement.request.groups):
        spread = group.spread
        if spread is None:
            continue
        column = table.levels.number.get(spread.level)
        rows = [table.row_of[t.node] for t in placement.tasks if t.group == number]
        keys = domain_keys_of(table.nodes, column, np.array(rows, np.int64))
        if max(Counter(keys.tolist()).values(), default=0) > spread.most:
            return f"more than {spread.most} of its tasks are in one {spread.level}"
    return ""


def too_close(placements: Sequence[GangPlacement], ledger: Ledger) -> dict[JobId, str]:
    """Placements that share a domain with a job that they are kept apart from."""
    table = ledger.table
    wrong: dict[JobId, str] = {}
    taken: dict[str, list[tuple[str, Rows]]] = {}
    for placement in placements:
        apart = placement.request.anti_affinity
        if apart is None:
            continue
        rows = np.array([table.row_of[task.node] for task in placement.tasks], np.int64)
        if apart.name not in taken:
            taken[apart.name] = [
                (place.level, np.array([table.row_of[n] for n in place.nodes], np.int64))
                for place in ledger.apart.of(apart.name)
            ]
        others = taken[apart.name]
        if any(_meet(table, rows, other, levels={apart.level, level}) for level, other in others):
            wrong[placement.job] = "it is too close to a job that it is kept apart from"
        others.append((apart.level, rows))
    return wrong


def _meet(table: NodeTable, rows: Rows, others: Rows, *, levels: Iterable[str]) -> bool:
    if np.isin(rows, others).any():
        return True
    for column in (table.levels.number.get(level) for level in levels):
        if column is not None:
            mine, theirs = (table.nodes.domain[some, column] for some in (rows, others))
            if np.isin(mine[mine >= 0], theirs).any():
                return True
    return False
