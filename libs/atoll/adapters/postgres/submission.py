"""Submission's side of the store."""

import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

from atoll.adapters.postgres import event_pages
from atoll.adapters.postgres.burst_views import read_offers, read_policies
from atoll.adapters.postgres.cluster_rows import (
    ALLOCATION_COLUMNS,
    CLUSTERS,
    NODE_COLUMNS,
    QUEUE_COLUMNS,
    allocation_from,
    cluster_from,
    node_from,
    queue_from,
)
from atoll.adapters.postgres.database import Database, take_long
from atoll.adapters.postgres.events import EventFilter, events_after
from atoll.adapters.postgres.listing import list_statement
from atoll.adapters.postgres.rows import ATTEMPT_COLUMNS, JOB_COLUMNS, attempt_from, job_from
from atoll.adapters.postgres.submission_tx import TALLIES, PostgresSubmissionTx
from atoll.adapters.postgres.totals import read_totals
from atoll.core.model.burst import Offer
from atoll.core.model.burst_rules import rentable
from atoll.core.model.ids import AttemptId, JobId, NodeId, QueueName, Tenant, job_of
from atoll.core.model.inventory import Cluster, Node
from atoll.core.model.job import Attempt, Job, Queue
from atoll.core.model.lifecycle import JobState
from atoll.ports.store.common import Allocation, Cursor
from atoll.ports.store.submission import ClusterTotals, JobFilter, SubmissionTx, WatchPage

LAST_ATTEMPTS: Final = f"""
SELECT {ATTEMPT_COLUMNS} FROM attempts a
WHERE a.id IN (SELECT j.id << 16 | j.attempts FROM jobs j WHERE j.id = ANY($1::bigint[]))
"""
NODES: Final = f"""
SELECT {NODE_COLUMNS} FROM nodes n
WHERE n.present AND (n.cluster, n.name) > ($1, $2) AND ($3 = '' OR n.cluster = $3)
ORDER BY n.cluster, n.name LIMIT $4
"""


class PostgresSubmissionStore:
    """Submission's side of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextlib.asynccontextmanager
    async def begin(self) -> AsyncIterator[SubmissionTx]:
        """One transaction; retried by the caller, never inside."""
        async with self._database.transaction() as sql:
            yield PostgresSubmissionTx(sql)

    async def get_job(self, tenant: Tenant, job: JobId) -> Job | None:
        """One job."""
        async with self._database.reading() as sql:
            row = await sql.row(
                f"SELECT {JOB_COLUMNS} FROM jobs j WHERE j.id = $1 AND j.tenant = $2", job, tenant
            )
        return None if row is None else job_from(row)

    async def list_jobs(self, wanted: JobFilter, *, before: JobId | None, limit: int) -> list[Job]:
        """Jobs newest first (descending id), only ids below `before`."""
        statement, values = list_statement(wanted, before=before, limit=limit)
        async with self._database.reading() as sql:
            rows = await sql.rows(statement, *values)
        return [job_from(row) for row in rows]

    async def last_attempts(self, jobs: Iterable[JobId]) -> dict[JobId, Attempt]:
        """The live or last attempt of each job that has one."""
        async with self._database.reading() as sql:
            rows = await sql.rows(LAST_ATTEMPTS, list(jobs))
        return {job_of(AttemptId(row["id"])): attempt_from(row) for row in rows}

    async def get_attempt(self, attempt: AttemptId) -> Attempt | None:
        """One attempt."""
        async with self._database.reading() as sql:
            row = await sql.row(
                f"SELECT {ATTEMPT_COLUMNS} FROM attempts a WHERE a.id = $1", attempt
            )
        return None if row is None else attempt_from(row)

    async def get_queue(self, tenant: Tenant, name: QueueName) -> Queue | None:
        """One queue."""
        async with self._database.reading() as sql:
            row = await sql.row(
                f"SELECT {QUEUE_COLUMNS} FROM queues q WHERE q.name = $1 AND q.tenant = $2",
                name,
                tenant,
            )
        return None if row is None else queue_from(row)

    async def list_queues(self, tenant: Tenant, *, after: str, limit: int) -> list[Queue]:
        """Queues by name, only those after `after`."""
        async with self._database.reading() as sql:
            rows = await sql.rows(
                f"SELECT {QUEUE_COLUMNS} FROM queues q WHERE q.tenant = $1 AND q.name > $2"
                " ORDER BY q.name LIMIT $3",
                tenant,
                after,
                limit,
            )
        return [queue_from(row) for row in rows]

    async def queue_counts(
        self, names: Iterable[QueueName]
    ) -> dict[QueueName, dict[JobState, int]]:
        """Live jobs by state per queue; states without jobs are left out."""
        wanted = list(names)
        async with self._database.reading() as sql:
            rows = await sql.rows(TALLIES, wanted)
        counts: dict[QueueName, dict[JobState, int]] = {name: {} for name in wanted}
        for row in rows:
            counts[row["queue"]][JobState(row["state"])] = row["jobs"]
        return counts

    async def clusters(self) -> list[Cluster]:
        """All clusters by name, retired ones too."""
        async with self._database.reading() as sql:
            rows = await sql.rows(f"{CLUSTERS} ORDER BY c.name")
        return [cluster_from(row) for row in rows]

    async def cluster_totals(self) -> list[ClusterTotals]:
        """All clusters with sums, by name."""
        async with self._database.snapshot() as sql:
            await take_long(sql)
            return await read_totals(sql)

    async def nodes(self, cluster: str, *, after: tuple[str, str], limit: int) -> list[Node]:
        """Present nodes by (cluster, name), only those after `after`; cluster empty: all."""
        async with self._database.reading() as sql:
            rows = await sql.rows(NODES, *after, cluster, limit)
        return [node_from(row) for row in rows]

    async def rentable(self) -> list[Offer]:
        """Machines on offer that some queue may rent, by key."""
        async with self._database.snapshot() as sql:
            return rentable(await read_offers(sql), await read_policies(sql))

    async def allocations(self, nodes: Iterable[NodeId]) -> list[Allocation]:
        """Live allocations on nodes."""
        async with self._database.reading() as sql:
            rows = await sql.rows(
                f"SELECT {ALLOCATION_COLUMNS} FROM allocations l WHERE l.node = ANY($1::bigint[])"
                " ORDER BY l.attempt, l.rank, l.device, l.slice_mask",
                list(nodes),
            )
        return [allocation_from(row) for row in rows]

    async def events_now(self) -> Cursor:
        """The cursor from which only later events are seen."""
        return await event_pages.now(self._database)

    async def events_after(
        self,
        cursor: Cursor,
        *,
        tenant: Tenant,
        queue: str = "",
        jobs: Sequence[JobId] = (),
        limit: int = 1000,
    ) -> WatchPage:
        """The next events after a cursor, complete and without repeats."""
        wanted = EventFilter(tenant, queue, jobs)
        return await events_after(self._database, cursor, wanted, limit=limit)
