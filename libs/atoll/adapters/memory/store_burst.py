"""The burst service's side of the store in memory."""

import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace

from atoll.adapters.memory.burst_pruning import prune_burst
from atoll.adapters.memory.burst_rows import THE_LOOP, all_offers, all_policies
from atoll.adapters.memory.burst_tx import MemoryBurstTx
from atoll.adapters.memory.burst_use import (
    capacities,
    changed_demand,
    cores,
    demand_of_jobs,
    demand_pages,
    parts_of,
    use_of,
)
from atoll.adapters.memory.store_events import cursor_at
from atoll.adapters.memory.store_rows import MemoryDatabase
from atoll.core.model.burst import ENDED, BurstPolicy, Instance, InstanceId, Offer, chain_of
from atoll.core.model.burst_time import hour_of, month_of
from atoll.core.model.burst_wants import BurstDecision, Want
from atoll.core.model.errors import StaleEpoch
from atoll.core.model.ids import Epoch, JobId, NodeId, QueueName
from atoll.ports.clock import Clock
from atoll.ports.store.bookings import LoopFence
from atoll.ports.store.burst import BudgetState, BurstTx, Capacity, InstanceUse
from atoll.ports.store.common import Cursor
from atoll.ports.store.demand import PAGE, ChangedDemand, DemandRow, NodeParts


class MemoryBurstStore:
    """The burst service's side of the store."""

    def __init__(self, database: MemoryDatabase, clock: Clock) -> None:
        self._database = database
        self._tables = database.tables.burst
        self._clock = clock

    @contextlib.asynccontextmanager
    async def begin(self) -> AsyncIterator[BurstTx]:
        """One transaction."""
        now = self._clock.now()
        async with self._database.transaction(now) as rows:
            yield MemoryBurstTx(self._database, rows, now)

    async def take_over(self, epoch: Epoch) -> LoopFence:
        """Commit a new epoch of the loop; raises StaleEpoch when a later one stands."""
        async with self._database.transaction(self._clock.now()) as rows:
            stands = rows.burst.loop.get(THE_LOOP)
            assert stands is not None
            if stands.epoch > epoch:
                raise StaleEpoch
            fence = replace(stands, epoch=epoch)
            rows.burst.loop.put(THE_LOOP, fence)
        return fence

    async def read_fence(self) -> LoopFence:
        """The loop's fence as it stands, read under its lock."""
        async with self._database.lock:
            return self._tables.loop[THE_LOOP]

    async def policies(self) -> list[BurstPolicy]:
        """All, that of all together first, then by queue."""
        return all_policies(self._tables.policies)

    async def budgets(self) -> list[BudgetState]:
        """All, in the same order."""
        now = self._clock.now()
        rows = sorted(self._tables.budgets.items(), key=lambda each: each[0] or "")
        at = {"hour_at": hour_of(now), "month_at": month_of(now)}
        return [row.state(queue, **at) for queue, row in rows]

    async def live_instances(self) -> list[Instance]:
        """Those that are neither TERMINATED nor FAILED, by number."""
        return [each for each in self._all() if each.state not in ENDED]

    async def instances(self, ids: Iterable[InstanceId]) -> dict[InstanceId, Instance]:
        """By number; those that do not exist are left out."""
        found = ((i, self._tables.instances.get(i)) for i in sorted(set(ids)))
        return {i: row.instance for i, row in found if row is not None}

    async def list_instances(self, *, ended: bool, before: int, limit: int) -> list[Instance]:
        """The latest first, only numbers below `before` (0: all)."""
        latest = (each for each in reversed(self._all()) if not before or each.id < before)
        return [each for each in latest if ended or each.state not in ENDED][:limit]

    async def with_token(self, tokens: Iterable[str]) -> dict[str, Instance]:
        """By idempotency token, also those that are ended."""
        wanted = set(tokens)
        return {each.token: each for each in self._all() if each.token in wanted}

    async def uses(self) -> list[InstanceUse]:
        """Of all instances that are not ended, by cluster."""
        live = sorted(each.cluster for each in await self.live_instances())
        return [use_of(self._database.tables, cluster) for cluster in live]

    async def offers(self) -> list[Offer]:
        """What providers offered last, by key."""
        return all_offers(self._tables.offers)

    async def wants(self) -> list[Want]:
        """What placement leaders wrote last, in the order of their queues."""
        return [want for _, wants in sorted(self._tables.wants.items()) for want in wants]

    async def decisions(
        self,
        *,
        job: JobId | None = None,
        instance: InstanceId | None = None,
        limit: int = 20,
    ) -> list[BurstDecision]:
        """The latest first."""
        latest = (decision for _, decision in sorted(self._tables.decisions.items(), reverse=True))
        return [
            each
            for each in latest
            if job in (None, each.job) and (instance is None or instance in each.instances)
        ][:limit]

    async def spent(
        self, queue: QueueName | None, *, since: float, until: float
    ) -> list[tuple[int, int]]:
        """(unix seconds of the full hour, micro-dollars), ascending; hours without are left out."""
        hours: Counter[int] = Counter()
        for (hour, _), row in self._tables.ledger.items():
            if hour_of(since) <= hour < until and queue in chain_of(row.queue):
                hours[hour] += row.amount
        return sorted((hour, amount) for hour, amount in hours.items() if amount)

    async def capacities(self) -> list[Capacity]:
        """By cluster and kind, of nodes that take work."""
        return capacities(self._database.tables)

    async def demand_cursor(self) -> Cursor:
        """From which later changes are seen."""
        return cursor_at(self._database, self._database.seq)

    def demand(self, *, since: float, page: int = PAGE) -> AsyncIterator[list[DemandRow]]:
        """Jobs that are not ended, by shard and number; then those that ended after `since`."""
        return demand_pages(self._database, since=since, page=page)

    async def changed_demand(self, cursor: Cursor) -> ChangedDemand:
        """Jobs that were written since, whoever wrote them; raises CURSOR_EXPIRED."""
        return changed_demand(self._database, cursor)

    async def cores(self) -> float:
        """Processors of all nodes that take work and are not rented."""
        return cores(self._database.tables)

    async def node_parts(self, nodes: Iterable[NodeId]) -> dict[NodeId, NodeParts]:
        """By number; those that do not exist are left out."""
        found = ((number, self._database.tables.nodes.get(number)) for number in nodes)
        return {number: parts_of(node) for number, node in found if node is not None}

    async def demand_of(self, jobs: Iterable[JobId]) -> list[DemandRow]:
        """Jobs as they are, by number; those that do not exist are left out."""
        return demand_of_jobs(self._database.tables, jobs)

    async def memory(self, name: str) -> bytes | None:
        """What the forecaster keeps under a name."""
        return self._tables.memory.get(name)

    async def prune(self, *, before: float, limit: int = 1000) -> int:
        """Delete ended instances, decisions and requests older than `before`; how many rows."""
        return await prune_burst(self._database, self._clock.now(), before=before, limit=limit)

    def _all(self) -> list[Instance]:
        return [row.instance for _, row in sorted(self._tables.instances.items())]
