"""All that a world keeps of its queues: their tree, limits, shares, and what the shares are of."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from atoll.core.model.ids import AttemptId, NodeId, QueueName
from atoll.core.model.inventory import Node
from atoll.core.model.job import Queue
from atoll.core.state.interning import Interner
from atoll.core.state.ledger import Holding, flatten
from atoll.core.state.ledger_kernels import Uses
from atoll.core.state.limits import LimitBook, Limits
from atoll.core.state.local_use import CapacityBook
from atoll.core.state.node_table import NodeTable
from atoll.core.state.queue_tree import QueueTree
from atoll.core.state.shares import HALF_LIFE_S, ShareBook, Shares, amounts_of


class QueueState(NamedTuple):
    """Queues in a snapshot."""

    limits: Limits
    shares: Shares


class QueueBooks:
    """Follows queues, holdings and nodes. Time goes on by `advance` only."""

    def __init__(self, table: NodeTable, half_life_s: float = HALF_LIFE_S) -> None:
        self.tree = QueueTree()
        self._table = table
        self._kinds: Interner[str] = table.models.kinds
        self._limits = LimitBook(self._kinds)
        self._shares = ShareBook(self.tree, self._kinds, half_life_s)
        self._capacity = CapacityBook(self._kinds)
        self._unknown: dict[AttemptId, Holding] = {}
        """On devices whose kind is not known."""
        self._now = 0.0
        self._calm: frozenset[QueueName] = frozenset()

    def advance(self, now: float) -> None:
        """It is `now`; what comes and goes until the next call does so now."""
        self._now = max(self._now, now)

    def set(self, queues: Sequence[Queue]) -> bool:
        """Enter or replace queues; True when more may start than before."""
        self._shares.set(queues)
        self._calm -= {queue.name for queue in queues}
        self._calm |= {queue.name for queue in queues if not queue.preempts}
        return self._limits.set(queues)

    def remove(self, queues: Sequence[QueueName]) -> bool:
        """Forget queues' settings; True when more may start than before."""
        self._shares.remove(queues)
        self._calm -= set(queues)
        return self._limits.remove(queues)

    def add(self, holdings: Sequence[Holding], uses: Uses) -> None:
        """Count what attempts hold; `uses`: the same, one gang each."""
        if not holdings:
            return
        amounts, unknown = amounts_of(
            holdings,
            uses,
            model=self._table.nodes.model,
            models=self._table.arrays()[0],
            kinds=len(self._kinds),
        )
        self._shares.add(holdings, amounts, now=self._now)
        for at in np.flatnonzero(unknown).tolist():
            self._unknown[holdings[at].attempt] = holdings[at]

    def end(self, attempts: Iterable[AttemptId]) -> None:
        """Discount what attempts held."""
        ended = tuple(attempts)
        self._shares.end(ended, now=self._now)
        for attempt in ended if self._unknown else ():
            self._unknown.pop(attempt, None)

    def upsert_nodes(self, nodes: Sequence[Node]) -> None:
        """Nodes came or changed."""
        self._capacity.upsert(nodes, now=self._now)
        late = tuple(self._unknown.values())
        if late:
            # They were placed on devices that nothing was known of; perhaps something is now.
            self.end([holding.attempt for holding in late])
            self.add(late, flatten([holding.tasks for holding in late], self._table))

    def remove_nodes(self, nodes: Sequence[NodeId]) -> None:
        """Nodes went."""
        self._capacity.remove(nodes, now=self._now)

    def rented(self, clusters: Iterable[int]) -> None:
        """Nodes of these clusters are rented: shares are not of them."""
        self._capacity.without(clusters)

    def nodes_changed(self) -> None:
        """The status of nodes changed."""
        self._capacity.changed()

    def bound(self, queue: QueueName) -> tuple[QueueName, ...]:
        """The queue and its ancestors, as far as they have limits."""
        return self._limits.bound(queue)

    def limits_of(self, queue: QueueName) -> tuple[int, ...]:
        """Which of the limits of the next snapshot bind a queue."""
        return self._limits.numbers(queue)

    def calm(self) -> frozenset[QueueName]:
        """Queues whose jobs stop nobody for their priority."""
        return self._calm

    def freeze(self) -> QueueState:
        """Everything as it stands."""
        limits = self._limits.freeze(self.tree, self._shares)
        models, _ = self._table.arrays()
        capacity = self._capacity.capacity(self._table.nodes, models, now=self._now)
        return QueueState(limits, self._shares.freeze(capacity, now=self._now))
