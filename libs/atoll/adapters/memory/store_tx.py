"""Row operations that every writing role's transaction has."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from atoll.adapters.memory.store_rows import GROUND, Rows
from atoll.core.model.ids import AttemptId, JobId
from atoll.core.model.job import Attempt, Job
from atoll.core.model.messages import ChangeKind, Event
from atoll.ports.store.common import Allocation, Change


class MemoryTx:
    """One transaction. `writer` marks the changes that its own store need not be shown."""

    def __init__(self, rows: Rows, now: float, writer: int = 0) -> None:
        self._rows = rows
        self._now = now
        self._writer = writer

    async def now(self) -> float:
        """Time of this transaction, unix seconds."""
        return self._now

    async def lock_jobs(self, ids: Iterable[JobId]) -> dict[JobId, Job]:
        """Rows by ascending id; those that do not exist are left out."""
        return {i: job for i in sorted(set(ids)) if (job := self._rows.jobs.get(i)) is not None}

    async def lock_attempts(self, ids: Iterable[AttemptId]) -> dict[AttemptId, Attempt]:
        """Rows by ascending id; those that do not exist are left out."""
        found = ((i, self._rows.attempts.get(i)) for i in sorted(set(ids)))
        return {i: attempt for i, attempt in found if attempt is not None}

    async def update_jobs(self, jobs: Sequence[Job]) -> None:
        """Write the mutable columns of locked rows; raises `revision` by one."""
        for job in jobs:
            stored = self._rows.jobs.get(job.id)
            if stored is not None:
                self._rows.jobs.put(job.id, _updated_job(stored, job))

    async def update_attempts(self, attempts: Sequence[Attempt]) -> None:
        """Write the mutable columns of locked rows; raises `revision` by one."""
        for attempt in attempts:
            stored = self._rows.attempts.get(attempt.id)
            if stored is not None:
                self._rows.attempts.put(attempt.id, _updated_attempt(stored, attempt))

    async def set_tasks(self, attempts: Sequence[Attempt]) -> None:
        """Write what locked attempts hold; allocations of ranks that are not listed are deleted."""
        for attempt in attempts:
            stored = self._rows.attempts.get(attempt.id)
            if stored is None:
                continue
            changed = replace(stored, tasks=attempt.tasks, revision=stored.revision + 1)
            self._rows.attempts.put(attempt.id, changed)
            ranks = {task.rank for task in attempt.tasks}
            rows = self._rows.allocations.get(attempt.id) or ()
            self._disown([row for row in rows if row.rank not in ranks])
            self._rows.allocations.put(attempt.id, tuple(r for r in rows if r.rank in ranks))

    async def end_allocations(self, attempts: Iterable[AttemptId]) -> None:
        """Delete the allocations of attempts; one that has none is no error."""
        for attempt in attempts:
            self._disown(self._rows.allocations.get(attempt) or ())
            self._rows.allocations.drop(attempt)

    def _disown(self, rows: Iterable[Allocation]) -> None:
        for row in rows:
            key = (row.node, row.device.index if row.device else -1)
            if self._rows.owners.get(key) == row.attempt:
                self._rows.owners.drop(key)

    async def add_events(self, events: Sequence[Event]) -> None:
        """Append to the history that watches show."""
        for event in events:
            job = self._rows.jobs.get(event.job)
            if job is not None:
                self._rows.events.append((job.tenant, event))

    async def changed(self, changes: Sequence[Change]) -> None:
        """Say what this transaction changed."""
        for change in changes:
            keys = frozenset[int | str](change.ids or change.names)
            if not keys and change.kind is ChangeKind.INSTANCES:
                keys = frozenset({GROUND})
            if keys:
                writer = 0 if change.echo else self._writer
                self._rows.changes.append((change.kind, keys, writer))


def _updated_job(stored: Job, job: Job) -> Job:
    return replace(
        job,
        tenant=stored.tenant,
        principal=stored.principal,
        queue=stored.queue,
        name=stored.name,
        spec=stored.spec,
        submitted_at=stored.submitted_at,
        shard=stored.shard,
        trace=stored.trace,
        revision=stored.revision + 1,
    )


def _updated_attempt(stored: Attempt, attempt: Attempt) -> Attempt:
    return replace(
        attempt,
        cluster=stored.cluster,
        shard=stored.shard,
        epoch=stored.epoch,
        number=stored.number,
        tasks=stored.tasks,
        created_at=stored.created_at,
        bind_by=stored.bind_by,
        revision=stored.revision + 1,
    )
