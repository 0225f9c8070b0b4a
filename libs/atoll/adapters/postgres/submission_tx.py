"""One transaction of submission."""

import json
from collections.abc import Iterable, Sequence
from typing import Final

from atoll.adapters.postgres.cluster_rows import (
    QUEUE_COLUMNS,
    QUEUE_INSERTED,
    queue_from,
    queue_values,
)
from atoll.adapters.postgres.live import LiveRowsTx
from atoll.adapters.postgres.rows import JOB_INSERTED, job_fixed, job_mutable
from atoll.core.model.ids import ClusterName, JobId, NodeId, QueueName, Tenant
from atoll.core.model.job import Job, Queue, SubmitRequest
from atoll.core.model.lifecycle import JobState
from atoll.ports.store.submission import Intake

# Waits for transactions that hold the same keys. Arrays of arrays must be even, so the lists of
# jobs travel as text.
ADD_REQUESTS: Final = """
INSERT INTO requests (tenant, key, body_hash, jobs)
SELECT u.tenant, u.key, u.body_hash, u.jobs::bigint[]
FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[]) AS u(tenant, key, body_hash, jobs)
ORDER BY u.tenant COLLATE "C", u.key COLLATE "C"
ON CONFLICT (tenant, key) DO NOTHING
RETURNING tenant, key
"""
REQUESTS: Final = """
SELECT r.tenant, r.key, r.body_hash, r.jobs FROM requests r
JOIN unnest($1::text[], $2::text[]) AS u(tenant, key) ON r.tenant = u.tenant AND r.key = u.key
"""
QUEUES: Final = f"""
SELECT {QUEUE_COLUMNS} FROM queues q WHERE q.name = ANY($1::text[])
ORDER BY q.name FOR KEY SHARE
"""
TALLIES: Final = """
SELECT queue, state, sum(jobs)::bigint AS jobs FROM queue_tallies
WHERE queue = ANY($1::text[]) GROUP BY queue, state HAVING sum(jobs) <> 0
"""
# The CTEs are made once each, whatever the number of queues; the last one keeps a row without any.
INTAKE: Final = f"""
WITH found AS MATERIALIZED (
    SELECT {QUEUE_COLUMNS} FROM queues q WHERE q.name = ANY($1::text[])
    ORDER BY q.name FOR KEY SHARE
), waiting AS MATERIALIZED (
    SELECT queue, sum(jobs)::bigint AS jobs FROM queue_tallies
    WHERE queue = ANY($1::text[]) AND state IN ('QUEUED', 'HELD') GROUP BY queue
), fresh AS MATERIALIZED (
    SELECT array_agg(nextval('job_ids')) AS ids FROM generate_series(1, $2)
), about AS MATERIALIZED (
    SELECT extract(epoch FROM now())::double precision AS at, ids FROM fresh
)
SELECT about.at, about.ids, coalesce(waiting.jobs, 0) AS waiting_jobs, found.*
FROM about LEFT JOIN found ON true LEFT JOIN waiting ON waiting.queue = found.name
"""
WAITING: Final = frozenset({JobState.QUEUED, JobState.HELD})
ADD_QUEUE: Final = f"""
INSERT INTO queues ({", ".join(QUEUE_INSERTED)})
VALUES ({", ".join(f"${n}" for n in range(1, len(QUEUE_INSERTED) + 1))})
ON CONFLICT (name) DO NOTHING
"""
UPDATE_QUEUE: Final = """
UPDATE queues SET description = $2, max_queued_jobs = $3, device_limit = $4, generation = $5,
    weight = $6, deserved = $7, kind_limits = $8, preempts = $9, revision = revision + 1
WHERE name = $1
"""
# Names below `a` lie between `a.` and `a/`, the character after the dot.
FAMILY: Final = f"""
SELECT {QUEUE_COLUMNS} FROM queues q
WHERE q.name = $1 OR q.name > $1 || '.' AND q.name < $1 || '/'
ORDER BY q.name
"""
CORDON_NODE: Final = """
UPDATE nodes SET cordoned = $3, cordon_reason = $4, revision = revision + 1
WHERE cluster = $1 AND name = $2 RETURNING id
"""


