"""Placement's side of the store in memory."""

import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from typing import Final

from atoll.adapters.memory.store_rows import MemoryDatabase
from atoll.adapters.memory.store_tx import MemoryTx
from atoll.adapters.memory.store_views import catch_up, clusters_of, load, past_attempts
from atoll.core.model.booking import Owners, marks_of, with_own
from atoll.core.model.burst_wants import Want
from atoll.core.model.errors import ErrorCode, FailedPrecondition, StaleEpoch
from atoll.core.model.ids import (
    NO_EPOCH,
    AttemptId,
    ClusterName,
    Epoch,
    JobId,
    NodeId,
    ShardId,
    attempt_number,
)
from atoll.core.model.inventory import Avoidance, Cluster, ClusterState
from atoll.core.model.job import Attempt
from atoll.core.model.lifecycle import TERMINAL_ATTEMPT, JobState, JobWish
from atoll.core.model.messages import Decision, DecisionKind
from atoll.core.model.plan import GangPlacement, Nomination
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.ports.clock import Clock
from atoll.ports.store.common import Allocation, Cursor, Fence
from atoll.ports.store.placement import AttemptView, PlacementTx, ShardDelta

AVOIDANCE_KEPT_S: Final = 3600.0
"""A next leader goes on counting from rows that are over."""


