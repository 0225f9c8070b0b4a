"""Remembers who refused what, and for how long the plan looks elsewhere."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from atoll.core.model.ids import ClusterName, NodeId
from atoll.core.model.inventory import Avoidance


@dataclass(frozen=True, slots=True)
class AvoidanceRules:
    """How long refusals are held against a node or a cluster."""

    node_after: int = 3
    """Rejections by one node before it is avoided; until then a later inventory clears it."""
    base_s: float = 5.0
    """First pause; doubled by every further rejection."""
    longest_s: float = 600.0
    forgotten_after_s: float = 1800.0
    """A node or cluster that was avoided this long ago begins anew."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """One refusal: of named nodes, or of the cluster as a whole."""

    cluster: ClusterName
    shape_key: str
    nodes: tuple[NodeId, ...] = ()
    inventory_number: int = 0


_Key = tuple[ClusterName, NodeId | None, str]


@dataclass(slots=True)
class RejectionBook:
    """Rejections by (cluster, node, shape), with the pause that follows from them."""

    rules: AvoidanceRules
    _rows: dict[_Key, Avoidance] = field(default_factory=dict)

    def restore(self, rows: Iterable[Avoidance]) -> None:
        """Take over what an earlier leader wrote."""
        self._rows = {(r.cluster, r.node, r.shape_key): r for r in rows}

    def note(self, rejection: Rejection, *, now: float) -> list[Avoidance]:
        """Count a rejection; the rows to be written. `now` is wall time."""
        if not rejection.nodes:
            return [self._count(rejection.cluster, None, rejection.shape_key, now=now)]
        return [self._count(rejection.cluster, node, "", now=now) for node in rejection.nodes]

    def active(self, *, now: float) -> list[Avoidance]:
        """What the plan avoids now."""
        return [row for row in self._rows.values() if row.until > now]

    def _count(
        self, cluster: ClusterName, node: NodeId | None, shape_key: str, *, now: float
    ) -> Avoidance:
        key = (cluster, node, shape_key)
        before = self._rows.get(key)
        stale = before is None or now - before.until > self.rules.forgotten_after_s
        count = 1 if stale or before is None else before.rejections + 1
        row = Avoidance(cluster, node, shape_key, count, until=now + self._pause_s(node, count))
        self._rows[key] = row
        return row

    def _pause_s(self, node: NodeId | None, count: int) -> float:
        free = self.rules.node_after - 1 if node is not None else 0
        if count <= free:
            return 0.0
        return min(self.rules.base_s * 2.0 ** (count - free - 1), self.rules.longest_s)
