"""Rows of renting in memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from atoll.adapters.memory.overlay import Overlay
from atoll.core.model.burst import BurstPolicy, Instance, InstanceId, Offer, Rental, rental_of
from atoll.core.model.burst_wants import BurstDecision, Want
from atoll.core.model.ids import NO_EPOCH, QueueName, ShardId
from atoll.ports.store.bookings import LoopFence
from atoll.ports.store.burst import BudgetState

THE_LOOP = 0


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """An instance, and what only the store knows of it."""

    instance: Instance
    join_hash: bytes
    shard: ShardId
    ready_at: float
    """When it was expected to be."""
    give_up_at: float
    joined_by: str = ""
    """Agent instance to which its join token belongs; empty: nobody has shown it."""

    @property
    def rental(self) -> Rental:
        """As placement is told of it."""
        return rental_of(self.instance, ready_at=self.ready_at, give_up_at=self.give_up_at)


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """What is bound and spent of a budget, and in which hour and month that was."""

    rate: int = 0
    hour_at: int = 0
    hour: int = 0
    month_at: int = 0
    month: int = 0

    def state(self, queue: QueueName | None, *, hour_at: int, month_at: int) -> BudgetState:
        """What counts in the given hour and month: the clock may have gone back."""
        return BudgetState(
            queue,
            rate=self.rate,
            hour=self.hour if self.hour_at >= hour_at else 0,
            month=self.month if self.month_at >= month_at else 0,
        )

    def spent(self, amount: int, *, hour_at: int, month_at: int) -> "BudgetRow":
        """After an amount that was spent in an hour; what is over is not counted any more."""
        row = self
        if hour_at > row.hour_at:
            row = replace(row, hour_at=hour_at, hour=0)
        if month_at > row.month_at:
            row = replace(row, month_at=month_at, month=0)
        return replace(
            row,
            hour=row.hour + (amount if hour_at == row.hour_at else 0),
            month=row.month + (amount if month_at == row.month_at else 0),
        )


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """What was spent on an instance in an hour. Micro-dollars."""

    queue: QueueName | None
    amount: int


@dataclass(frozen=True, slots=True)
class RequestRow:
    """A request by hand, and the instances that came of it."""

    body_hash: bytes
    instances: tuple[InstanceId, ...]
    at: float


LedgerKey = tuple[int, InstanceId]
"""Unix seconds of the full hour, and whose."""


@dataclass(slots=True)
class BurstTables:
    """Committed rows, and the next numbers."""

    instances: dict[InstanceId, InstanceRow] = field(default_factory=dict)
    policies: dict[QueueName | None, BurstPolicy] = field(default_factory=dict)
    budgets: dict[QueueName | None, BudgetRow] = field(default_factory=dict)
    ledger: dict[LedgerKey, LedgerRow] = field(default_factory=dict)
    requests: dict[str, RequestRow] = field(default_factory=dict)
    decisions: dict[int, BurstDecision] = field(default_factory=dict)
    offers: dict[str, tuple[Offer, ...]] = field(default_factory=dict)
    """By provider."""
    wants: dict[ShardId, tuple[Want, ...]] = field(default_factory=dict)
    memory: dict[str, bytes] = field(default_factory=dict)
    loop: dict[int, LoopFence] = field(
        default_factory=lambda: {THE_LOOP: LoopFence(NO_EPOCH, seq=0)}
    )
    instance_numbers: "count[int]" = field(default_factory=lambda: count(1))
    decision_numbers: "count[int]" = field(default_factory=lambda: count(1))


class BurstRows:
    """The same as one open transaction sees them."""

    def __init__(self, tables: BurstTables) -> None:
        self.tables = tables
        self.instances = Overlay(tables.instances)
        self.policies = Overlay(tables.policies)
        self.budgets = Overlay(tables.budgets)
        self.ledger = Overlay(tables.ledger)
        self.requests = Overlay(tables.requests)
        self.decisions = Overlay(tables.decisions)
        self.offers = Overlay(tables.offers)
        self.wants = Overlay(tables.wants)
        self.memory = Overlay(tables.memory)
        self.loop = Overlay(tables.loop)

    def apply(self) -> None:
        """Commit."""
        for table in (
            self.instances, self.policies, self.budgets, self.ledger, self.requests,
            self.decisions, self.offers, self.wants, self.memory, self.loop,
        ):  # fmt: skip
            table.apply()


def all_offers(offers: Mapping[str, tuple[Offer, ...]]) -> list[Offer]:
    """What all providers offer, by key."""
    found = (offer for each in offers.values() for offer in each)
    return sorted(found, key=lambda offer: offer.key)


def all_policies(policies: Mapping[QueueName | None, BurstPolicy]) -> list[BurstPolicy]:
    """All, that of all together first, then by queue."""
    return sorted(policies.values(), key=lambda policy: policy.queue or "")
