"""One transaction of the broker in memory."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from atoll.adapters.memory.burst_money import add_spend, shortage
from atoll.adapters.memory.burst_rows import THE_LOOP, BudgetRow, InstanceRow, RequestRow
from atoll.adapters.memory.store_rows import GROUND, MemoryDatabase, Rows
from atoll.adapters.memory.store_tx import MemoryTx
from atoll.core.model.burst import (
    BurstPolicy,
    Instance,
    InstanceId,
    Offer,
    chain_of,
    cluster_of,
    nodes_of,
)
from atoll.core.model.burst_wants import BurstDecision
from atoll.core.model.errors import StaleEpoch
from atoll.core.model.ids import ClusterName, NodeId, QueueName
from atoll.core.model.inventory import Cluster, ClusterState, Node
from atoll.core.model.messages import ChangeKind
from atoll.ports.store.bookings import LoopFence
from atoll.ports.store.burst import BudgetShort, NewInstance, SpendEntry
from atoll.ports.store.common import Change


class MemoryBurstTx:
    """One transaction."""

    def __init__(self, database: MemoryDatabase, rows: Rows, now: float) -> None:
        self._database = database
        self._rows = rows
        self._burst = rows.burst
        self._now = now

    async def now(self) -> float:
        """Time of this transaction, unix seconds."""
        return self._now

    async def require(self, fence: LoopFence) -> LoopFence:
        """Pass the loop's fence, or raise StaleEpoch. The fence for the next commit."""
        if self._burst.loop.get(THE_LOOP) != fence:
            raise StaleEpoch(f"the loop is no longer at {fence}")
        after = replace(fence, seq=fence.seq + 1)
        self._burst.loop.put(THE_LOOP, after)
        return after

    async def add_request(
        self, key: str, body_hash: bytes
    ) -> tuple[bytes, list[InstanceId]] | None:
        """Record a key; None when it is new, else the hash and instances that stand."""
        standing = self._burst.requests.get(key)
        if standing is None:
            self._burst.requests.put(key, RequestRow(body_hash, (), self._now))
            return None
        return standing.body_hash, list(standing.instances)

    async def set_request(self, key: str, instances: Sequence[InstanceId]) -> None:
        """Write what came of a new request."""
        standing = self._burst.requests.get(key)
        if standing is not None:
            self._burst.requests.put(key, replace(standing, instances=tuple(instances)))

    async def take_budget(
        self, queue: QueueName | None, *, rate: int, ahead: int
    ) -> BudgetShort | None:
        """Bind `rate` (an hour) for a queue and all above it, or say why not."""
        for each in chain_of(queue):
            short = shortage(self._burst, each, now=self._now, rate=rate, ahead=ahead)
            if short is not None:
                return short
        self._bind(queue, rate)
        return None

    async def give_back_budget(self, queue: QueueName | None, *, rate: int) -> None:
        """Unbind what an instance that has ended, or failed, had bound."""
        self._bind(queue, -rate)

    async def add_instances(self, new: Sequence[NewInstance]) -> list[Instance]:
        """Insert with fresh numbers, each with its cluster (BOOTING) and the nodes of its offer."""
        return [self._add(each) for each in new]

    async def lock_instances(self, ids: Iterable[InstanceId]) -> dict[InstanceId, Instance]:
        """Rows by ascending number; those that do not exist are left out."""
        found = ((i, self._burst.instances.get(i)) for i in sorted(set(ids)))
        return {i: row.instance for i, row in found if row is not None}

    async def update_instances(
        self, instances: Sequence[Instance], *, ready_at: Mapping[InstanceId, float] | None = None
    ) -> None:
        """Write rows; raises `revision`. `ready_at`: new expectations."""
        expected = ready_at or {}
        for each in instances:
            row = self._burst.instances.get(each.id)
            if row is None:
                continue
            changed = _updated(row, each, expected.get(each.id, row.ready_at))
            self._burst.instances.put(each.id, changed)
            self._note(ChangeKind.INSTANCES, each.id)

    async def spend(self, entries: Sequence[SpendEntry]) -> None:
        """Add to the ledger, to the instances' `spent`, and to the months of queue and all."""
        for entry in sorted(entries, key=lambda each: each.hour):
            add_spend(self._burst, entry)

    async def lock_policy(self, queue: QueueName | None) -> BurstPolicy | None:
        """A policy, with its budget; None when there is none."""
        self._burst.budgets.put(queue, self._burst.budgets.get(queue) or BudgetRow())
        return self._burst.policies.get(queue)

    async def put_policy(self, policy: BurstPolicy) -> None:
        """Insert, or replace by queue."""
        self._burst.policies.put(policy.queue, policy)
        await self.lock_policy(policy.queue)
        self._note(ChangeKind.INSTANCES, GROUND)

    async def add_decisions(self, decisions: Sequence[BurstDecision]) -> None:
        """Append to what was decided."""
        for decision in decisions:
            number = next(self._burst.tables.decision_numbers)
            self._burst.decisions.put(number, replace(decision, id=number))

    async def put_offers(self, provider: str, offers: Sequence[Offer]) -> None:
        """Replace what a provider offers."""
        offered = tuple(offers)
        if self._burst.offers.get(provider) != offered:
            self._burst.offers.put(provider, offered)
            self._note(ChangeKind.INSTANCES, GROUND)

    async def put_memory(self, name: str, content: bytes) -> None:
        """Replace what the forecaster keeps under a name."""
        self._burst.memory.put(name, content)

    async def changed(self, changes: Sequence[Change]) -> None:
        """Say what else this transaction changed."""
        await MemoryTx(self._rows, self._now).changed(changes)

    def _add(self, new: NewInstance) -> Instance:
        number = InstanceId(next(self._burst.tables.instance_numbers))
        made = replace(new.instance, id=number, cluster=cluster_of(number))
        row = InstanceRow(made, new.join_hash, new.shard, new.ready_at, new.give_up_at)
        self._burst.instances.put(number, row)
        booting = Cluster(made.cluster, shard=new.shard, state=ClusterState.BOOTING)
        self._rows.clusters.put(made.cluster, booting)
        self._add_nodes(made.cluster, made.offer)
        self._note(ChangeKind.INSTANCES, number)
        self._note(ChangeKind.CLUSTERS, made.cluster)
        return made

    def _add_nodes(self, cluster: ClusterName, offer: Offer) -> None:
        for inventory in nodes_of(offer, cluster):
            number = NodeId(next(self._database.node_numbers))
            self._rows.nodes.put(number, Node(number, cluster, inventory))
            self._rows.node_ids.put((cluster, inventory.name), number)
            self._note(ChangeKind.NODES, number)

    def _bind(self, queue: QueueName | None, rate: int) -> None:
        for each in chain_of(queue):
            row = self._burst.budgets.get(each) or BudgetRow()
            self._burst.budgets.put(each, replace(row, rate=max(0, row.rate + rate)))

    def _note(self, kind: ChangeKind, key: int | str) -> None:
        self._rows.changes.append((kind, frozenset({key}), 0))


def _updated(row: InstanceRow, instance: Instance, ready_at: float) -> InstanceRow:
    stored = row.instance
    changed = replace(
        instance,
        token=stored.token,
        offer=stored.offer,
        requested_at=stored.requested_at,
        queue=stored.queue,
        cluster=stored.cluster,
        spent=stored.spent,
        revision=stored.revision + 1,
    )
    return replace(row, instance=changed, ready_at=ready_at)
