"""One agent's session on this replica."""

from dataclasses import dataclass, field

from atoll.core.model.errors import DomainError
from atoll.core.model.ids import ClusterName
from atoll.core.model.inventory import Cluster, ClusterState, NodeInventory
from atoll.dispatch.usecases.desk import LogDesk
from atoll.dispatch.usecases.lane import Lane
from atoll.dispatch.usecases.outbox import Outbox

FROZEN = frozenset({ClusterState.QUARANTINED, ClusterState.RETIRED})
"""Clusters that get no decisions."""


@dataclass(slots=True)
class Stock:
    """A cluster's inventory as the store has it, and the parts of one that still arrives."""

    number: int
    nodes: dict[str, NodeInventory] | None = None
    """None: not loaded yet."""
    hash: bytes = b""
    parts: dict[str, NodeInventory] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    parts_number: int = -1
    strikes: int = 0
    """Heartbeats in a row whose inventory has another number."""
    patience: int = 0
    """Heartbeats until a whole inventory, asked for before, is asked for again."""


@dataclass(slots=True, eq=False)
class Session:
    """What this replica knows of a session. Its epoch is the fence of everything it writes."""

    cluster: ClusterName
    epoch: int
    instance: str
    lane: Lane
    outbox: Outbox
    desk: LogDesk
    stock: Stock
    state: ClusterState = ClusterState.ACTIVE
    repairing: bool = False
    """True while decisions are read from the store: Redis is not asked meanwhile."""
    reports_waiting: int = 0

    @property
    def open(self) -> bool:
        """Whether the agent can still be told anything."""
        return not self.outbox.ended

    @property
    def frozen(self) -> bool:
        """Whether the cluster gets no decisions now."""
        return self.state in FROZEN

    def end(self, error: DomainError | None = None) -> None:
        """End it: the agent gets `error`, and whoever waits for the agent is told."""
        if self.open:
            self.outbox.end(error)
            self.desk.fail()

    def saw(self, cluster: Cluster) -> None:
        """Take over what the store says of the cluster."""
        self.state = cluster.state
        self.lane.head = max(self.lane.head, cluster.head_seq)
