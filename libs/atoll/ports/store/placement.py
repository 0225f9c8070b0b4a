"""What placement reads and writes: attempts and their wishes, allocations, decisions."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from atoll.core.model.booking import OccurrenceId, Owners, Window
from atoll.core.model.burst import BurstPolicy, Offer, Rental
from atoll.core.model.burst_wants import Want
from atoll.core.model.ids import AttemptId, ClusterName, Epoch, JobId, NodeId, QueueName, ShardId
from atoll.core.model.inventory import Avoidance, Cluster, ClusterState, Node
from atoll.core.model.job import Attempt, Queue
from atoll.core.model.lifecycle import JobState, JobWish
from atoll.core.model.messages import Decision
from atoll.core.model.plan import GangPlacement, Nomination, PendingJob, RunFacts
from atoll.ports.store.common import Allocation, Cursor, Fence, LiveRows


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as the leader needs it; terminal ones are shown once, so that it forgets them."""

    pending: PendingJob
    state: JobState
    wish: JobWish
    attempt: AttemptId | None
    placed_at: float = 0.0
    accepted_at: float = 0.0
    marks: tuple[str, ...] = ()
    """All by which bookings may know it; those in its request are fewer."""


@dataclass(frozen=True, slots=True)
class AttemptView:
    """A live or just ended attempt with what of its job matters to the leader."""

    attempt: Attempt
    queue: QueueName
    job_wish: JobWish
    requeue_on_lost: bool
    shape_key: str
    """Digest of the job's request, as in `Avoidance`."""
    suspects: tuple[NodeId, ...] = ()
    """REJECTED: nodes that could not honour it."""
    run: RunFacts | None = None
    """What scheduling needs to know of it while it holds capacity."""
    rejected_inventory: int = 0
    """REJECTED: number of the inventory that the agent saw then."""


@dataclass(frozen=True, slots=True)
class BurstGround:
    """What may be rented, and by whom."""

    offers: tuple[Offer, ...] = ()
    policies: tuple[BurstPolicy, ...] = ()


