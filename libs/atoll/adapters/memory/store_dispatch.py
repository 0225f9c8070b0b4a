"""Dispatch's side of the store in memory."""

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count, takewhile

from atoll.adapters.memory.store_inventories import put_inventory
from atoll.adapters.memory.store_rows import MemoryDatabase, Refused
from atoll.adapters.memory.store_sessions import answer_claim
from atoll.adapters.memory.store_tx import MemoryTx
from atoll.core.model.errors import FailedPrecondition
from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId
from atoll.core.model.inventory import Cluster, NodeInventory
from atoll.core.model.lifecycle import TERMINAL_ATTEMPT
from atoll.core.model.messages import ChangeKind, Decision, Report
from atoll.ports.clock import Clock
from atoll.ports.store.dispatch import (
    Beat,
    DispatchTx,
    InventoryDelta,
    SessionClaim,
    SessionRow,
    StartSpec,
)


class MemoryDispatchTx(MemoryTx):
    """One transaction of dispatch."""

    async def lock_sessions(self, names: Iterable[ClusterName]) -> dict[ClusterName, Cluster]:
        """Clusters by name."""
        found = ((name, self._rows.clusters.get(name)) for name in sorted(set(names)))
        return {name: cluster for name, cluster in found if cluster is not None}

    async def set_report_seqs(self, seqs: Sequence[tuple[ClusterName, int]]) -> None:
        """Reports are dealt with up to here."""
        for name, seq in seqs:
            cluster = self._rows.clusters.get(name)
            if cluster is not None:
                self._rows.clusters.put(name, replace(cluster, report_seq=seq))

    async def note_rejections(self, reports: Sequence[Report]) -> None:
        """Keep what a REJECTED said of nodes with its attempt, for the leader to read."""
        for report in reports:
            refused = Refused(report.suspects, report.inventory_number)
            self._rows.refusals.put(report.attempt, refused)


class MemoryDispatchStore:
    """Dispatch's side of the store."""

    def __init__(self, database: MemoryDatabase, clock: Clock) -> None:
        self._database = database
        self._tables = database.tables
        self._clock = clock

    @contextlib.asynccontextmanager
    async def begin(self) -> AsyncIterator[DispatchTx]:
        """One transaction."""
        now = self._clock.now()
        async with self._database.transaction(now) as rows:
            yield MemoryDispatchTx(rows, now)

    async def open_session(self, claim: SessionClaim) -> SessionRow:
        """Register the cluster if new, and take its session.

        Raises FailedPrecondition ALREADY_HELD (another instance's lease is not over),
        CLUSTER_RETIRED, JOIN_REFUSED (a rented cluster, and its token is wrong, was used by another
        agent, or it was given up), or CLUSTER_QUARANTINED: the agent has applied what the store
        does not know.
        """
        now = self._clock.now()
        async with self._database.transaction(now) as rows:
            answer = answer_claim(rows, claim, now=now)
        if isinstance(answer, FailedPrecondition):
            raise answer
        return answer

    async def close_session(self, cluster: ClusterName, session_epoch: int) -> None:
        """Goodbye: another instance may take over at once. No error when it was taken over."""
        async with self._database.transaction(self._clock.now()) as rows:
            row = rows.clusters.get(cluster)
            if row is not None and row.session_epoch == session_epoch:
                rows.clusters.put(cluster, replace(row, holder="", lease_until=0.0))
                rows.changes.append((ChangeKind.CLUSTERS, frozenset({cluster}), 0))

    async def beat(self, beats: Sequence[Beat]) -> dict[ClusterName, Cluster]:
        """Commit `last_seen` and `acked_seq`; only sessions that still hold are in the answer."""
        now = self._clock.now()
        seen: dict[ClusterName, Cluster] = {}
        async with self._database.transaction(now) as rows:
            for beat in beats:
                row = rows.clusters.get(beat.cluster)
                if row is None or row.session_epoch != beat.session_epoch or not row.lease_until:
                    continue
                seen[beat.cluster] = replace(
                    row,
                    last_seen=now,
                    lease_until=now + beat.lease_s,
                    acked_seq=max(row.acked_seq, beat.applied_seq),
                )
                rows.clusters.put(beat.cluster, seen[beat.cluster])
        return seen

    async def mark_sent(self, sent: Sequence[tuple[ClusterName, int, int]]) -> set[ClusterName]:
        """Commit `sent_seq` (cluster, session epoch, number) before the push; who still holds."""
        holding: set[ClusterName] = set()
        async with self._database.transaction(self._clock.now()) as rows:
            for name, session_epoch, number in sent:
                row = rows.clusters.get(name)
                if row is not None and row.session_epoch == session_epoch:
                    rows.clusters.put(name, replace(row, sent_seq=max(row.sent_seq, number)))
                    holding.add(name)
        return holding

    async def decisions_after(
        self, cluster: ClusterName, number: int, *, limit: int
    ) -> list[Decision]:
        """Decisions above a number, ascending, without a gap."""
        wanted = (self._tables.decisions.get((cluster, n)) for n in count(number + 1))
        found = takewhile(lambda row: row is not None, wanted)
        return [row[0] for _, row in zip(range(limit), found, strict=False) if row is not None]

    async def start_specs(self, jobs: Iterable[JobId]) -> dict[JobId, StartSpec]:
        """Specs for START decisions, with secrets."""
        return {i: self._start_spec(i) for i in jobs if i in self._tables.jobs}

    async def live_in(self, attempts: Iterable[AttemptId]) -> set[AttemptId]:
        """Those of the attempts that have not ended."""
        found = (self._tables.attempts.get(i) for i in attempts)
        return {a.id for a in found if a is not None and a.state not in TERMINAL_ATTEMPT}

    async def put_inventory(self, delta: InventoryDelta) -> bool:
        """Write nodes; False when the session was taken over. Unchanged nodes cost nothing."""
        async with self._database.transaction(self._clock.now()) as rows:
            return put_inventory(rows, delta, numbers=self._database.node_numbers)

    async def inventory(self, cluster: ClusterName) -> dict[str, NodeInventory]:
        """Nodes as the store has them, for the hash."""
        rows = (n for n in self._tables.nodes.values() if n.cluster == cluster and n.present)
        return {node.inventory.name: node.inventory for node in rows}

    async def node_addresses(self, nodes: Iterable[NodeId]) -> Mapping[NodeId, str]:
        """Where gang members are reached; a node without an address is reached by its name."""
        found = (self._tables.nodes[i] for i in nodes if i in self._tables.nodes)
        return {node.id: node.inventory.address or node.inventory.name for node in found}

    async def address_of(self, cluster: ClusterName) -> str | None:
        """Address of the dispatch replica that holds a cluster's session."""
        row = self._tables.clusters.get(cluster)
        if row is None or not row.holder or row.lease_until <= self._clock.now():
            return None
        return row.holder

    def _start_spec(self, number: JobId) -> StartSpec:
        job = self._tables.jobs[number]
        secrets = self._tables.secrets.get(number, ())
        return StartSpec(replace(job.spec, secrets=secrets), queue=job.queue, tenant=job.tenant)
