"""What submission reads and writes: jobs' specs and wishes, queues, cordons."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from atoll.core.model.burst import Offer
from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId, QueueName, Tenant
from atoll.core.model.inventory import Cluster, Node
from atoll.core.model.job import Attempt, Job, Queue, SubmitRequest
from atoll.core.model.lifecycle import JobState
from atoll.core.model.messages import Event
from atoll.ports.store.common import Allocation, Cursor, LiveRows


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs a list shows. Empty members do not restrict."""

    tenant: Tenant
    queue: str = ""
    """This queue and everything below it."""
    states: frozenset[JobState] = frozenset()
    labels: tuple[tuple[str, str], ...] = ()
    ids: tuple[JobId, ...] = ()
    array_id: JobId | None = None
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class ClusterTotals:
    """Sums over a cluster's nodes that are present."""

    cluster: Cluster
    nodes: int
    nodes_up: int
    cpu_milli: int
    memory_bytes: int
    used_cpu_milli: int
    used_memory_bytes: int
    devices: Mapping[str, int]
    """Devices by kind."""
    free_blocks: Mapping[str, int]
    """Free blocks by kind, of healthy devices of schedulable nodes; 0 in a closed cluster."""
    live_attempts: int


@dataclass(frozen=True, slots=True)
class WatchPage:
    """Events in commit order, and the cursor after them."""

    events: tuple[Event, ...]
    cursor: Cursor


@dataclass(frozen=True, slots=True)
class Intake:
    """What taking jobs in begins with."""

    queues: Mapping[QueueName, Queue]
    """Those asked for that exist, share-locked against deletion."""
    queued: Mapping[QueueName, int]
    """Jobs QUEUED or HELD by queue."""
    ids: tuple[JobId, ...]
    """Fresh ids, ascending."""
    now: float
    """Database time of the transaction, unix seconds."""


class SubmissionTx(LiveRows, Protocol):
    """One transaction of submission."""

    async def intake(self, names: Iterable[QueueName], *, jobs: int) -> Intake:
        """`queues`, `queued_counts`, `next_job_ids` and `now` in one round trip."""
        ...

    async def next_job_ids(self, count: int) -> list[JobId]:
        """Fresh ids, ascending."""
        ...

    async def add_requests(self, requests: Sequence[SubmitRequest]) -> list[SubmitRequest | None]:
        """Record requests of distinct keys; by request: None when new, else the one that stands.

        Waits for concurrent transactions with the same keys to end; inserts by ascending
        (tenant, key), so that two transactions never wait for each other.
        """
        ...

    async def add_jobs(self, jobs: Sequence[Job]) -> None:
        """Insert new jobs."""
        ...

    async def queues(self, names: Iterable[QueueName]) -> dict[QueueName, Queue]:
        """Queues by name, share-locked against deletion; unknown ones are left out."""
        ...

    async def queued_counts(self, names: Iterable[QueueName]) -> dict[QueueName, int]:
        """Jobs QUEUED or HELD per queue."""
        ...

    async def job_states(self, ids: Iterable[JobId]) -> dict[JobId, JobState]:
        """States of jobs, unlocked."""
        ...

    async def add_queue(self, queue: Queue) -> bool:
        """Insert; False when the name is taken."""
        ...

    async def lock_queue(self, name: QueueName) -> Queue | None:
        """Lock a queue for an update or its deletion."""
        ...

    async def lock_family(self, root: QueueName) -> list[Queue]:
        """Lock a queue and all below it against changes, and read them; by name."""
        ...

    async def update_queue(self, queue: Queue) -> None:
        """Write a locked queue; the store raises `revision` by one."""
        ...

    async def live_jobs_in(self, name: QueueName) -> int:
        """Jobs of the queue that have not ended."""
        ...

    async def delete_queue(self, name: QueueName) -> None:
        """Delete a locked queue."""
        ...

    async def set_cluster_cordon(self, name: ClusterName, *, on: bool, reason: str) -> bool:
        """Mark a cluster; False when there is none of that name."""
        ...

    async def set_node_cordon(
        self, cluster: ClusterName, node: str, *, on: bool, reason: str
    ) -> NodeId | None:
        """Mark a node; None when there is none of that name."""
        ...


class SubmissionStore(Protocol):
    """Submission's side of the store."""

    def begin(self) -> AbstractAsyncContextManager[SubmissionTx]:
        """One transaction; retried by the caller, never inside."""
        ...

    async def get_job(self, tenant: Tenant, job: JobId) -> Job | None:
        """One job."""
        ...

    async def list_jobs(self, wanted: JobFilter, *, before: JobId | None, limit: int) -> list[Job]:
        """Jobs newest first (descending id), only ids below `before`."""
        ...

    async def last_attempts(self, jobs: Iterable[JobId]) -> dict[JobId, Attempt]:
        """The live or last attempt of each job that has one."""
        ...

    async def get_attempt(self, attempt: AttemptId) -> Attempt | None:
        """One attempt."""
        ...

    async def get_queue(self, tenant: Tenant, name: QueueName) -> Queue | None:
        """One queue."""
        ...

    async def list_queues(self, tenant: Tenant, *, after: str, limit: int) -> list[Queue]:
        """Queues by name, only those after `after`."""
        ...

    async def queue_counts(
        self, names: Iterable[QueueName]
    ) -> dict[QueueName, dict[JobState, int]]:
        """Live jobs by state per queue."""
        ...

    async def clusters(self) -> list[Cluster]:
        """All clusters by name, retired ones too."""
        ...

    async def cluster_totals(self) -> list[ClusterTotals]:
        """All clusters with sums, by name."""
        ...

    async def nodes(self, cluster: str, *, after: tuple[str, str], limit: int) -> list[Node]:
        """Present nodes by (cluster, name), only those after `after`; cluster empty: all."""
        ...

    async def rentable(self) -> list[Offer]:
        """Machines on offer that some queue may rent, by key."""
        ...

    async def allocations(self, nodes: Iterable[NodeId]) -> list[Allocation]:
        """Live allocations on nodes."""
        ...

    async def events_now(self) -> Cursor:
        """The cursor from which only later events are seen."""
        ...

    async def events_after(
        self,
        cursor: Cursor,
        *,
        tenant: Tenant,
        queue: str = "",
        jobs: Sequence[JobId] = (),
        limit: int = 1000,
    ) -> WatchPage:
        """The next events after a cursor, complete and without repeats.

        Raises DomainError CURSOR_EXPIRED when the cursor is older than what is kept, or of another
        database.
        """
        ...
