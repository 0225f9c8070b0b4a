"""What the broker reads and writes: instances, policies, budgets, spend, decisions, a fence.

Locks are taken in this order: the loop's fence, instances by ascending number, budgets from all
together down to the queue, clusters by name.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from atoll.core.model.burst import BurstPolicy, Instance, InstanceId, Offer
from atoll.core.model.burst_wants import BurstDecision, Want
from atoll.core.model.ids import ClusterName, Epoch, JobId, QueueName, ShardId
from atoll.ports.store.bookings import LoopFence
from atoll.ports.store.common import Change
from atoll.ports.store.demand import DemandReads

TO_END_S: Final = 900.0
"""So much of its price is held back of a month's budget for each instance that is bound: the time
in which it can be ended, with what runs on it."""

LEDGER_KEPT_S: Final = 366 * 86_400.0


@dataclass(frozen=True, slots=True)
class BudgetShort:
    """Which bound a rent would break. Micro-dollars."""

    queue: QueueName | None
    """None: all together."""
    bound: str
    """`per_hour` or `per_month`."""
    limit: int
    left: int
    """Of it, with what is in flight counted."""
    asked: int


@dataclass(frozen=True, slots=True)
class BudgetState:
    """What a policy's owner has bound and spent. Micro-dollars."""

    queue: QueueName | None
    rate: int = 0
    """An hour, of all its instances that are not ended, those asked for included."""
    hour: int = 0
    """Spent since the full hour, UTC."""
    month: int = 0
    """Spent since the first of the month, UTC."""


@dataclass(frozen=True, slots=True)
class NewInstance:
    """An instance to be recorded before anybody is asked for it."""

    instance: Instance
    """Its id and cluster are given by the store: the cluster is `burst-<id>`."""
    join_hash: bytes
    """SHA-256 of the one-time token with which its agent joins."""
    shard: ShardId
    ready_at: float
    give_up_at: float


@dataclass(frozen=True, slots=True)
class SpendEntry:
    """What was spent on an instance since it was last counted. Micro-dollars."""

    instance: InstanceId
    queue: QueueName | None
    hour: int
    """Unix seconds of the full hour that it belongs to."""
    amount: int


@dataclass(frozen=True, slots=True)
class InstanceUse:
    """What goes on in a rented cluster."""

    cluster: ClusterName
    joined: bool
    """Its agent has opened a session, and it has nodes."""
    live_attempts: int
    held: int
    """Jobs that it is held for."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Devices that there are without renting, or in one rented cluster."""

    cluster: ClusterName
    kind: str
    """Device kind; empty for nodes without devices, which are counted in nodes then."""
    devices: int
    rented: bool