@dataclass(frozen=True, slots=True)
class ShardDelta:
    """Rows that changed since a cursor (all live rows when it is a full load)."""

    cursor: Cursor
    jobs: tuple[JobView, ...] = ()
    attempts: tuple[AttemptView, ...] = ()
    nodes: tuple[Node, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    queues: tuple[Queue, ...] = ()
    queues_gone: tuple[QueueName, ...] = ()
    avoidances: tuple[Avoidance, ...] = ()
    """Full loads only: later ones are written by the leader itself; so are nominations."""
    nominations: tuple[Nomination, ...] = ()
    forecasts: str = ""
    """Full loads only: the record of how forecasts held, as it was written last."""
    windows: tuple[Window, ...] = ()
    """All windows in the shard's clusters of those occurrences of bookings that changed and are
    not over. They replace what was known under the ids of their occurrences."""
    windows_gone: tuple[OccurrenceId, ...] = ()
    """Changed occurrences that have no window in the shard (any more): over, or cancelled."""
    rentals: tuple[Rental, ...] = ()
    """Rented machines of the shard that changed, those that have just ended included."""
    burst: BurstGround | None = None
    """What may be rented, and by whom; None: as it was."""


class PlacementTx(LiveRows, Protocol):
    """One fenced transaction of placement."""

    async def require(self, fence: Fence) -> Fence:
        """Pass the fence, or raise StaleEpoch. Returns the fence for the next commit."""
        ...

    async def lock_clusters(self, names: Iterable[ClusterName]) -> dict[ClusterName, Cluster]:
        """Lock clusters (not their sessions' counters) by ascending name."""
        ...

    async def lock_sessions(self, names: Iterable[ClusterName]) -> dict[ClusterName, Cluster]:
        """Lock clusters and their sessions' counters: `sent_seq` cannot move any more."""
        ...

    async def clusters_of(self, attempts: Iterable[AttemptId]) -> dict[AttemptId, ClusterName]:
        """Where attempts are, unlocked (it never changes); unknown ones are left out."""
        ...

    async def place_jobs(self, placements: Sequence[GangPlacement]) -> set[JobId]:
        """Compare-and-set: QUEUED, wish RUN, unchanged revision -> ASSIGNED. Who won."""
        ...

    async def add_attempts(self, attempts: Sequence[Attempt]) -> None:
        """Insert new attempts."""
        ...

    async def add_allocations(self, allocations: Sequence[Allocation]) -> None:
        """Insert; a second owner of a whole device violates an index and raises PLAN_INVALID."""
        ...

    async def add_decisions(self, decisions: Sequence[Decision]) -> None:
        """Insert, and raise each cluster's `head_seq` to its highest number."""
        ...

    async def void_decisions(self, attempts: Iterable[AttemptId]) -> None:
        """Turn the START decisions of attempts into VOID; their numbers stay."""
        ...

    async def set_cluster_state(self, name: ClusterName, state: ClusterState) -> None:
        """Change what is known of a locked cluster."""
        ...

    async def set_silence(self, silent_s: Sequence[tuple[ClusterName, float]]) -> None:
        """Persist the silence counted so far."""
        ...

    async def put_avoidances(self, avoidances: Sequence[Avoidance]) -> None:
        """Insert or replace by (cluster, node, shape_key); those over are removed."""
        ...

    async def put_nominations(self, shard: ShardId, nominations: Sequence[Nomination]) -> None:
        """Insert or replace by job what is held for jobs."""
        ...

    async def end_nominations(self, jobs: Iterable[JobId]) -> None:
        """Delete what is held for jobs; one that has nothing is no error."""
        ...

    async def put_forecasts(self, shard: ShardId, record: str) -> None:
        """Replace the record of how forecasts held; JSON."""
        ...

    async def put_wants(self, shard: ShardId, wants: Sequence[Want]) -> None:
        """Replace what the shard's queued jobs want of rented capacity, in the queue's order."""
        ...

    async def suspect_nodes(self, nodes: Sequence[tuple[NodeId, int]]) -> None:
        """Mark (node, inventory number at which it refused)."""
        ...

    async def forget_cluster(self, name: ClusterName) -> list[AttemptId]:
        """Retire a locked cluster, void what it was not sent; its live attempts."""
        ...


class PlacementStore(Protocol):
    """Placement's side of the store."""

    async def take_over(self, shard: ShardId, epoch: Epoch) -> Fence:
        """Commit a new epoch; raises StaleEpoch when a later one stands."""
        ...

    async def read_fence(self, shard: ShardId) -> Fence:
        """The fence as it stands, read under its lock: waits for a commit in flight."""
        ...

    async def load(self, shard: ShardId) -> ShardDelta:
        """All live rows in one snapshot."""
        ...

    async def catch_up(self, shard: ShardId, cursor: Cursor) -> ShardDelta:
        """Rows changed since `cursor`, but for those that this store's own commits changed.

        Raises DomainError CURSOR_EXPIRED when everything must be loaded anew.
        """
        ...

    async def heartbeats(self, shard: ShardId) -> list[Cluster]:
        """Clusters of the shard with their sessions' counters and `last_seen`, by name.

        Those of rented machines that were forgotten are left out, here and in `load`.
        """
        ...

    async def marked(self, shard: ShardId, owners: Owners) -> dict[JobId, tuple[str, ...]]:
        """All marks of those live jobs that have one of the owners' users or labels."""
        ...

    def begin(self) -> AbstractAsyncContextManager[PlacementTx]:
        """One transaction."""
        ...

    async def past_attempts(self, shard: ShardId, *, most: int) -> list[AttemptView]:
        """Attempts that came to their own end, of the latest jobs, the latest first."""
        ...

    async def allocations(self, shard: ShardId) -> list[Allocation]:
        """All live allocations, for the auditor."""
        ...

    async def job_states(self, ids: Iterable[JobId]) -> dict[JobId, JobState]:
        """States of jobs, for dependencies."""
        ...