class MemoryPlacementTx(MemoryTx):
    """One fenced transaction of placement."""

    async def require(self, fence: Fence) -> Fence:
        """Pass the fence, or raise StaleEpoch. Returns the fence for the next commit."""
        if self._rows.shards.get(fence.shard) != fence:
            raise StaleEpoch(f"shard {fence.shard} is no longer at {fence}")
        after = replace(fence, commit_seq=fence.commit_seq + 1)
        self._rows.shards.put(fence.shard, after)
        return after

    async def lock_clusters(self, names: Iterable[ClusterName]) -> dict[ClusterName, Cluster]:
        """Clusters by name."""
        found = ((name, self._rows.clusters.get(name)) for name in sorted(set(names)))
        return {name: cluster for name, cluster in found if cluster is not None}

    async def lock_sessions(self, names: Iterable[ClusterName]) -> dict[ClusterName, Cluster]:
        """Clusters by name: `sent_seq` cannot move any more."""
        return await self.lock_clusters(names)

    async def clusters_of(self, attempts: Iterable[AttemptId]) -> dict[AttemptId, ClusterName]:
        """Where attempts are."""
        found = ((i, self._rows.attempts.get(i)) for i in attempts)
        return {i: attempt.cluster for i, attempt in found if attempt is not None}

    async def place_jobs(self, placements: Sequence[GangPlacement]) -> set[JobId]:
        """Compare-and-set: QUEUED, wish RUN, unchanged revision -> ASSIGNED. Who won."""
        return {p.job for p in placements if self._place(p)}

    async def add_attempts(self, attempts: Sequence[Attempt]) -> None:
        """Insert new attempts."""
        for attempt in attempts:
            self._rows.attempts.put(attempt.id, attempt)

    async def add_allocations(self, allocations: Sequence[Allocation]) -> None:
        """Insert; a second owner of a whole device raises PLAN_INVALID."""
        by_attempt: dict[AttemptId, list[Allocation]] = defaultdict(list)
        for row in allocations:
            self._own(row)
            by_attempt[row.attempt].append(row)
        for attempt, rows in by_attempt.items():
            held = [*(self._rows.allocations.get(attempt) or ()), *rows]
            self._rows.allocations.put(attempt, tuple(sorted(held, key=_place_of)))

    async def add_decisions(self, decisions: Sequence[Decision]) -> None:
        """Insert, and raise each cluster's `head_seq`; numbers that are not dense are refused."""
        for decision in sorted(decisions, key=lambda d: (d.cluster, d.number)):
            cluster = self._rows.clusters.get(decision.cluster)
            if cluster is None or decision.number != cluster.head_seq + 1:
                self._rows.failed = True
                raise FailedPrecondition(
                    f"decision {decision.number} for {decision.cluster} does not go on from the"
                    " last number",
                    code=ErrorCode.PLAN_INVALID,
                )
            self._update(replace(cluster, head_seq=decision.number))
            self._rows.decisions.put((decision.cluster, decision.number), (decision, self._now))

    async def void_decisions(self, attempts: Iterable[AttemptId]) -> None:
        """Turn the START decisions of attempts into VOID; their numbers stay."""
        for wanted in attempts:
            attempt = self._rows.attempts.get(wanted)
            if attempt is not None:
                self._void(attempt.cluster, attempt.number)

    async def set_cluster_state(self, name: ClusterName, state: ClusterState) -> None:
        """Change what is known of a locked cluster."""
        cluster = self._rows.clusters.get(name)
        if cluster is not None:
            self._update(replace(cluster, state=state))

    async def set_silence(self, silent_s: Sequence[tuple[ClusterName, float]]) -> None:
        """Persist the silence counted so far."""
        for name, seconds in silent_s:
            cluster = self._rows.clusters.get(name)
            if cluster is not None:
                self._update(replace(cluster, silent_s=seconds))

    async def put_avoidances(self, avoidances: Sequence[Avoidance]) -> None:
        """Insert or replace by (cluster, node, shape_key); those long over are removed."""
        for row in avoidances:
            self._rows.avoidances.put((row.cluster, row.node, row.shape_key), row)
        for key, row in list(self._rows.avoidances.items()):
            if row.until < self._now - AVOIDANCE_KEPT_S:
                self._rows.avoidances.drop(key)

    async def put_nominations(self, shard: ShardId, nominations: Sequence[Nomination]) -> None:
        """Insert or replace by job what is held for jobs."""
        for nomination in nominations:
            self._rows.nominations.put(nomination.job, (shard, nomination))

    async def end_nominations(self, jobs: Iterable[JobId]) -> None:
        """Delete what is held for jobs; one that has nothing is no error."""
        for job in jobs:
            self._rows.nominations.drop(job)

    async def put_forecasts(self, shard: ShardId, record: str) -> None:
        """Replace the record of how forecasts held."""
        self._rows.forecasts.put(shard, record)

    async def put_wants(self, shard: ShardId, wants: Sequence[Want]) -> None:
        """Replace what the shard's queued jobs want of rented capacity."""
        self._rows.burst.wants.put(shard, tuple(wants))

    async def suspect_nodes(self, nodes: Sequence[tuple[NodeId, int]]) -> None:
        """Mark (node, inventory number at which it refused)."""
        for number, since in nodes:
            node = self._rows.nodes.get(number)
            if node is not None:
                since = max(node.suspect_since, since)
                marked = replace(node, suspect_since=since, revision=node.revision + 1)
                self._rows.nodes.put(number, marked)

    async def forget_cluster(self, name: ClusterName) -> list[AttemptId]:
        """Retire a locked cluster, void what it was not sent; its live attempts."""
        cluster = self._rows.clusters.get(name)
        if cluster is None:
            return []
        for number in range(cluster.sent_seq + 1, cluster.head_seq + 1):
            self._void(name, number)
        self._update(
            replace(
                cluster,
                state=ClusterState.RETIRED,
                session_epoch=cluster.session_epoch + 1,
                holder="",
                lease_until=0.0,
            )
        )
        for key, node in list(self._rows.nodes.items()):
            if node.cluster == name and node.present:
                gone = replace(node, present=False, revision=node.revision + 1)
                self._rows.nodes.put(key, gone)
        return sorted(
            a.id
            for a in self._rows.attempts.values()
            if a.cluster == name and a.state not in TERMINAL_ATTEMPT
        )

    def _place(self, placement: GangPlacement) -> bool:
        job = self._rows.jobs.get(placement.job)
        if (
            job is None
            or (job.state, job.wish) != (JobState.QUEUED, JobWish.RUN)
            or job.revision != placement.revision
        ):
            return False
        placed = replace(
            job,
            state=JobState.ASSIGNED,
            attempt=placement.attempt,
            attempts=attempt_number(placement.attempt),
            cluster=placement.cluster,
            placed_at=self._now,
            accepted_at=0.0,
            started_at=0.0,
            exit_code=None,
            revision=job.revision + 1,
        )
        self._rows.jobs.put(job.id, placed)
        return True

    def _own(self, row: Allocation) -> None:
        if row.device is None or row.device.blocks != BLOCKS_PER_DEVICE:
            return
        key = (row.node, row.device.index)
        if self._rows.owners.get(key) is not None:
            self._rows.failed = True
            raise FailedPrecondition(
                "a device that is to be taken whole has an owner", code=ErrorCode.PLAN_INVALID
            )
        self._rows.owners.put(key, row.attempt)

    def _void(self, cluster: ClusterName, number: int) -> None:
        found = self._rows.decisions.get((cluster, number))
        if found is None:
            return
        decision, at = found
        void = Decision(
            cluster, number, decision.epoch, kind=DecisionKind.VOID, attempt=decision.attempt
        )
        self._rows.decisions.put((cluster, number), (void, at))

    def _update(self, cluster: Cluster) -> None:
        self._rows.clusters.put(cluster.name, replace(cluster, revision=cluster.revision + 1))


