"""Clusters, nodes and the settings of queues: what a world has to run things on."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

import numpy as np

from atoll.core.model.booking import OccurrenceId, Window
from atoll.core.model.ids import ClusterName, NodeId, QueueName
from atoll.core.model.inventory import Avoidance, Cluster, ClusterState, Node
from atoll.core.model.job import Queue
from atoll.core.model.reason import ReasonCode
from atoll.core.state.columns import STATUS_OK, STATUS_SUSPECT
from atoll.core.state.ledger import Ledger
from atoll.core.state.node_table import NodeTable
from atoll.core.state.pace import Pace
from atoll.core.state.queue_books import QueueBooks
from atoll.core.state.snapshot import ClusterView
from atoll.core.state.stamps import Stamps
from atoll.core.state.windows import WindowBook

UNKNOWN = ReasonCode.NO_CLUSTER


class Fleet:
    """The part of a world that knows nothing of jobs."""

    def __init__(self, half_life_s: float) -> None:
        self._table = NodeTable()
        self.ledger = Ledger(self._table)
        self._queues = QueueBooks(self._table, half_life_s)
        self._clusters: dict[ClusterName, ClusterView] = {}
        self._boots: dict[ClusterName, float] = {}
        self._avoidances: tuple[Avoidance, ...] = ()
        self._stamps = Stamps()
        self._pace = Pace()
        self._seen: dict[NodeId, tuple[int, int]] = {}
        self._windows = WindowBook(self.ledger)

    def set_clusters(
        self, clusters: Iterable[Cluster], behind: AbstractSet[ClusterName] = frozenset()
    ) -> None:
        """Enter or replace clusters by name; those in `behind` get no new work."""
        for cluster in clusters:
            boot_s = self._boots.get(cluster.name, 0.0)
            closed = _closed(cluster, behind)
            gone = cluster.state is ClusterState.RETIRED
            view = ClusterView(cluster.name, closed, cluster.can_guard, boot_s, gone)
            before = self._clusters.get(cluster.name)
            self._clusters[cluster.name] = view
            self._table.clusters(cluster.name)
            joins = cluster.inventory_number > 0 and self.ledger.rented.join(cluster.name)
            if (view != before or joins) and view.closed is None:
                self._stamps.settings_changed()

    def set_boots(self, boots: Mapping[ClusterName, float]) -> None:
        """How many seconds it takes by cluster until what is placed runs; others: not known."""
        self._boots = dict(boots)
        self._clusters = {
            name: replace(view, boot_s=boots.get(name, 0.0))
            for name, view in self._clusters.items()
        }

    def set_queues(self, queues: Iterable[Queue]) -> None:
        """Enter or replace queues by name."""
        if self._queues.set(tuple(queues)):
            self._stamps.settings_changed()

    def remove_queues(self, names: Iterable[QueueName]) -> None:
        """Forget queues and their limits."""
        if self._queues.remove(tuple(names)):
            self._stamps.settings_changed()

    def set_avoidances(self, avoidances: Iterable[Avoidance]) -> None:
        """Replace all avoidances."""
        new = tuple(sorted(avoidances, key=_avoidance_order))
        if set(self._avoidances) - set(new):
            self._stamps.settings_changed()
        self._avoidances = new

    @property
    def window_count(self) -> int:
        """Windows of bookings that are known."""
        return sum(map(len, self.ledger.booked.all().values()))

    def set_windows(self, windows: Iterable[Window]) -> None:
        """Replace all windows of bookings."""
        self._windows.set(windows)
        self._stamps.settings_changed()

    def put_windows(self, windows: Iterable[Window]) -> None:
        """Enter or replace windows, all those of an occurrence at once."""
        self._windows.put(windows)
        self._stamps.settings_changed()

    def drop_windows(self, ids: Iterable[OccurrenceId]) -> None:
        """Forget occurrences of bookings; those that are not here are passed over."""
        if self._windows.drop(ids):
            self._stamps.settings_changed()

    def upsert_nodes(self, nodes: Iterable[Node]) -> None:
        """Enter or replace nodes by id; a revision lower than the known one is ignored."""
        fresh = [n for n in nodes if n.revision >= self._seen.get(n.id, (0, 0))[0]]
        if fresh:
            self._seen.update({n.id: (n.revision, n.inventory_number) for n in fresh})
            self._grew(self._table.upsert(fresh))
            self._queues.upsert_nodes(fresh)
            self._join(fresh)

    def remove_nodes(self, ids: Iterable[NodeId]) -> None:
        """Take nodes out; what still runs there leaves them below zero."""
        gone = tuple(ids)
        self._table.drop(gone)
        self._queues.remove_nodes(gone)
        for node in gone:
            self._seen.pop(node, None)

    def suspect_nodes(self, suspects: Iterable[tuple[NodeId, int]]) -> None:
        """Give nodes no new work until an inventory later than the given one arrives."""
        rows = [
            self._table.row_of[node]
            for node, number in suspects
            if node in self._table.row_of and self._seen.get(node, (0, 0))[1] <= number
        ]
        self._table.set_status(np.array(rows, np.int64), STATUS_OK, STATUS_SUSPECT)
        self._queues.nodes_changed()

    def reconsider(self) -> None:
        """Try all that wait again: something came about that could make room for them."""
        self._stamps.settings_changed()

    def _join(self, nodes: Iterable[Node]) -> None:
        rented = self.ledger.rented
        if rented:
            said = {n.cluster for n in nodes if n.inventory_number and n.cluster in rented}
            new = [cluster for cluster in said if rented.join(cluster)]
            if new:
                self._stamps.settings_changed()

    def _cluster_views(self) -> tuple[ClusterView, ...]:
        names = [ClusterName(name) for name in self._table.clusters.values]
        return tuple(self._clusters.get(n, ClusterView(n, UNKNOWN, False)) for n in names)

    def _grew(self, rows: np.ndarray) -> None:
        if len(rows):
            models = np.unique(self._table.nodes.model[rows])
            kinds = self._table.arrays()[0].kind[models]
            self._stamps.grew(kinds.tolist())


def _closed(cluster: Cluster, behind: AbstractSet[ClusterName]) -> ReasonCode | None:
    if cluster.state is not ClusterState.ACTIVE:
        return ReasonCode.CLUSTER_SILENT
    if cluster.cordoned:
        return ReasonCode.CLUSTER_CORDONED
    return ReasonCode.CLUSTER_BEHIND if cluster.name in behind else None


def _avoidance_order(a: Avoidance) -> tuple[str, int, str, float]:
    return a.cluster, a.node or 0, a.shape_key, a.until
