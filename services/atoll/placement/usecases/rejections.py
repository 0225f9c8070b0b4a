"""Remembers who refused what, and for how long the plan looks elsewhere."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from atoll.core.model.ids import AttemptId, ClusterName, NodeId
from atoll.core.model.inventory import Avoidance
from atoll.core.model.lifecycle import AttemptState, StopCause
from atoll.ports.store.placement import AttemptView


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
    attempt: AttemptId | None = None
    """What was refused, for the log."""


_Key = tuple[ClusterName, NodeId | None, str]


@dataclass(slots=True)
class RejectionBook:
    """Rejections by (cluster, node, shape), with the pause that follows from them."""

    rules: AvoidanceRules
    _rows: dict[_Key, Avoidance] = field(default_factory=dict)

    def restore(self, rows: Iterable[Avoidance]) -> None:
        """Take over what an earlier leader wrote."""
        self._rows = {(r.cluster, r.node, r.shape_key): r for r in rows}

    def note(self, rejections: Iterable[Rejection], *, now: float) -> list[Avoidance]:
        """Count rejections; the rows to be written. `now` is wall time.

        What came together counts once for each node or cluster: ten jobs of one cycle that meet
        the same fault are one piece of evidence.
        """
        keys = dict.fromkeys(key for rejection in rejections for key in _keys(rejection))
        return [self._count(key, now=now) for key in keys]

    def active(self, *, now: float) -> list[Avoidance]:
        """What the plan avoids now."""
        return [row for row in self._rows.values() if row.until > now]

    def _count(self, key: _Key, *, now: float) -> Avoidance:
        cluster, node, shape_key = key
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


def rejections_of(view: AttemptView) -> list[Rejection]:
    """What an ended attempt says against where it was."""
    attempt = view.attempt
    if attempt.state is AttemptState.REJECTED:
        return [
            Rejection(
                attempt.cluster,
                view.shape_key,
                view.suspects,
                inventory_number=view.rejected_inventory,
                attempt=attempt.id,
            )
        ]
    # Nobody answered in time: whatever the shape, that is about the cluster.
    unanswered = attempt.cause is StopCause.BIND_DEADLINE
    if unanswered and attempt.state in (AttemptState.STOPPED, AttemptState.VOID):
        return [Rejection(attempt.cluster, "", attempt=attempt.id)]
    return []


def _keys(rejection: Rejection) -> list[_Key]:
    if not rejection.nodes:
        return [(rejection.cluster, None, rejection.shape_key)]
    return [(rejection.cluster, node, "") for node in rejection.nodes]