class MemoryPlacementStore:
    """Placement's side of the store."""

    def __init__(self, database: MemoryDatabase, clock: Clock) -> None:
        self._database = database
        self._tables = database.tables
        self._clock = clock
        self._writer = next(database.writers)

    async def take_over(self, shard: ShardId, epoch: Epoch) -> Fence:
        """Commit a new epoch; raises StaleEpoch when a later one stands."""
        async with self._database.transaction(self._clock.now()) as rows:
            stands = rows.shards.get(shard) or Fence(shard, NO_EPOCH, commit_seq=0)
            if stands.epoch > epoch:
                raise StaleEpoch
            fence = replace(stands, epoch=epoch)
            rows.shards.put(shard, fence)
        return fence

    async def read_fence(self, shard: ShardId) -> Fence:
        """The fence as it stands, read under its lock: waits for a commit in flight."""
        async with self._database.lock:
            fence = self._tables.shards.get(shard)
        if fence is None:
            raise StaleEpoch(f"nobody ever led shard {shard}")
        return fence

    async def load(self, shard: ShardId) -> ShardDelta:
        """All live rows in one snapshot."""
        return load(self._database, shard, now=self._clock.now())

    async def catch_up(self, shard: ShardId, cursor: Cursor) -> ShardDelta:
        """Rows changed since `cursor`, but for those that this store's own commits changed."""
        now = self._clock.now()
        return catch_up(self._database, shard, cursor, writer=self._writer, now=now)

    async def heartbeats(self, shard: ShardId) -> list[Cluster]:
        """Clusters of the shard with their sessions' counters and `last_seen`, by name."""
        return clusters_of(self._tables, shard)

    async def marked(self, shard: ShardId, owners: Owners) -> dict[JobId, tuple[str, ...]]:
        """All marks of those live jobs that have one of the owners' users or labels."""
        live = (self._tables.jobs[number] for number in sorted(self._database.live_jobs))
        mine = (job for job in live if job.shard == shard)
        ours = ((j.id, with_own(marks_of(j.principal, j.spec.labels), j.id)) for j in mine)
        return {job: marks for job, marks in ours if set(marks) & set(owners.marks)}

    @contextlib.asynccontextmanager
    async def begin(self) -> AsyncIterator[PlacementTx]:
        """One transaction."""
        now = self._clock.now()
        async with self._database.transaction(now) as rows:
            yield MemoryPlacementTx(rows, now, self._writer)

    async def past_attempts(self, shard: ShardId, *, most: int) -> list[AttemptView]:
        """Attempts that came to their own end, of the latest jobs, the latest first."""
        return past_attempts(self._database, shard, most=most)

    async def allocations(self, shard: ShardId) -> list[Allocation]:
        """All live allocations, for the auditor."""
        held = sorted(self._tables.allocations.items())
        ours = (rows for a, rows in held if self._tables.attempts[a].shard == shard)
        return [row for rows in ours for row in rows]

    async def job_states(self, ids: Iterable[JobId]) -> dict[JobId, JobState]:
        """States of jobs, for dependencies."""
        return {i: self._tables.jobs[i].state for i in ids if i in self._tables.jobs}


def _place_of(row: Allocation) -> tuple[int, int, int]:
    device = row.device
    return (row.rank, -1, 0) if device is None else (row.rank, device.index, device.slice_mask)
