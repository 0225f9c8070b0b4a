"""Nodes of a snapshot by cluster, name and domain, and which of them may be booked."""

import itertools
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.ids import ClusterName
from atoll.core.model.mig import table_for
from atoll.core.model.reason import ReasonCode
from atoll.core.model.reservation import Parts
from atoll.core.model.resources import DeviceRequest
from atoll.core.state.columns import MODE_BLOCKS, MODE_MIG, STATUS_OK, STATUS_SUSPECT
from atoll.core.state.node_table import NodeTable
from atoll.core.state.snapshot import Snapshot

Ints = NDArray[np.int64]
Labels = tuple[tuple[str, str], ...]
PASSING: Final = frozenset({None, ReasonCode.CLUSTER_BEHIND})
"""Why a cluster may take no work just now, and yet be booked."""


class Terrain:
    """The nodes of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        nodes = snapshot.nodes
        opened = np.array([view.closed in PASSING for view in snapshot.clusters], np.bool_)
        usable = (nodes.status == STATUS_OK) | (nodes.status == STATUS_SUSPECT)
        self.usable = usable & opened[nodes.cluster] if len(nodes.id) else usable
        """(N) nodes that take work, or will soon."""
        rentals = snapshot.rentals
        self._own = ~rentals.rows if rentals else np.ones(len(nodes.id), np.bool_)
        """(N) what is rented comes and goes: nobody books it."""
        self.usable &= self._own
        self._number = {view.name: number for number, view in enumerate(snapshot.clusters)}
        order = np.argsort(nodes.cluster, kind="stable")
        bounds = np.searchsorted(nodes.cluster[order], np.arange(len(snapshot.clusters) + 1))
        self._rows = [order[a:b] for a, b in itertools.pairwise(bounds)]

    @cached_property
    def clusters(self) -> tuple[ClusterName, ...]:
        """All clusters by name."""
        return tuple(sorted(self._number))

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], int]:
        names, cluster = self.snapshot.clusters, self.snapshot.nodes.cluster.tolist()
        return {
            (names[cluster[row]].name, name): row for row, name in enumerate(self.snapshot.names)
        }

    def cluster_of(self, row: int) -> ClusterName:
        """The cluster of a node."""
        return self.snapshot.clusters[int(self.snapshot.nodes.cluster[row])].name

    def rows(self, cluster: ClusterName, *, nobody: bool = False) -> Ints:
        """Nodes of a cluster that may be booked; for nobody, all of them."""
        number = self._number.get(cluster)
        if number is None:
            return np.zeros(0, np.int64)
        rows = self._rows[number]
        return rows[self._own[rows]] if nobody else rows[self.usable[rows]]

    def rows_of(self, parts: Parts) -> Ints:
        """The nodes of a place that are there."""
        row_of = self.snapshot.row_of
        nodes = (share.node for part in parts for share in part.shares)
        return np.array([row_of[node] for node in nodes if node in row_of], np.int64)

    def labelled(self, rows: Ints, labels: Labels) -> NDArray[np.bool_]:
        """(rows) True for nodes that have every label."""
        having = self.snapshot.label_sets_with(labels)
        result: NDArray[np.bool_] = having[self.snapshot.nodes.labels[rows]]
        return result

    def named_nodes(self, names: Sequence[str], *, nobody: bool) -> Ints | None:
        """Nodes given as `cluster/node`; None when one is not there or may not be booked."""
        found = [self._by_name.get(_split(name)) for name in names]
        rows = np.array(sorted(row for row in found if row is not None), np.int64)
        may_be = self._own if nobody else self.usable
        complete = len(rows) == len(names) and bool(may_be[rows].all())
        return rows if complete else None

    def domains(self, level: str, *, nobody: bool) -> Ints:
        """(N) number of each node's domain of a level; -1 for none, and when a part is unusable."""
        column = self.snapshot.level_column(level)
        if column is None:
            return np.full(len(self.snapshot.names), -1, np.int64)
        numbers = self.snapshot.nodes.domain[:, column].astype(np.int64)
        numbers[~self._own] = -1
        if not nobody:
            numbers[np.isin(numbers, numbers[~self.usable])] = -1
        return numbers

    def named_domains(self, level: str, names: Sequence[str], *, nobody: bool) -> Ints | None:
        """Nodes of domains given as `cluster/domain`; None when one is not there whole."""
        numbers, known = self.domains(level, nobody=nobody), self.domain_names(level)
        wanted = [n for n, name in known.items() if name in set(names)]
        if {known[number] for number in wanted} != set(names):
            return None
        rows = np.flatnonzero(np.isin(numbers, np.array(wanted, np.int64)))
        return rows if set(numbers[rows].tolist()) == set(wanted) else None

    def domain_names(self, level: str) -> dict[int, str]:
        """Domains of a level by number, as `cluster/domain`."""
        table = self.snapshot.world
        if not isinstance(table, NodeTable):
            return {}
        used = set(self.domains(level, nobody=True).tolist()) - {-1}
        values = table.domains.values
        return {n: f"{values[n][1]}/{values[n][-1]}" for n in sorted(used)}

    def devices_by_request(self, rows: Ints) -> list[tuple[DeviceRequest, int]]:
        """How many devices of every kind nodes have, each kind by the request that takes one."""
        models = self.snapshot.hardware.models
        kinds = {number: kind for kind, number in self.snapshot.kinds.items()}
        totals: Counter[tuple[str, str]] = Counter()
        for number, count in Counter(self.snapshot.nodes.model[rows].ravel().tolist()).items():
            kind, profile = kinds.get(int(models.kind[number]), ""), ""
            if models.mode[number] == MODE_MIG:
                table = table_for(kind, int(models.memory[number]))
                profile = table.profiles[-1].name if table else ""
            if profile or models.mode[number] & MODE_BLOCKS:
                totals[kind, profile] += count
        return [
            (DeviceRequest(kind, 1, profile=profile), total)
            for (kind, profile), total in sorted(totals.items())
        ]


def _split(name: str) -> tuple[str, str]:
    cluster, _, rest = name.partition("/")
    return cluster, rest
