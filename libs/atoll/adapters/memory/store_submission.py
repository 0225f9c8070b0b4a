"""Submission's side of the store in memory."""

import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from itertools import islice

from atoll.adapters.memory.burst_rows import all_offers, all_policies
from atoll.adapters.memory.store_events import events_after, events_now
from atoll.adapters.memory.store_rows import MemoryDatabase, Rows, live_by_state
from atoll.adapters.memory.store_totals import totals
from atoll.adapters.memory.store_tx import MemoryTx
from atoll.core.model.burst import Offer
from atoll.core.model.burst_rules import rentable
from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId, QueueName, Tenant
from atoll.core.model.ids import attempt_id as id_of_attempt
from atoll.core.model.inventory import Cluster, Node
from atoll.core.model.job import Attempt, Job, Queue, SubmitRequest
from atoll.core.model.lifecycle import TERMINAL_JOB, JobState
from atoll.ports.clock import Clock
from atoll.ports.store.common import Allocation, Cursor
from atoll.ports.store.submission import (
    ClusterTotals,
    Intake,
    JobFilter,
    SubmissionTx,
    WatchPage,
)


class MemorySubmissionTx(MemoryTx):
    """One transaction of submission."""

    def __init__(self, database: MemoryDatabase, rows: Rows, now: float) -> None:
        super().__init__(rows, now)
        self._database = database

    async def intake(self, names: Iterable[QueueName], *, jobs: int) -> Intake:
        """`queues`, `queued_counts`, `next_job_ids` and `now` at once."""
        queues = await self.queues(names)
        return Intake(
            queues=queues,
            queued=await self.queued_counts(queues),
            ids=tuple(await self.next_job_ids(jobs)),
            now=self._now,
        )

    async def next_job_ids(self, count: int) -> list[JobId]:
        """Fresh ids, ascending."""
        return [JobId(number) for number in islice(self._database.job_ids, count)]

    async def add_requests(self, requests: Sequence[SubmitRequest]) -> list[SubmitRequest | None]:
        """Record requests of distinct keys; by request: None when new, else the one that stands."""
        answers: list[SubmitRequest | None] = []
        for request in requests:
            standing = self._rows.requests.get((request.tenant, request.key))
            answers.append(None if standing is None else standing[0])
            if standing is None:
                self._rows.requests.put((request.tenant, request.key), (request, self._now))
        return answers

    async def add_jobs(self, jobs: Sequence[Job]) -> None:
        """Insert new jobs."""
        for job in jobs:
            shown = tuple((key, "") for key, _ in job.spec.secrets)
            self._rows.jobs.put(job.id, replace(job, spec=replace(job.spec, secrets=shown)))
            if job.spec.secrets:
                self._rows.secrets.put(job.id, job.spec.secrets)

    async def queues(self, names: Iterable[QueueName]) -> dict[QueueName, Queue]:
        """Queues by name; unknown ones are left out."""
        found = ((name, self._rows.queues.get(name)) for name in sorted(set(names)))
        return {name: queue for name, queue in found if queue is not None}

    async def queued_counts(self, names: Iterable[QueueName]) -> dict[QueueName, int]:
        """Jobs QUEUED or HELD per queue."""
        counts = {name: self._counts(name) for name in names}
        return {
            name: count.get(JobState.QUEUED, 0) + count.get(JobState.HELD, 0)
            for name, count in counts.items()
        }

    async def job_states(self, ids: Iterable[JobId]) -> dict[JobId, JobState]:
        """States of jobs."""
        return {i: job.state for i in ids if (job := self._rows.jobs.get(i)) is not None}

    async def add_queue(self, queue: Queue) -> bool:
        """Insert; False when the name is taken."""
        if self._rows.queues.get(queue.name) is not None:
            return False
        self._rows.queues.put(queue.name, queue)
        return True

    async def lock_queue(self, name: QueueName) -> Queue | None:
        """A queue, for an update or its deletion."""
        return self._rows.queues.get(name)

    async def lock_family(self, root: QueueName) -> list[Queue]:
        """A queue and all below it, by name."""
        return [q for name, q in sorted(self._rows.queues.items()) if is_below(name, root)]

    async def update_queue(self, queue: Queue) -> None:
        """Write a locked queue; raises `revision` by one."""
        stored = self._rows.queues.get(queue.name)
        if stored is not None:
            changed = replace(
                queue,
                tenant=stored.tenant,
                created_at=stored.created_at,
                revision=stored.revision + 1,
            )
            self._rows.queues.put(queue.name, changed)

    async def live_jobs_in(self, name: QueueName) -> int:
        """Jobs of the queue that have not ended."""
        return sum(self._counts(name).values())

    async def delete_queue(self, name: QueueName) -> None:
        """Delete a locked queue."""
        self._rows.queues.drop(name)

    async def set_cluster_cordon(self, name: ClusterName, *, on: bool, reason: str) -> bool:
        """Mark a cluster; False when there is none of that name."""
        found = self._rows.clusters.get(name)
        if found is None:
            return False
        marked = replace(found, cordoned=on, cordon_reason=reason, revision=found.revision + 1)
        self._rows.clusters.put(name, marked)
        return True

    async def set_node_cordon(
        self, cluster: ClusterName, node: str, *, on: bool, reason: str
    ) -> NodeId | None:
        """Mark a node; None when there is none of that name."""
        number = self._rows.node_ids.get((cluster, node))
        found = None if number is None else self._rows.nodes.get(number)
        if found is None:
            return None
        marked = replace(found, cordoned=on, cordon_reason=reason, revision=found.revision + 1)
        self._rows.nodes.put(found.id, marked)
        return found.id

    def _counts(self, name: QueueName) -> dict[JobState, int]:
        tallies = self._database.tallies.copy()
        for _, before, after in self._rows.jobs.changes():
            for job, sign in ((before, -1), (after, 1)):
                if job is not None and job.state not in TERMINAL_JOB:
                    tallies[job.queue, job.state] += sign
        return live_by_state(tallies, name)