class PostgresSubmissionTx(LiveRowsTx):
    """One transaction of submission."""

    async def intake(self, names: Iterable[QueueName], *, jobs: int) -> Intake:
        """`queues`, `queued_counts`, `next_job_ids` and `now` in one round trip."""
        rows = await self._sql.rows(INTAKE, list(names), jobs)
        self._now = now = float(rows[0]["at"])
        found = {QueueName(row["name"]): row for row in rows if row["name"] is not None}
        return Intake(
            queues={name: queue_from(row) for name, row in found.items()},
            queued={name: row["waiting_jobs"] for name, row in found.items()},
            ids=tuple(sorted(JobId(number) for number in rows[0]["ids"] or ())),
            now=now,
        )

    async def next_job_ids(self, count: int) -> list[JobId]:
        """Fresh ids, ascending."""
        rows = await self._sql.rows(
            "SELECT nextval('job_ids') AS id FROM generate_series(1, $1)", count
        )
        return sorted(JobId(row["id"]) for row in rows)

    async def add_requests(self, requests: Sequence[SubmitRequest]) -> list[SubmitRequest | None]:
        """Record requests of distinct keys; by request: None when new, else the one that stands."""
        if not requests:
            return []
        new = await self._sql.rows(
            ADD_REQUESTS,
            [r.tenant for r in requests],
            [r.key for r in requests],
            [r.body_hash for r in requests],
            ["{" + ",".join(map(str, r.jobs)) + "}" for r in requests],
        )
        fresh = {(row["tenant"], row["key"]) for row in new}
        standing = await self._standing([r for r in requests if (r.tenant, r.key) not in fresh])
        return [standing.get((r.tenant, r.key)) for r in requests]

    async def add_jobs(self, jobs: Sequence[Job]) -> None:
        """Insert new jobs."""
        if jobs:
            await self._sql.copy(
                "jobs", JOB_INSERTED, ((*job_fixed(job), *job_mutable(job)) for job in jobs)
            )

    async def queues(self, names: Iterable[QueueName]) -> dict[QueueName, Queue]:
        """Queues by name, share-locked against deletion; unknown ones are left out."""
        rows = await self._sql.rows(QUEUES, list(names))
        return {QueueName(row["name"]): queue_from(row) for row in rows}

    async def queued_counts(self, names: Iterable[QueueName]) -> dict[QueueName, int]:
        """Jobs QUEUED or HELD per queue."""
        wanted = list(names)
        counts = dict.fromkeys(wanted, 0)
        for row in await self._sql.rows(TALLIES, wanted):
            if row["state"] in WAITING:
                counts[row["queue"]] += row["jobs"]
        return counts

    async def job_states(self, ids: Iterable[JobId]) -> dict[JobId, JobState]:
        """States of jobs, unlocked."""
        rows = await self._sql.rows(
            "SELECT id, state FROM jobs WHERE id = ANY($1::bigint[])", list(ids)
        )
        return {JobId(row["id"]): JobState(row["state"]) for row in rows}

    async def add_queue(self, queue: Queue) -> bool:
        """Insert; False when the name is taken."""
        added = await self._sql.run(ADD_QUEUE, *queue_values(queue))
        return added == 1

    async def lock_queue(self, name: QueueName) -> Queue | None:
        """Lock a queue for an update or its deletion: waits for submits into it."""
        row = await self._sql.row(
            f"SELECT {QUEUE_COLUMNS} FROM queues q WHERE q.name = $1 FOR UPDATE", name
        )
        return None if row is None else queue_from(row)

    async def update_queue(self, queue: Queue) -> None:
        """Write a locked queue; raises `revision` by one."""
        await self._sql.run(
            UPDATE_QUEUE, queue.name, queue.description, queue.max_queued_jobs,
            queue.device_limit, queue.generation, queue.weight, json.dumps(dict(queue.deserved)),
            json.dumps(dict(queue.kind_limits)), queue.preempts,
        )  # fmt: skip

    async def lock_family(self, root: QueueName) -> list[Queue]:
        """Lock a queue and all below it against changes, and read them; by name."""
        # Twice: what others created while this waited for its locks is seen by the second only.
        await self._sql.rows(f"{FAMILY} FOR NO KEY UPDATE", root)
        return [queue_from(row) for row in await self._sql.rows(FAMILY, root)]

    async def live_jobs_in(self, name: QueueName) -> int:
        """Jobs of the queue that have not ended."""
        return sum(row["jobs"] for row in await self._sql.rows(TALLIES, [name]))

    async def delete_queue(self, name: QueueName) -> None:
        """Delete a locked queue."""
        await self._sql.run("DELETE FROM queues WHERE name = $1", name)

    async def set_cluster_cordon(self, name: ClusterName, *, on: bool, reason: str) -> bool:
        """Mark a cluster; False when there is none of that name."""
        touched = await self._sql.run(
            "UPDATE clusters SET cordoned = $2, cordon_reason = $3, revision = revision + 1"
            " WHERE name = $1",
            name,
            on,
            reason,
        )
        return touched == 1

    async def set_node_cordon(
        self, cluster: ClusterName, node: str, *, on: bool, reason: str
    ) -> NodeId | None:
        """Mark a node; None when there is none of that name."""
        found = await self._sql.value(CORDON_NODE, cluster, node, on, reason)
        return None if found is None else NodeId(found)

    async def _standing(
        self, requests: Sequence[SubmitRequest]
    ) -> dict[tuple[Tenant, str], SubmitRequest]:
        if not requests:
            return {}
        rows = await self._sql.rows(
            REQUESTS, [r.tenant for r in requests], [r.key for r in requests]
        )
        return {
            (row["tenant"], row["key"]): SubmitRequest(
                Tenant(row["tenant"]), row["key"], row["body_hash"], tuple(row["jobs"])
            )
            for row in rows
        }
