"""What the roles' ports share: cursors, rows that are not values of the model, errors."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from atoll.core.model.errors import Aborted, ErrorCode, Unavailable
from atoll.core.model.ids import AttemptId, Epoch, JobId, NodeId, ShardId
from atoll.core.model.job import Attempt, Job
from atoll.core.model.messages import ChangeKind, Event
from atoll.core.model.resources import DeviceGrant


class StoreUnavailable(Unavailable):
    """The store did not answer; nothing was committed."""


class UnknownOutcome(Unavailable):
    """The reply to a COMMIT was lost: it may or may not have happened."""


class Contended(Aborted):
    """A concurrent transaction won; nothing was committed, and trying all of it again helps."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=ErrorCode.CONTENDED)


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far changes or events were read: opaque to everyone but the store."""

    text: str


@dataclass(frozen=True, slots=True)
class Fence:
    """What a leader must still be true about for its commit to stand."""

    shard: ShardId
    epoch: Epoch
    commit_seq: int
    booking_rev: int = 0


@dataclass(frozen=True, slots=True)
class Allocation:
    """Committed use: one row per task for CPU and memory, one per share of a device."""

    attempt: AttemptId
    rank: int
    node: NodeId
    cpu_milli: int = 0
    memory_bytes: int = 0
    device: DeviceGrant | None = None
    """None on the row that carries CPU and memory."""


@dataclass(frozen=True, slots=True)
class Change:
    """One row of `changes`."""

    kind: ChangeKind
    ids: tuple[int, ...] = ()
    """Jobs, attempts or nodes by number; empty where names are given."""
    names: tuple[str, ...] = field(default=())
    """Clusters or queues."""
    echo: bool = False
    """True: the writer's own `catch_up` is to show it too."""


class LiveRows(Protocol):
    """Row operations that every writing role's transaction has. All lists may be empty."""

    async def now(self) -> float:
        """Database time of this transaction, unix seconds."""
        ...

    async def lock_jobs(self, ids: Iterable[JobId]) -> dict[JobId, Job]:
        """Lock rows by ascending id; those that do not exist are left out."""
        ...

    async def lock_attempts(self, ids: Iterable[AttemptId]) -> dict[AttemptId, Attempt]:
        """Lock rows by ascending id; those that do not exist are left out."""
        ...

    async def update_jobs(self, jobs: Sequence[Job]) -> None:
        """Write the mutable columns of locked rows; the store raises `revision` by one."""
        ...

    async def update_attempts(self, attempts: Sequence[Attempt]) -> None:
        """Write the mutable columns of locked rows; the store raises `revision` by one."""
        ...

    async def set_tasks(self, attempts: Sequence[Attempt]) -> None:
        """Write what locked attempts hold; allocations of ranks that are not listed are deleted.

        Those of ranks that are new are to be added by the caller.
        """
        ...

    async def end_allocations(self, attempts: Iterable[AttemptId]) -> None:
        """Delete the allocations of attempts; one that has none is no error."""
        ...

    async def add_events(self, events: Sequence[Event]) -> None:
        """Append to the history that watches show."""
        ...

    async def changed(self, changes: Sequence[Change]) -> None:
        """Say what this transaction changed, for the loops that follow."""
        ...
