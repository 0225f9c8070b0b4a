"""Placement's side of the store."""

import contextlib
import json
from collections.abc import AsyncIterator, Iterable
from typing import Final

from atoll.adapters.postgres.cluster_rows import (
    ALLOCATION_COLUMNS,
    CLUSTERS_OF_SHARD,
    allocation_from,
    cluster_from,
)
from atoll.adapters.postgres.cursors import Position
from atoll.adapters.postgres.database import Database, take_long
from atoll.adapters.postgres.placement_tx import PostgresPlacementTx
from atoll.adapters.postgres.sql import Record
from atoll.adapters.postgres.views import (
    PAST_ATTEMPTS,
    attempt_view,
    job_marks,
    read_all,
    read_changed,
    read_changes,
)
from atoll.core.model.booking import Owners, jobs_of, with_own
from atoll.core.model.errors import StaleEpoch
from atoll.core.model.ids import Epoch, JobId, ShardId
from atoll.core.model.inventory import Cluster
from atoll.core.model.lifecycle import AttemptState, JobState
from atoll.ports.store.common import Allocation, Cursor, Fence
from atoll.ports.store.placement import AttemptView, PlacementTx, ShardDelta
from atoll.runtime import failpoints

MARKED: Final = """
SELECT j.id, j.principal, j.labels FROM jobs j
WHERE j.shard = $1 AND j.outcome IS NULL
    AND (j.principal = ANY($2::text[]) OR j.id = ANY($4::bigint[])
    OR EXISTS (SELECT 1 FROM unnest($3::text[]) AS l(label) WHERE j.labels @> l.label::jsonb))
ORDER BY j.id
"""
FENCE_COLUMNS: Final = "id, epoch_generation, epoch_revision, commit_seq, booking_rev"
TAKE_OVER: Final = f"""
INSERT INTO shards AS s (id, epoch_generation, epoch_revision) VALUES ($1, $2, $3)
ON CONFLICT (id) DO UPDATE SET epoch_generation = $2, epoch_revision = $3
    WHERE (s.epoch_generation, s.epoch_revision) <= ($2, $3)
RETURNING {FENCE_COLUMNS}
"""
ALLOCATIONS: Final = f"""
SELECT {ALLOCATION_COLUMNS} FROM allocations l JOIN attempts a ON a.id = l.attempt
WHERE a.shard = $1 ORDER BY l.attempt, l.rank, l.device, l.slice_mask
"""


class PostgresPlacementStore:
    """Placement's side of the store. `writer` tells its changes from everybody else's."""

    def __init__(self, database: Database, writer: str) -> None:
        self._database = database
        self._writer = writer
        self._found_some = False
        """Whether the last look found changes: then the next one will, most likely."""

    async def take_over(self, shard: ShardId, epoch: Epoch) -> Fence:
        """Commit a new epoch; raises StaleEpoch when a later one stands."""
        async with self._database.transaction() as sql:
            row = await sql.row(TAKE_OVER, shard, epoch.generation, epoch.revision)
        if row is None:
            raise StaleEpoch
        return _fence(row)

    async def read_fence(self, shard: ShardId) -> Fence:
        """The fence as it stands, read under its lock: waits for a commit in flight."""
        async with self._database.transaction() as sql:
            row = await sql.row(
                f"SELECT {FENCE_COLUMNS} FROM shards WHERE id = $1 FOR UPDATE", shard
            )
        if row is None:
            raise StaleEpoch(f"nobody ever led shard {shard}")
        return _fence(row)

    async def load(self, shard: ShardId) -> ShardDelta:
        """All live rows in one snapshot."""
        async with self._database.snapshot() as sql:
            await take_long(sql)
            return await read_all(sql, shard)

    async def catch_up(self, shard: ShardId, cursor: Cursor) -> ShardDelta:
        """Rows changed since `cursor`, but for those that this store's own commits changed.

        Raises DomainError CURSOR_EXPIRED when everything must be loaded anew.
        """
        start = Position.parse(cursor)
        if not self._found_some:
            async with self._database.reading() as sql:
                changed = await read_changes(sql, start, shard=shard, writer=self._writer)
            if changed.empty:
                return ShardDelta(changed.position.cursor())
        # What is read must be of the cursor's own instant, so the changes are read again.
        async with self._database.snapshot() as sql:
            changed = await read_changes(sql, start, shard=shard, writer=self._writer)
            self._found_some = not changed.empty
            if changed.many:
                await take_long(sql)
            return await read_changed(sql, changed, shard)

    async def heartbeats(self, shard: ShardId) -> list[Cluster]:
        """Clusters of the shard with their sessions' counters and `last_seen`, by name."""
        async with self._database.reading() as sql:
            rows = await sql.rows(CLUSTERS_OF_SHARD, shard)
        return [cluster_from(row) for row in rows]

    async def marked(self, shard: ShardId, owners: Owners) -> dict[JobId, tuple[str, ...]]:
        """All marks of those live jobs that have one of the owners' users or labels."""
        labels = [json.dumps({key: value}) for key, value in owners.labels]
        async with self._database.reading() as sql:
            rows = await sql.rows(MARKED, shard, list(owners.users), labels, jobs_of(owners.labels))
        found = ((JobId(r["id"]), job_marks(r["principal"], r["labels"])) for r in rows)
        return {job: with_own(marks, job) for job, marks in found}

    @contextlib.asynccontextmanager
    async def begin(self) -> AsyncIterator[PlacementTx]:
        """One transaction."""
        async with self._database.transaction() as sql:
            yield PostgresPlacementTx(sql, self._writer)
            failpoints.hit("placement.before_commit")
        failpoints.hit("placement.after_commit")

    async def past_attempts(self, shard: ShardId, *, most: int) -> list[AttemptView]:
        """Attempts that came to their own end, of the latest jobs, the latest first."""
        finished = AttemptState.FINISHED.value
        async with self._database.reading() as sql:
            rows = await sql.rows(PAST_ATTEMPTS, shard, finished, most)
        return [attempt_view(row) for row in rows]

    async def allocations(self, shard: ShardId) -> list[Allocation]:
        """All live allocations, for the auditor."""
        async with self._database.reading() as sql:
            rows = await sql.rows(ALLOCATIONS, shard)
        return [allocation_from(row) for row in rows]

    async def job_states(self, ids: Iterable[JobId]) -> dict[JobId, JobState]:
        """States of jobs, for dependencies."""
        async with self._database.reading() as sql:
            rows = await sql.rows(
                "SELECT id, state FROM jobs WHERE id = ANY($1::bigint[])", list(ids)
            )
        return {JobId(row["id"]): JobState(row["state"]) for row in rows}


def _fence(row: Record) -> Fence:
    return Fence(
        ShardId(row["id"]),
        Epoch(row["epoch_generation"], row["epoch_revision"]),
        commit_seq=row["commit_seq"],
        booking_rev=row["booking_rev"],
    )
