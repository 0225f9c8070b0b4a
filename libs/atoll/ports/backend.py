"""What an agent needs of the thing that really runs work: a machine, a simulator, Slurm.

An attempt has one terminal event, ever: FINISHED, STOPPED or REJECTED. `start` and `stop` may be
repeated, in one process or over restarts; neither starts an attempt a second time.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from atoll.core.model.ids import AttemptId, ClusterName, NodeId
from atoll.core.model.inventory import NodeInventory
from atoll.core.model.lifecycle import AttemptEvent, StopCause
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.reason import ReasonCode
from atoll.core.model.spec import JobSpec


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend is and can do."""

    name: str
    can_guard: bool
    """Its runs are stopped by a guard of their own when the lease is over."""
    levels: tuple[str, ...] = ()
    """Topology levels, widest first."""
    labels: tuple[tuple[str, str], ...] = ()
    """Of the cluster, sorted by key."""


@dataclass(frozen=True, slots=True)
class StartOrder:
    """All that is needed to run an attempt."""

    cluster: ClusterName
    attempt: AttemptId
    spec: JobSpec
    tasks: tuple[TaskPlacement, ...]
    addresses: Mapping[str, str]
    """Where gang members are reached, by node name."""
    trace: str = ""
    """W3C traceparent of the job."""


@dataclass(frozen=True, slots=True)
class ResizeOrder:
    """Give a running attempt the tasks of `start`, and no others."""

    start: StartOrder
    generation: int

    @property
    def attempt(self) -> AttemptId:
        """Whose size changes."""
        return self.start.attempt


@dataclass(frozen=True, slots=True)
class StopOrder:
    """Make sure that an attempt is not running and never will."""

    attempt: AttemptId
    cause: StopCause = StopCause.NONE


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an attempt cannot be honoured."""

    reason: ReasonCode
    message: str
    suspects: tuple[NodeId, ...] = ()
    """The nodes that it is about."""


class Refused(Exception):
    """Nothing of the attempt runs, and nothing of it ever will."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class LeaseOver(Exception):
    """The guard would not begin, as the lease is over; nothing was started. Try again later."""


@dataclass(frozen=True, slots=True)
class RunEvent:
    """What became of an attempt: STARTED, FINISHED, STOPPED or REJECTED; ACCEPTED from `open`.

    RESIZED is no end: it runs on, with other tasks.
    """

    attempt: AttemptId
    event: AttemptEvent
    at: float = 0.0
    """Wall time; 0: now."""
    exit_code: int | None = None
    reason: ReasonCode | None = None
    message: str = ""
    suspects: tuple[NodeId, ...] = ()
    generation: int = 0
    """RESIZED: which change of size was carried out."""
    ranks: tuple[int, ...] = ()
    """RESIZED: what runs now."""


@dataclass(frozen=True, slots=True)
class LogPiece:
    """Bytes of one rank's output."""

    offset: int
    """Of the first of them."""
    data: bytes
    size: int
    """Bytes written so far."""
    ended: bool
    """True: nothing will be written any more."""


class Backend(Protocol):
    """Runs attempts on its nodes. One process at a time drives it."""

    @property
    def capabilities(self) -> Capabilities:
        """What it is and can do; does not change."""
        ...

    async def open(self) -> tuple[RunEvent, ...]:
        """Begin, and adopt the runs that an earlier process left behind.

        The latest event of each run found: STARTED when it is alive, its terminal event when it
        has ended. FINISHED with EXIT_UNKNOWN: it was started, is gone, and nobody knows more.
        ACCEPTED: it was not started yet, but still may be unless it is stopped; `start` is safe.
        """
        ...

    def inventory(self) -> tuple[NodeInventory, ...]:
        """All nodes as they are now, in order of their names; cheap."""
        ...

    async def inventory_changed(self) -> None:
        """Return when the inventory differs from what it was at the last return."""
        ...

    async def refresh_inventory(self) -> None:
        """Look at the nodes again now, as something was not as expected."""
        ...

    async def check(self, order: StartOrder) -> Refusal | None:
        """Whether `start` could honour it just now; starts nothing.

        A refusal is final: no earlier `start` of this attempt comes to life any more.
        """
        ...

    async def start(self, order: StartOrder) -> None:
        """Start the attempt whole, once; STARTED comes as an event, before or after the return.

        Raises Refused when nothing of it runs or will (a gang that started in part is unwound
        before), and LeaseOver. A `stop` meanwhile makes it return; the terminal event tells.
        """
        ...

    async def resize(self, order: ResizeOrder) -> None:
        """Begin the tasks that are new, end those that are not wanted, with the job's own grace.

        The event RESIZED follows, with what runs then: a task that cannot begin is left out, and
        all tasks stay as they are where nothing can be changed. It follows for a repeated order
        too. An attempt that has ended, or ends meanwhile, has its terminal event instead.
        """
        ...

    def stop(self, order: StopOrder) -> None:
        """Begin to stop the attempt, with its own grace, whether or not it was ever seen here.

        Its terminal event follows, unless it came before: STOPPED once it is not running and
        never will, FINISHED when its work was complete before it could be stopped.
        """
        ...

    def events(self) -> AsyncIterator[Sequence[RunEvent]]:
        """Events in order, for ever; for one reader."""
        ...

    async def renew_lease(self, valid_until: float) -> None:
        """Let guarded runs go on until then, in seconds of the monotonic clock."""
        ...

    def log_ranks(self, attempt: AttemptId) -> tuple[int, ...]:
        """Ranks that have output here; raises NotFound."""
        ...

    async def read_log(self, attempt: AttemptId, rank: int, *, offset: int, limit: int) -> LogPiece:
        """At most `limit` bytes from `offset`; at the end there are none. Raises NotFound."""
        ...

    def forget(self, attempt: AttemptId) -> None:
        """The attempt's end is known to all; what is kept of it may go when room is needed.

        A later `stop` is answered as if it had never been seen. There is no later `start`: the
        prefix of the decisions keeps it away.
        """
        ...

    async def close(self) -> None:
        """Let go. Runs live on."""
        ...
