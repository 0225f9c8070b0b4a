"""Reading jobs: one, or a page of those that a filter leaves."""

from collections.abc import Sequence
from dataclasses import dataclass

from atoll.core.model.actor import Actor
from atoll.core.model.errors import ErrorCode, NotFound
from atoll.core.model.ids import JobId
from atoll.core.model.job import Attempt, Job
from atoll.core.model.paging import next_token, page_size, read_token
from atoll.ports.store.submission import JobFilter, SubmissionStore


@dataclass(frozen=True, slots=True)
class JobView:
    """A job with its live or last attempt."""

    job: Job
    attempt: Attempt | None


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs, newest first, and the token of what follows; empty: nothing does."""

    jobs: tuple[JobView, ...]
    next_token: str


class JobReader:
    """Shows jobs to those whose tenant they belong to."""

    def __init__(self, store: SubmissionStore) -> None:
        self._store = store

    async def get(self, actor: Actor, job: JobId) -> JobView:
        """One job; raises NotFound."""
        found = await self._store.get_job(actor.tenant, job)
        if found is None:
            raise no_such_jobs([job])
        return (await self.with_attempts([found]))[0]

    async def several(self, actor: Actor, jobs: Sequence[JobId]) -> list[JobView]:
        """Jobs in the order asked; raises NotFound when one does not exist."""
        only = JobFilter(actor.tenant, ids=tuple(dict.fromkeys(jobs)))
        found = await self._store.list_jobs(only, before=None, limit=len(only.ids))
        views = {view.job.id: view for view in await self.with_attempts(found)}
        if missing := [job for job in jobs if job not in views]:
            raise no_such_jobs(missing)
        return [views[job] for job in jobs]

    async def page(self, wanted: JobFilter, *, size: int, token: str) -> JobPage:
        """A page of jobs; raises InvalidInput BAD_PAGE_TOKEN for a token of another query."""
        query = _query(wanted)
        before = _before(token, query)
        limit = page_size(size)
        found = await self._store.list_jobs(wanted, before=before, limit=limit + 1)
        shown = found[:limit]
        following = next_token(query, [shown[-1].id]) if len(found) > limit else ""
        return JobPage(tuple(await self.with_attempts(shown)), following)

    async def with_attempts(self, jobs: Sequence[Job]) -> list[JobView]:
        """The jobs, each with its live or last attempt."""
        tried = [job.id for job in jobs if job.attempts]
        attempts = await self._store.last_attempts(tried) if tried else {}
        return [JobView(job, attempts.get(job.id)) for job in jobs]


def no_such_jobs(jobs: Sequence[JobId]) -> NotFound:
    """The refusal for ids that name no job of the tenant."""
    told = ", ".join(str(job) for job in jobs[:10])
    more = f" and {len(jobs) - 10} more" if len(jobs) > 10 else ""
    return NotFound(
        f"there is no job {told}{more}", code=ErrorCode.JOB_NOT_FOUND, metadata={"job": told}
    )


def _query(wanted: JobFilter) -> tuple[object, ...]:
    return (
        "jobs",
        wanted.tenant,
        wanted.queue,
        sorted(state.value for state in wanted.states),
        sorted(wanted.labels),
        sorted(wanted.ids),
        wanted.array_id,
        wanted.cluster,
    )


def _before(token: str, query: tuple[object, ...]) -> JobId | None:
    if not token:
        return None
    (last,) = read_token(token, query, shape=[int])
    return JobId(int(last))
