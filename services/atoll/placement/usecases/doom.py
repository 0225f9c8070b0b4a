"""Ends queued jobs whose dependencies can no longer succeed."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from atoll.core.model.ids import JobId
from atoll.core.model.job import Job
from atoll.core.model.lifecycle import JobEvent, next_job_state
from atoll.core.model.messages import ChangeKind, Event
from atoll.core.model.reason import ReasonCode
from atoll.ports.store.common import Change, Fence
from atoll.ports.store.placement import PlacementStore

MESSAGE = "a job that it depends on did not succeed"


@dataclass(frozen=True, slots=True)
class Doomed:
    """Jobs that were ended."""

    fence: Fence
    jobs: tuple[JobId, ...]


async def end_doomed(store: PlacementStore, fence: Fence, jobs: Iterable[JobId]) -> Doomed:
    """End those of the jobs that still wait. Those that depend on them are the caller's."""
    async with store.begin() as tx:
        after = await tx.require(fence)
        rows = await tx.lock_jobs(jobs)
        now = await tx.now()
        ended = [e for job in rows.values() if (e := _ended(job, now=now)) is not None]
        await tx.update_jobs(ended)
        await tx.add_events([_event(job, now=now) for job in ended])
        ids = tuple(job.id for job in ended)
        await tx.changed([Change(ChangeKind.JOBS, ids=ids)])
    return Doomed(after, ids)


def _ended(job: Job, *, now: float) -> Job | None:
    state = next_job_state(job.state, JobEvent.DEPENDENCY_FAILED)
    if state is None:
        return None
    return replace(
        job, state=state, reason=ReasonCode.DEPENDENCY_FAILED, message=MESSAGE, ended_at=now
    )


def _event(job: Job, *, now: float) -> Event:
    return Event(
        job=job.id,
        queue=job.queue,
        event=JobEvent.DEPENDENCY_FAILED,
        state=job.state,
        at=now,
        reason=job.reason,
        message=job.message,
    )
