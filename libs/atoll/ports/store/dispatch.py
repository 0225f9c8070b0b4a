"""What dispatch reads and writes: sessions, observed state, inventories."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId
from atoll.core.model.inventory import Cluster, NodeInventory
from atoll.core.model.messages import Decision, Report
from atoll.core.model.spec import JobSpec
from atoll.ports.store.common import LiveRows


@dataclass(frozen=True, slots=True)
class SessionClaim:
    """What an agent and its dispatch replica say when a session opens."""

    cluster: ClusterName
    instance: str
    holder: str
    """Address under which this replica is reached by others."""
    backend: str
    can_guard: bool
    levels: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]
    lease_s: float
    applied_seq: int
    last_report: int
    fresh_journal: bool
    join_hash: bytes = b""
    """SHA-256 of the token that a rented machine shows; empty: none was shown."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """An open session."""

    cluster: Cluster
    from_snapshot: bool
    """True: another instance took over, and begins from the live attempts."""
    live: tuple[Decision, ...] = ()
    """START (and STOP) decisions of live attempts, when `from_snapshot`."""


@dataclass(frozen=True, slots=True)
class Beat:
    """A heartbeat to commit."""

    cluster: ClusterName
    session_epoch: int
    applied_seq: int
    lease_s: float


@dataclass(frozen=True, slots=True)
class InventoryDelta:
    """Nodes of one cluster that changed."""

    cluster: ClusterName
    session_epoch: int
    number: int
    full: bool
    """True: nodes that are not listed are gone."""
    nodes: tuple[NodeInventory, ...] = ()
    gone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StartSpec:
    """What a START needs beside its placement."""

    spec: JobSpec
    queue: str
    tenant: str


class DispatchTx(LiveRows, Protocol):
    """One transaction of dispatch."""

    async def lock_sessions(self, names: Iterable[ClusterName]) -> dict[ClusterName, Cluster]:
        """Lock the sessions' rows by ascending name. The clusters' own rows are read unlocked."""
        ...

    async def set_report_seqs(self, seqs: Sequence[tuple[ClusterName, int]]) -> None:
        """Reports are dealt with up to here."""
        ...

    async def note_rejections(self, reports: Sequence[Report]) -> None:
        """Keep what a REJECTED said of nodes with its attempt, for the leader to read."""
        ...


class DispatchStore(Protocol):
    """Dispatch's side of the store."""

    def begin(self) -> AbstractAsyncContextManager[DispatchTx]:
        """One transaction."""
        ...

    async def open_session(self, claim: SessionClaim) -> SessionRow:
        """Register the cluster if new, and take its session.

        Raises FailedPrecondition ALREADY_HELD (another instance's lease is not over),
        CLUSTER_RETIRED, JOIN_REFUSED (a rented cluster, and its token is wrong, was used by another
        agent, or it was given up), or marks the cluster QUARANTINED when `applied_seq > head_seq`.
        A cluster that was BOOTING is ACTIVE from then on.
        """
        ...

    async def close_session(self, cluster: ClusterName, session_epoch: int) -> None:
        """Goodbye: another instance may take over at once. No error when it was taken over."""
        ...

    async def beat(self, beats: Sequence[Beat]) -> dict[ClusterName, Cluster]:
        """Commit `last_seen` and `acked_seq`; only sessions that still hold are in the answer.

        The cluster's state is the leader's to change: it sees `last_seen` move.
        """
        ...

    async def mark_sent(self, sent: Sequence[tuple[ClusterName, int, int]]) -> set[ClusterName]:
        """Commit `sent_seq` (cluster, session epoch, number) before the push; who still holds."""
        ...

    async def decisions_after(
        self, cluster: ClusterName, number: int, *, limit: int
    ) -> list[Decision]:
        """Decisions above a number, ascending, without a gap."""
        ...

    async def start_specs(self, jobs: Iterable[JobId]) -> dict[JobId, StartSpec]:
        """Specs for START decisions, with secrets."""
        ...

    async def live_in(self, attempts: Iterable[AttemptId]) -> set[AttemptId]:
        """Those of the attempts that have not ended."""
        ...

    async def put_inventory(self, delta: InventoryDelta) -> bool:
        """Write nodes; False when the session was taken over. Unchanged nodes cost nothing."""
        ...

    async def inventory(self, cluster: ClusterName) -> dict[str, NodeInventory]:
        """Nodes as the store has them, for the hash."""
        ...

    async def node_addresses(self, nodes: Iterable[NodeId]) -> Mapping[NodeId, str]:
        """Where gang members are reached."""
        ...

    async def address_of(self, cluster: ClusterName) -> str | None:
        """Address of the dispatch replica that holds a cluster's session."""
        ...
