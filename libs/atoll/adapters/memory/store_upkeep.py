"""Retention in memory."""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import islice
from typing import Final, TypeVar

from atoll.adapters.memory.store_rows import MemoryDatabase, Rows
from atoll.core.model.ids import attempt_id
from atoll.core.model.job import Job
from atoll.core.model.lifecycle import TERMINAL_ATTEMPT, TERMINAL_JOB
from atoll.core.model.messages import Decision
from atoll.ports.clock import Clock
from atoll.ports.store.upkeep import Pruned, Retention

T = TypeVar("T")

CHANGES_KEPT_S: Final = 900.0


class MemoryUpkeep:
    """Keeps the memory small."""

    def __init__(self, database: MemoryDatabase, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def maintain(self, *, changes_kept_s: float = CHANGES_KEPT_S) -> None:
        """Drop old changes."""
        database = self._database
        before = self._clock.now() - changes_kept_s
        old = bisect_right(database.changes, before, key=lambda logged: logged.at)
        if old:
            database.changes_lost = database.changes[old - 1].seq
            del database.changes[:old]

    async def prune(self, keep: Retention, *, limit: int = 1000) -> Pruned:
        """Delete what is older than `keep`, at most `limit` rows of each kind; what it was."""
        now = self._clock.now()
        async with self._database.transaction(now) as rows:
            jobs = self._prune_jobs(rows, now - keep.jobs_s, limit)
            requests = _first(
                (k for k, (_, at) in rows.requests.items() if at < now - keep.requests_s), limit
            )
            for request in requests:
                rows.requests.drop(request)
            decisions = self._prune_decisions(rows, now - keep.decisions_s, limit)
        events = self._prune_events(now - keep.events_s, limit)
        return Pruned(jobs, len(requests), decisions, events)

    def _prune_jobs(self, rows: Rows, before: float, limit: int) -> int:
        live = (self._database.tables.jobs[i] for i in self._database.live_jobs)
        needed = {need for job in live for need in job.spec.depends_on}
        ended = (job for job in rows.jobs.values() if job.state in TERMINAL_JOB)
        old = _first((j for j in ended if j.ended_at < before and j.id not in needed), limit)
        for job in old:
            _drop(rows, job)
        return len(old)

    def _prune_decisions(self, rows: Rows, before: float, limit: int) -> int:
        decided = ((key, d, at) for key, (d, at) in rows.decisions.items() if at < before)
        old = _first((key for key, d, _ in decided if _is_done(rows, d)), limit)
        for key in old:
            rows.decisions.drop(key)
        return len(old)

    def _prune_events(self, before: float, limit: int) -> int:
        oldest = self._database.events[:limit]
        old = next((i for i, each in enumerate(oldest) if each.event.at >= before), len(oldest))
        if old:
            self._database.events_lost = oldest[old - 1].seq
            del self._database.events[:old]
        return old


def _first(found: Iterable[T], limit: int) -> list[T]:
    return list(islice(found, limit))


def _is_done(rows: Rows, decision: Decision) -> bool:
    cluster = rows.clusters.get(decision.cluster)
    attempt = rows.attempts.get(decision.attempt)
    ended = attempt is None or attempt.state in TERMINAL_ATTEMPT
    return cluster is not None and decision.number <= cluster.acked_seq and ended


def _drop(rows: Rows, job: Job) -> None:
    rows.jobs.drop(job.id)
    rows.secrets.drop(job.id)
    for number in range(1, job.attempts + 1):
        rows.attempts.drop(attempt_id(job.id, number))
        rows.refusals.drop(attempt_id(job.id, number))