class BurstTx(Protocol):
    """One transaction. All lists may be empty."""

    async def now(self) -> float:
        """Database time of this transaction, unix seconds."""
        ...

    async def require(self, fence: LoopFence) -> LoopFence:
        """Pass the loop's fence, or raise StaleEpoch. The fence for the next commit."""
        ...

    async def add_request(
        self, key: str, body_hash: bytes
    ) -> tuple[bytes, list[InstanceId]] | None:
        """Record a key; None when it is new, else the hash and instances that stand.

        Waits for a concurrent transaction with the same key to end.
        """
        ...

    async def set_request(self, key: str, instances: Sequence[InstanceId]) -> None:
        """Write what came of a new request."""
        ...

    async def take_budget(
        self, queue: QueueName | None, *, rate: int, ahead: int
    ) -> BudgetShort | None:
        """Bind `rate` (an hour) for a queue and all above it, or say why not.

        By conditional updates: refused when the rate of what is bound would be above `per_hour`,
        or when what was spent this month (what runs and is not counted yet included), `ahead`,
        and TO_END_S of everything that is bound would be above `per_month`. Nothing is bound then.
        """
        ...

    async def give_back_budget(self, queue: QueueName | None, *, rate: int) -> None:
        """Unbind what an instance that has ended, or failed, had bound."""
        ...

    async def add_instances(self, new: Sequence[NewInstance]) -> list[Instance]:
        """Insert with fresh numbers, each with its cluster (BOOTING) and the nodes of its offer.

        Says itself what changed, as `update_instances`, `put_policy` and `put_offers` do.
        """
        ...

    async def lock_instances(self, ids: Iterable[InstanceId]) -> dict[InstanceId, Instance]:
        """Lock rows by ascending number; those that do not exist are left out."""
        ...

    async def update_instances(
        self, instances: Sequence[Instance], *, ready_at: Mapping[InstanceId, float] | None = None
    ) -> None:
        """Write locked rows; the store raises `revision`. `ready_at`: new expectations."""
        ...

    async def spend(self, entries: Sequence[SpendEntry]) -> None:
        """Add to the ledger, to the instances' `spent`, and to the months of queue and all."""
        ...

    async def lock_policy(self, queue: QueueName | None) -> BurstPolicy | None:
        """Lock a policy; None when there is none."""
        ...

    async def put_policy(self, policy: BurstPolicy) -> None:
        """Insert, or replace by queue."""
        ...

    async def add_decisions(self, decisions: Sequence[BurstDecision]) -> None:
        """Append to what was decided."""
        ...

    async def put_offers(self, provider: str, offers: Sequence[Offer]) -> None:
        """Replace what a provider offers."""
        ...

    async def put_memory(self, name: str, content: bytes) -> None:
        """Replace what the forecaster keeps under a name."""
        ...

    async def changed(self, changes: Sequence[Change]) -> None:
        """Say what else changed. INSTANCES without a number: what may be rented."""
        ...


class BurstStore(DemandReads, Protocol):
    """The burst service's side of the store."""

    def begin(self) -> AbstractAsyncContextManager[BurstTx]:
        """One transaction; retried by the caller, never inside."""
        ...

    async def take_over(self, epoch: Epoch) -> LoopFence:
        """Commit a new epoch of the loop; raises StaleEpoch when a later one stands."""
        ...

    async def read_fence(self) -> LoopFence:
        """The loop's fence as it stands, read under its lock: waits for a commit in flight."""
        ...

    async def policies(self) -> list[BurstPolicy]:
        """All, that of all together first, then by queue."""
        ...

    async def budgets(self) -> list[BudgetState]:
        """All, in the same order."""
        ...

    async def live_instances(self) -> list[Instance]:
        """Those that are neither TERMINATED nor FAILED, by number."""
        ...

    async def instances(self, ids: Iterable[InstanceId]) -> dict[InstanceId, Instance]:
        """By number, unlocked; those that do not exist are left out."""
        ...

    async def list_instances(self, *, ended: bool, before: int, limit: int) -> list[Instance]:
        """The latest first, only numbers below `before` (0: all)."""
        ...

    async def with_token(self, tokens: Iterable[str]) -> dict[str, Instance]:
        """By idempotency token, also those that are ended."""
        ...

    async def uses(self) -> list[InstanceUse]:
        """Of all instances that are not ended, by cluster."""
        ...

    async def offers(self) -> list[Offer]:
        """What providers offered last, by key."""
        ...

    async def wants(self) -> list[Want]:
        """What placement leaders wrote last, in the order of their queues."""
        ...

    async def decisions(
        self,
        *,
        job: JobId | None = None,
        instance: InstanceId | None = None,
        limit: int = 20,
    ) -> list[BurstDecision]:
        """The latest first."""
        ...

    async def spent(
        self, queue: QueueName | None, *, since: float, until: float
    ) -> list[tuple[int, int]]:
        """(unix seconds of the full hour, micro-dollars), ascending; hours without are left out.

        A queue's with those of the queues below it; None: all.
        """
        ...

    async def capacities(self) -> list[Capacity]:
        """By cluster and kind, of nodes that take work."""
        ...

    async def memory(self, name: str) -> bytes | None:
        """What the forecaster keeps under a name."""
        ...

    async def prune(self, *, before: float, limit: int = 1000) -> int:
        """Delete ended instances, decisions and requests older than `before`; how many rows.

        An instance goes with its cluster, once placement has forgotten that. The ledger is kept
        for LEDGER_KEPT_S longer.
        """
        ...
