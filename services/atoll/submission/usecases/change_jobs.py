"""What users want of jobs that exist: cancel, hold, release, another priority.

A job without a live attempt ends here and at once. One that has an attempt gets the wish, and
placement sees to it: only the agent can say that nothing runs any more.
"""

from collections.abc import Sequence
from dataclasses import replace

from atoll.core.model.actor import Actor
from atoll.core.model.errors import Aborted, ErrorCode, FailedPrecondition
from atoll.core.model.ids import JobId
from atoll.core.model.job import Job
from atoll.core.model.lifecycle import TERMINAL_JOB, JobEvent, JobState, JobWish, next_job_state
from atoll.core.model.messages import ChangeKind, Event
from atoll.core.model.reason import ReasonCode
from atoll.ports.store.common import Change
from atoll.ports.store.submission import SubmissionTx
from atoll.submission.usecases.jobs import JobReader, JobView, no_such_jobs
from atoll.submission.usecases.transactions import Transactions


class JobChanger:
    """Changes jobs for those whose tenant they belong to; every change leaves an event."""

    def __init__(self, transactions: Transactions) -> None:
        self._run = transactions.run
        self._reader = JobReader(transactions.store)

    async def cancel(self, actor: Actor, jobs: Sequence[JobId]) -> list[JobView]:
        """End jobs or have them stopped; those that had ended are shown as they are.

        Raises NotFound, and changes nothing, when one of them does not exist.
        """

        async def change(tx: SubmissionTx) -> None:
            found = await _locked(tx, actor, jobs)
            now = await tx.now()
            changed = [_cancelled(job, actor, now) for job in found if _can_cancel(job)]
            await _write(tx, changed)

        await self._run(change)
        return await self._reader.several(actor, jobs)

    async def hold(self, actor: Actor, job: JobId, *, etag: str) -> JobView:
        """Keep a queued job from being placed; raises WRONG_STATE once it is placed or ended."""
        return await self._move(actor, job, etag=etag, event=JobEvent.HELD, goal=JobState.HELD)

    async def release(self, actor: Actor, job: JobId, *, etag: str) -> JobView:
        """Let a held job be placed; raises WRONG_STATE when it is neither held nor queued."""
        return await self._move(
            actor, job, etag=etag, event=JobEvent.RELEASED, goal=JobState.QUEUED
        )

    async def set_priority(self, actor: Actor, job: JobId, *, priority: int, etag: str) -> JobView:
        """Change the priority of a job that has not ended; raises WRONG_STATE otherwise."""

        async def change(tx: SubmissionTx) -> None:
            (found,) = await _locked(tx, actor, [job])
            _require_etag(found, etag)
            if found.state in TERMINAL_JOB:
                raise _wrong_state(found, "have its priority changed")
            if found.priority != priority:
                changed = replace(found, priority=priority, generation=found.generation + 1)
                told = f"priority {found.priority} -> {priority}"
                await _write(
                    tx, [(changed, _event(changed, actor, None, at=await tx.now(), message=told))]
                )

        await self._run(change)
        return await self._reader.get(actor, job)

    async def _move(
        self, actor: Actor, job: JobId, *, etag: str, event: JobEvent, goal: JobState
    ) -> JobView:
        async def change(tx: SubmissionTx) -> None:
            (found,) = await _locked(tx, actor, [job])
            _require_etag(found, etag)
            if found.state is goal:
                return
            state = next_job_state(found.state, event)
            if state is None:
                raise _wrong_state(found, f"become {goal.value}")
            changed = replace(found, state=state, generation=found.generation + 1)
            await _write(tx, [(changed, _event(changed, actor, event, at=await tx.now()))])

        await self._run(change)
        return await self._reader.get(actor, job)


async def _locked(tx: SubmissionTx, actor: Actor, jobs: Sequence[JobId]) -> list[Job]:
    found = await tx.lock_jobs(jobs)
    missing = [job for job in jobs if job not in found or found[job].tenant != actor.tenant]
    if missing:
        raise no_such_jobs(missing)
    return [found[job] for job in dict.fromkeys(jobs)]


Changed = tuple[Job, Event]


async def _write(tx: SubmissionTx, changed: Sequence[Changed]) -> None:
    if changed:
        await tx.update_jobs([job for job, _ in changed])
        await tx.add_events([event for _, event in changed])
        await tx.changed([Change(ChangeKind.JOBS, tuple(job.id for job, _ in changed))])


def _can_cancel(job: Job) -> bool:
    return job.state not in TERMINAL_JOB and job.wish is not JobWish.CANCEL


def _cancelled(job: Job, actor: Actor, now: float) -> Changed:
    wished = replace(job, wish=JobWish.CANCEL, generation=job.generation + 1)
    if job.attempt is not None:
        return wished, _event(wished, actor, None, at=now, message="cancel asked for")
    state = next_job_state(job.state, JobEvent.CANCELLED)
    if state is None:
        raise AssertionError(f"{job.state} cannot be cancelled")
    ended = replace(wished, state=state, reason=ReasonCode.USER_CANCEL, ended_at=now)
    return ended, _event(ended, actor, JobEvent.CANCELLED, at=now)


def _event(
    job: Job, actor: Actor, event: JobEvent | None, *, at: float, message: str = ""
) -> Event:
    return Event(
        job.id,
        job.queue,
        event,
        job.state,
        at,
        attempt=job.attempt,
        cluster=job.cluster if job.attempt is not None else None,
        reason=job.reason if job.state in TERMINAL_JOB else None,
        message=message,
        principal=actor.principal,
    )


def _require_etag(job: Job, etag: str) -> None:
    if etag and etag != str(job.generation):
        raise Aborted(
            f"job {job.id} has changed: its etag is {job.generation}, not {etag}",
            code=ErrorCode.ETAG_MISMATCH,
            metadata={"job": str(job.id), "etag": str(job.generation)},
        )


def _wrong_state(job: Job, what: str) -> FailedPrecondition:
    return FailedPrecondition(
        f"job {job.id} is {job.state.value} and cannot {what}",
        code=ErrorCode.WRONG_STATE,
        metadata={"job": str(job.id), "state": job.state.value},
    )
