"""One transaction of the broker."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from atoll.adapters.postgres import burst_money
from atoll.adapters.postgres.burst_rows import (
    DECISION,
    INSTANCE_INSERTED,
    OFFERS,
    POLICY,
    encoded,
    instance_from,
    instance_mutable,
    new_values,
)
from atoll.adapters.postgres.burst_sql import (
    ADD_CLUSTERS,
    ADD_REQUEST,
    DECISION_INSERTED,
    FENCE,
    LOCK_INSTANCES,
    PUT_MEMORY,
    PUT_OFFERS,
    PUT_POLICY,
    REQUEST,
    SET_EXPECTED,
    SET_JOBS,
    SET_REQUEST,
    UPDATE_INSTANCES,
)
from atoll.adapters.postgres.inventories import add_nodes
from atoll.adapters.postgres.live import LiveRowsTx
from atoll.adapters.postgres.sql import Sql
from atoll.core.model.burst import BurstPolicy, Instance, InstanceId, Offer, cluster_of, nodes_of
from atoll.core.model.burst_wants import BurstDecision
from atoll.core.model.errors import StaleEpoch
from atoll.core.model.ids import QueueName
from atoll.core.model.messages import ChangeKind
from atoll.ports.store.bookings import LoopFence
from atoll.ports.store.burst import BudgetShort, NewInstance, SpendEntry
from atoll.ports.store.common import Change

GROUND_CHANGED = Change(ChangeKind.INSTANCES)


class PostgresBurstTx:
    """One transaction."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._rows = LiveRowsTx(sql)

    async def now(self) -> float:
        """Database time of this transaction, unix seconds."""
        return await self._rows.now()

    async def require(self, fence: LoopFence) -> LoopFence:
        """Pass the loop's fence, or raise StaleEpoch. The fence for the next commit."""
        epoch = fence.epoch
        seq = await self._sql.value(FENCE, epoch.generation, epoch.revision, fence.seq)
        if seq is None:
            raise StaleEpoch(f"the loop is no longer at {fence}")
        return LoopFence(epoch, seq)

    async def add_request(
        self, key: str, body_hash: bytes
    ) -> tuple[bytes, list[InstanceId]] | None:
        """Record a key; None when it is new, else the hash and instances that stand."""
        if await self._sql.value(ADD_REQUEST, key, body_hash) is not None:
            return None
        row = await self._sql.row(REQUEST, key)
        return None if row is None else (row["body_hash"], list(map(InstanceId, row["instances"])))

    async def set_request(self, key: str, instances: Sequence[InstanceId]) -> None:
        """Write what came of a new request."""
        await self._sql.run(SET_REQUEST, key, list(instances))

    async def take_budget(
        self, queue: QueueName | None, *, rate: int, ahead: int
    ) -> BudgetShort | None:
        """Bind `rate` (an hour) for a queue and all above it, or say why not."""
        return await burst_money.take_budget(self._sql, queue, rate=rate, ahead=ahead)

    async def give_back_budget(self, queue: QueueName | None, *, rate: int) -> None:
        """Unbind what an instance that has ended, or failed, had bound."""
        await burst_money.give_back_budget(self._sql, queue, rate)

    async def add_instances(self, new: Sequence[NewInstance]) -> list[Instance]:
        """Insert with fresh numbers, each with its cluster (BOOTING) and the nodes of its offer."""
        if not new:
            return []
        numbers = map(InstanceId, await self._numbers(len(new)))
        made = [
            replace(each.instance, id=number, cluster=cluster_of(number))
            for each, number in zip(new, numbers, strict=True)
        ]
        values = [new_values(each, instance) for each, instance in zip(new, made, strict=True)]
        await self._sql.copy("burst_instances", INSTANCE_INSERTED, values)
        shards = [each.shard for each in new]
        for statement in ADD_CLUSTERS:
            await self._sql.run(statement, [each.cluster for each in made], shards)
        await self._note_new(made)
        return made

    async def lock_instances(self, ids: Iterable[InstanceId]) -> dict[InstanceId, Instance]:
        """Lock rows by ascending number; those that do not exist are left out."""
        rows = await self._sql.rows(LOCK_INSTANCES, sorted(set(ids)))
        return {InstanceId(row["id"]): instance_from(row) for row in rows}

    async def update_instances(
        self, instances: Sequence[Instance], *, ready_at: Mapping[InstanceId, float] | None = None
    ) -> None:
        """Write locked rows; raises `revision`. `ready_at`: new expectations."""
        if not instances:
            return
        ids = [each.id for each in instances]
        columns = zip(*(instance_mutable(each) for each in instances), strict=True)
        await self._sql.run(UPDATE_INSTANCES, ids, *map(list, columns))
        await self._sql.run(SET_JOBS, ids, [_array(each.jobs) for each in instances])
        if ready_at:
            expected = {i: at for i, at in ready_at.items() if i in set(ids)}
            await self._sql.run(SET_EXPECTED, list(expected), list(expected.values()))
        await self.changed([Change(ChangeKind.INSTANCES, ids=tuple(ids))])

    async def spend(self, entries: Sequence[SpendEntry]) -> None:
        """Add to the ledger, to the instances' `spent`, and to the months of queue and all."""
        await burst_money.spend(self._sql, entries)

    async def lock_policy(self, queue: QueueName | None) -> BurstPolicy | None:
        """Lock a policy, with its budget; None when there is none."""
        (name,) = await burst_money.lock_budgets(self._sql, [queue])
        found = await self._sql.value("SELECT policy FROM burst_policies WHERE queue = $1", name)
        return None if found is None else POLICY.validate_json(found)

    async def put_policy(self, policy: BurstPolicy) -> None:
        """Insert, or replace by queue. Whoever binds of its budget waits, or is waited for."""
        (name,) = await burst_money.lock_budgets(self._sql, [policy.queue])
        budget = policy.budget
        await self._sql.run(
            PUT_POLICY, name, encoded(POLICY, policy), budget.per_hour, budget.per_month
        )
        await self.changed([GROUND_CHANGED])

    async def add_decisions(self, decisions: Sequence[BurstDecision]) -> None:
        """Append to what was decided."""
        if decisions:
            values = [(d.at, d.job, list(d.instances), encoded(DECISION, d)) for d in decisions]
            await self._sql.copy("burst_decisions", DECISION_INSERTED, values)

    async def put_offers(self, provider: str, offers: Sequence[Offer]) -> None:
        """Replace what a provider offers."""
        if await self._sql.run(PUT_OFFERS, provider, encoded(OFFERS, tuple(offers))):
            await self.changed([GROUND_CHANGED])

    async def put_memory(self, name: str, content: bytes) -> None:
        """Replace what the forecaster keeps under a name."""
        await self._sql.run(PUT_MEMORY, name, content)

    async def changed(self, changes: Sequence[Change]) -> None:
        """Say what else this transaction changed."""
        await self._rows.changed(changes)

    async def _note_new(self, made: Sequence[Instance]) -> None:
        nodes = await add_nodes(
            self._sql, [(i.cluster, node) for i in made for node in nodes_of(i.offer, i.cluster)]
        )
        await self.changed([
            Change(ChangeKind.INSTANCES, ids=tuple(each.id for each in made)),
            Change(ChangeKind.CLUSTERS, names=tuple(each.cluster for each in made)),
            Change(ChangeKind.NODES, ids=tuple(nodes)),
        ])

    async def _numbers(self, count: int) -> list[int]:
        rows = await self._sql.rows(
            "SELECT nextval(pg_get_serial_sequence('burst_instances', 'id')) AS id"
            " FROM generate_series(1, $1)",
            count,
        )
        return sorted(row["id"] for row in rows)


def _array(ids: Sequence[int]) -> str:
    return "{" + ",".join(map(str, ids)) + "}"
