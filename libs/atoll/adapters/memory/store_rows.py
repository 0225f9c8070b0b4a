"""The rows of the store in memory, and transactions over them.

A transaction writes into overlays that nobody else sees; its commit applies them at once. One at a
time: there is no second writer to conflict with, so locks are one lock.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from atoll.adapters.memory.booking_rows import BookingRows, BookingTables, LoggedBooking
from atoll.adapters.memory.burst_rows import BurstRows, BurstTables
from atoll.adapters.memory.overlay import Overlay
from atoll.core.model.errors import ErrorCode
from atoll.core.model.ids import (
    DEFAULT_SHARD,
    NO_EPOCH,
    AttemptId,
    ClusterName,
    JobId,
    NodeId,
    QueueName,
    ShardId,
    Tenant,
)
from atoll.core.model.inventory import Avoidance, Cluster, Node
from atoll.core.model.job import Attempt, Job, Queue, SubmitRequest
from atoll.core.model.lifecycle import TERMINAL_JOB, JobState
from atoll.core.model.messages import ChangeKind, Decision, Event
from atoll.core.model.plan import Nomination
from atoll.ports.store.common import Allocation, Fence, StoreUnavailable

DEFAULT_QUEUE: Final = Queue(
    QueueName("default"), Tenant("default"), description="for jobs that name no queue"
)
GROUND: Final = 0
"""Number that stands for what may be rented among changed instances."""
_databases = count(1)

AvoidanceKey = tuple[ClusterName, NodeId | None, str]
RequestKey = tuple[Tenant, str]


@dataclass(frozen=True, slots=True)
class Refused:
    """What a REJECTED said of nodes."""

    suspects: tuple[NodeId, ...] = ()
    inventory_number: int = 0


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event as it was committed."""

    seq: int
    tenant: Tenant
    event: Event


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """A change as it was committed."""

    seq: int
    at: float
    kind: ChangeKind
    keys: frozenset[int | str]
    writer: int