class MemorySubmissionStore:
    """Submission's side of the store."""

    def __init__(self, database: MemoryDatabase, clock: Clock) -> None:
        self._database = database
        self._tables = database.tables
        self._clock = clock

    @contextlib.asynccontextmanager
    async def begin(self) -> AsyncIterator[SubmissionTx]:
        """One transaction."""
        now = self._clock.now()
        async with self._database.transaction(now) as rows:
            yield MemorySubmissionTx(self._database, rows, now)

    async def get_job(self, tenant: Tenant, job: JobId) -> Job | None:
        """One job."""
        found = self._tables.jobs.get(job)
        return found if found is not None and found.tenant == tenant else None

    async def list_jobs(self, wanted: JobFilter, *, before: JobId | None, limit: int) -> list[Job]:
        """Jobs newest first (descending id), only ids below `before`."""
        ids = sorted(wanted.ids or self._tables.jobs, reverse=True)
        below = (i for i in ids if (before is None or i < before) and i in self._tables.jobs)
        found = (self._tables.jobs[i] for i in below)
        return list(islice((job for job in found if _matches(job, wanted)), limit))

    async def last_attempts(self, jobs: Iterable[JobId]) -> dict[JobId, Attempt]:
        """The live or last attempt of each job that has one."""
        found = (self._tables.jobs[i] for i in jobs if i in self._tables.jobs)
        tried = (job for job in found if job.attempts)
        ids = ((job.id, id_of_attempt(job.id, job.attempts)) for job in tried)
        return {job: self._tables.attempts[i] for job, i in ids if i in self._tables.attempts}

    async def get_attempt(self, attempt: AttemptId) -> Attempt | None:
        """One attempt."""
        return self._tables.attempts.get(attempt)

    async def get_queue(self, tenant: Tenant, name: QueueName) -> Queue | None:
        """One queue."""
        found = self._tables.queues.get(name)
        return found if found is not None and found.tenant == tenant else None

    async def list_queues(self, tenant: Tenant, *, after: str, limit: int) -> list[Queue]:
        """Queues by name, only those after `after`."""
        queues = sorted(self._tables.queues.items())
        return [q for name, q in queues if q.tenant == tenant and name > after][:limit]

    async def queue_counts(
        self, names: Iterable[QueueName]
    ) -> dict[QueueName, dict[JobState, int]]:
        """Live jobs by state per queue."""
        return {name: live_by_state(self._database.tallies, name) for name in names}

    async def clusters(self) -> list[Cluster]:
        """All clusters by name, retired ones too."""
        return [cluster for _, cluster in sorted(self._tables.clusters.items())]

    async def cluster_totals(self) -> list[ClusterTotals]:
        """All clusters with sums, by name."""
        return totals(self._tables)

    async def nodes(self, cluster: str, *, after: tuple[str, str], limit: int) -> list[Node]:
        """Present nodes by (cluster, name), only those after `after`; cluster empty: all."""
        keys = sorted(key for key in self._tables.node_ids if key > after)
        rows = (self._tables.nodes[self._tables.node_ids[key]] for key in keys)
        return [n for n in rows if n.present and cluster in ("", n.cluster)][:limit]

    async def rentable(self) -> list[Offer]:
        """Machines on offer that some queue may rent, by key."""
        burst = self._tables.burst
        return rentable(all_offers(burst.offers), all_policies(burst.policies))

    async def allocations(self, nodes: Iterable[NodeId]) -> list[Allocation]:
        """Live allocations on nodes."""
        wanted = set(nodes)
        held = (row for _, rows in sorted(self._tables.allocations.items()) for row in rows)
        return [row for row in held if row.node in wanted]

    async def events_now(self) -> Cursor:
        """The cursor from which only later events are seen."""
        return events_now(self._database)

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
        wanted = frozenset(jobs)
        return events_after(
            self._database,
            cursor,
            lambda logged: (
                logged.tenant == tenant
                and is_below(logged.event.queue, queue)
                and (not wanted or logged.event.job in wanted)
            ),
            limit=limit,
        )


def is_below(name: str, queue: str) -> bool:
    """Whether a queue is the wanted one, or below it; empty: any."""
    return not queue or name == queue or name.startswith(queue + ".")


def _matches(job: Job, wanted: JobFilter) -> bool:
    labels = dict(job.spec.labels)
    return (
        job.tenant == wanted.tenant
        and is_below(job.queue, wanted.queue)
        and (not wanted.states or job.state in wanted.states)
        and all(labels.get(key) == text for key, text in wanted.labels)
        and (wanted.array_id is None or job.spec.array_id == wanted.array_id)
        and wanted.cluster in ("", job.cluster or "")
    )