@dataclass(slots=True)
class Tables:
    """Committed rows."""

    shards: dict[ShardId, Fence] = field(
        default_factory=lambda: {DEFAULT_SHARD: Fence(DEFAULT_SHARD, NO_EPOCH, commit_seq=0)}
    )
    clusters: dict[ClusterName, Cluster] = field(default_factory=dict)
    nodes: dict[NodeId, Node] = field(default_factory=dict)
    node_ids: dict[tuple[ClusterName, str], NodeId] = field(default_factory=dict)
    queues: dict[QueueName, Queue] = field(
        default_factory=lambda: {DEFAULT_QUEUE.name: DEFAULT_QUEUE}
    )
    requests: dict[RequestKey, tuple[SubmitRequest, float]] = field(default_factory=dict)
    jobs: dict[JobId, Job] = field(default_factory=dict)
    secrets: dict[JobId, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    attempts: dict[AttemptId, Attempt] = field(default_factory=dict)
    refusals: dict[AttemptId, Refused] = field(default_factory=dict)
    allocations: dict[AttemptId, tuple[Allocation, ...]] = field(default_factory=dict)
    owners: dict[tuple[NodeId, int], AttemptId] = field(default_factory=dict)
    """Of whole devices."""
    decisions: dict[tuple[ClusterName, int], tuple[Decision, float]] = field(default_factory=dict)
    avoidances: dict[AvoidanceKey, Avoidance] = field(default_factory=dict)
    nominations: dict[JobId, tuple[ShardId, Nomination]] = field(default_factory=dict)
    forecasts: dict[ShardId, str] = field(default_factory=dict)
    bookings: BookingTables = field(default_factory=BookingTables)
    burst: BurstTables = field(default_factory=BurstTables)


class Rows:
    """All tables as one open transaction sees them."""

    def __init__(self, tables: Tables) -> None:
        self.shards = Overlay(tables.shards)
        self.clusters = Overlay(tables.clusters)
        self.nodes = Overlay(tables.nodes)
        self.node_ids = Overlay(tables.node_ids)
        self.queues = Overlay(tables.queues)
        self.requests = Overlay(tables.requests)
        self.jobs = Overlay(tables.jobs)
        self.secrets = Overlay(tables.secrets)
        self.attempts = Overlay(tables.attempts)
        self.refusals = Overlay(tables.refusals)
        self.allocations = Overlay(tables.allocations)
        self.owners = Overlay(tables.owners)
        self.decisions = Overlay(tables.decisions)
        self.avoidances = Overlay(tables.avoidances)
        self.nominations = Overlay(tables.nominations)
        self.forecasts = Overlay(tables.forecasts)
        self.bookings = BookingRows(tables.bookings)
        self.burst = BurstRows(tables.burst)
        self.events: list[tuple[Tenant, Event]] = []
        self.changes: list[tuple[ChangeKind, frozenset[int | str], int]] = []
        """Kind, keys, and the writer that need not be shown them; 0: nobody."""
        self.failed = False

    def apply(self) -> None:
        """Commit."""
        for table in (
            self.shards, self.clusters, self.nodes, self.node_ids, self.queues, self.requests,
            self.jobs, self.secrets, self.attempts, self.refusals, self.allocations, self.owners,
            self.decisions, self.avoidances, self.nominations, self.forecasts,
        ):  # fmt: skip
            table.apply()
        self.bookings.apply()
        self.burst.apply()


@dataclass(slots=True)
class MemoryDatabase:
    """What several stores may stand over."""

    tables: Tables = field(default_factory=Tables)
    events: list[LoggedEvent] = field(default_factory=list)
    changes: list[LoggedChange] = field(default_factory=list)
    booking_events: list[LoggedBooking] = field(default_factory=list)
    tallies: Counter[tuple[QueueName, JobState]] = field(default_factory=Counter)
    """Live jobs."""
    live_jobs: set[JobId] = field(default_factory=set)
    job_ids: "count[int]" = field(default_factory=lambda: count(1))
    node_numbers: "count[int]" = field(default_factory=lambda: count(1))
    writers: "count[int]" = field(default_factory=lambda: count(1))
    number: int = field(default_factory=lambda: next(_databases))
    seq: int = 0
    """Of the last commit."""
    events_lost: int = 0
    """Commits up to here may lack events, which were pruned."""
    changes_lost: int = 0
    booking_events_lost: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    before_commit: "Callable[[Rows], None] | None" = None
    """Called with what is about to be committed; what it raises keeps that from happening."""
    after_commit: "Callable[[Rows], None] | None" = None
    """The same, when it has happened; what it raises is what the writer gets for a reply."""

    @contextlib.asynccontextmanager
    async def transaction(self, now: float) -> AsyncIterator[Rows]:
        """Rows to write; committed when the block ends without an exception."""
        async with self.lock:
            rows = Rows(self.tables)
            yield rows
            if rows.failed:
                raise StoreUnavailable(
                    "a statement failed before; nothing was committed", code=ErrorCode.UNAVAILABLE
                )
            if self.before_commit is not None:
                self.before_commit(rows)
            self._commit(rows, now)
            if self.after_commit is not None:
                self.after_commit(rows)

    def _commit(self, rows: Rows, now: float) -> None:
        self.seq += 1
        for key, before, after in rows.jobs.changes():
            self._tally(key, before, after)
        rows.apply()
        self.events += [LoggedEvent(self.seq, tenant, event) for tenant, event in rows.events]
        self.booking_events += [LoggedBooking(self.seq, each) for each in rows.bookings.events]
        self.changes += [
            LoggedChange(self.seq, now, kind, keys, writer) for kind, keys, writer in rows.changes
        ]

    def _tally(self, key: JobId, before: Job | None, after: Job | None) -> None:
        if _live(before):
            assert before is not None
            self.tallies[before.queue, before.state] -= 1
            self.live_jobs.discard(key)
        if _live(after):
            assert after is not None
            self.tallies[after.queue, after.state] += 1
            self.live_jobs.add(key)


def live_by_state(
    tallies: Mapping[tuple[QueueName, JobState], int], queue: QueueName
) -> dict[JobState, int]:
    """Live jobs of one queue; states without jobs are left out."""
    return {state: jobs for state in JobState if (jobs := tallies.get((queue, state), 0))}


def _live(job: Job | None) -> bool:
    return job is not None and job.state not in TERMINAL_JOB
