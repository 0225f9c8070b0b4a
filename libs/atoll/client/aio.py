"""The client for programs on an event loop: the same verbs."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Self, TypeAlias, overload

from atoll.adapters.system import SystemClock, SystemIds
from atoll.api.submission.v1 import submission_pb2 as submission
from atoll.client import calls, reading, scheduling
from atoll.client.aio_bursting import AsyncBurst
from atoll.client.aio_job import AsyncJob
from atoll.client.aio_operating import AsyncOperations
from atoll.client.aio_reserving import AsyncReservations
from atoll.client.aio_transport import AsyncTransport
from atoll.client.config import ClientConfig, load_config
from atoll.client.operating import PAGE_SIZE
from atoll.client.retry import TRIES, worth_another_try
from atoll.client.scheduling import PlannedJob
from atoll.client.streams import ALL_RANKS, LOGS, WATCH, Tailing, Watching, ended, offsets
from atoll.client.views import Event, Explanation, JobInfo, LogChunk
from atoll.client.waiting import Awaited, Deadline, batches
from atoll.core.model.errors import ErrorCode, FailedPrecondition, InvalidInput, Unavailable
from atoll.core.model.lifecycle import JobState

if TYPE_CHECKING:
    from atoll.client.prepare import ManySpecs, OneSpec

Jobs: TypeAlias = list[AsyncJob]
JobInfos: TypeAlias = list[JobInfo]


class AsyncClient(AsyncOperations):
    """A control plane. Every method raises DomainError for a refusal, CallFailed for a fault.

    Args:
        endpoint: `host:port` of SubmissionService; None: as configured (ATOLL_ENDPOINT, the
            configuration file, or what runs on this machine).
        config: All settings at once, in place of what is configured.
    """

    def __init__(self, endpoint: str | None = None, *, config: ClientConfig | None = None) -> None:
        self.config = config or load_config({"endpoint": endpoint})
        self._clock = SystemClock()
        self._ids = SystemIds()
        super().__init__(AsyncTransport(self.config))
        self.reservations = AsyncReservations(self._transport)
        """Bookings."""
        self.burst = AsyncBurst(self._transport)
        """Rented capacity."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    @overload
    async def submit(self, spec: "OneSpec", *, request_id: str | None = None) -> AsyncJob: ...

    @overload
    async def submit(self, spec: "ManySpecs", *, request_id: str | None = None) -> Jobs: ...

    async def submit(
        self, spec: "OneSpec | ManySpecs", *, request_id: str | None = None
    ) -> AsyncJob | Jobs:
        """Submit jobs in one transaction; when it returns they are committed.

        Args:
            spec: A Spec, a mapping with the keys of the YAML, or the path of a YAML file, for one
                job; a list of them for any number. A spec with an array, and a file with several
                documents, make several jobs and so belong into a list.
            request_id: A UUID; the same one finds the same jobs again. Made up when not given, so
                that this call can be repeated safely inside.
        """
        # Late: most programs that list or wait never parse a spec.
        from atoll.client.prepare import about_one, is_many, job_specs, one_for_each_job

        specs = job_specs(spec, now=self._clock.now())
        try:
            written = await self._transport.run(calls.submit(specs, request_id or self._ids.uuid()))
        except InvalidInput as error:
            raise about_one(error, specs) from error
        jobs = [
            AsyncJob(self, reading.submitted(job_id, one, told))
            for (job_id, told), one in zip(written, one_for_each_job(specs), strict=True)
        ]
        return jobs if is_many(spec) else jobs[0]

    async def get(self, job_id: int) -> AsyncJob:
        """One job; NotFound when there is none."""
        return AsyncJob(self, await self._transport.run(calls.get(job_id)))

    async def list(
        self,
        *,
        queue: str = "",
        states: Iterable[JobState] = (),
        labels: Mapping[str, str] | None = None,
        job_ids: Iterable[int] = (),
        array_id: int = 0,
        cluster: str = "",
        page_size: int = PAGE_SIZE,
    ) -> AsyncIterator[AsyncJob]:
        """Jobs, newest first; pages are read as they are needed."""
        wanted = calls.JobFilter(
            queue=queue,
            states=tuple(states),
            labels=tuple(sorted((labels or {}).items())),
            job_ids=tuple(job_ids),
            array_id=array_id,
            cluster=cluster,
        )
        async for info in self._pages(
            lambda token: calls.list_jobs(wanted, page_size=page_size, token=token)
        ):
            yield AsyncJob(self, info)

    async def as_completed(
        self,
        jobs: Iterable[AsyncJob],
        timeout: float | None = None,  # noqa: ASYNC109 - as in Client
    ) -> AsyncIterator[AsyncJob]:
        """The jobs as they end; TimedOut when some have not after `timeout` seconds."""
        deadline, awaited = Deadline(self._clock, timeout), Awaited(jobs)
        for job in awaited.known_done():
            yield job
        if not awaited:
            return
        async with aclosing(self._moments(awaited.ids(), deadline)) as moments:
            async for some in moments:
                for ids in batches(awaited.ids(some)):
                    call = calls.list_jobs(calls.JobFilter(job_ids=tuple(ids)), page_size=len(ids))
                    page = await self._transport.run(call)
                    for job in awaited.update(ids, page.items):
                        yield job
                if not awaited:
                    return
                deadline.check(len(awaited))

    async def states(self, job_id: int) -> AsyncGenerator[JobInfo]:
        """A job as it is now, and after every change, until it has ended."""
        last = None
        deadline = Deadline(self._clock, None)
        async with aclosing(self._moments((job_id,), deadline, every_event=True)) as moments:
            async for _ in moments:
                info = await self._transport.run(calls.get(job_id))
                if info != last:
                    yield info
                if info.done:
                    return
                last = info

    async def logs(
        self,
        job_id: int,
        *,
        follow: bool = False,
        rank: int = ALL_RANKS,
        attempt: int = 0,
        tail_lines: int = 0,
        resume: Mapping[int, int] | int | None = None,
    ) -> AsyncIterator[LogChunk]:
        """Output of a job's live or last attempt, or of the numbered one.

        With `follow` it waits for the start, and ends with the attempt. Raises LogsDropped when
        the stream breaks; pass its `offsets` as `resume` to go on.
        """
        have = offsets(resume, rank)
        tailing = Tailing(job_id, rank, follow, attempt, tail_lines, have)
        try:
            async with aclosing(self._tailed(tailing)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except FailedPrecondition as error:
            if not (tailing.waits_for_start(error) and await self._has_begun(job_id)):
                raise
            async with aclosing(self._tailed(tailing)) as chunks:
                async for chunk in chunks:
                    yield chunk

    async def watch(
        self, cursor: str = "", *, queue: str = "", job_ids: Iterable[int] = ()
    ) -> AsyncIterator[Event]:
        """Events from now on, or after `cursor`, over reconnects, without an end.

        Raises CURSOR_EXPIRED when the cursor is older than what is kept: list the jobs then.
        """
        watching = Watching(cursor, queue, tuple(job_ids))
        tries = 0
        while True:
            try:
                async with aclosing(self._watched(watching, None)) as replies:
                    async for reply in replies:
                        tries = 0
                        for event in watching.events(reply):
                            yield event
                raise Unavailable("the server ended the watch", code=ErrorCode.UNAVAILABLE)
            except Unavailable as error:
                tries += 1
                if not worth_another_try(error, repeatable=True, tries=tries):
                    raise
            await self._transport.pause(tries)

    async def cancel(self, job_ids: Iterable[int]) -> JobInfos:
        """End jobs, or ask their clusters to stop them; one that had ended is left as it is."""
        return await self._transport.run(calls.cancel(job_ids))

    async def hold(self, job_id: int, *, etag: str = "") -> JobInfo:
        """Keep a queued job from being placed."""
        return await self._transport.run(calls.hold(job_id, etag))

    async def release(self, job_id: int, *, etag: str = "") -> JobInfo:
        """Let a held job be placed again."""
        return await self._transport.run(calls.release(job_id, etag))

    async def set_priority(self, job_id: int, priority: int, *, etag: str = "") -> JobInfo:
        """Change the priority of a job that has not ended; higher goes first."""
        return await self._transport.run(calls.set_priority(job_id, priority, etag))

    async def explain(self, job_id: int) -> Explanation:
        """Why a job waits, or where it is; asked of the placement leader."""
        return await self._transport.run(calls.explain(job_id))

    async def plan(self, spec: "OneSpec") -> PlannedJob:
        """What would become of a job that is submitted now; nothing is submitted."""
        from atoll.client.prepare import about_plan, planned_spec

        one = planned_spec(spec, now=self._clock.now())
        try:
            return await self._transport.run(scheduling.plan(one))
        except InvalidInput as error:
            raise about_plan(error) from error

    async def _moments(
        self, job_ids: tuple[int, ...], deadline: Deadline, *, every_event: bool = False
    ) -> AsyncGenerator[frozenset[int] | None]:
        # When it is worth to look, and at which jobs (None: all): once the watch stands, at every
        # end, after every slice.
        watching, tries = Watching(job_ids=job_ids), 0
        while True:
            try:
                first = True
                async with aclosing(self._watched(watching, deadline.slice_s())) as replies:
                    async for reply in replies:
                        tries = 0
                        events = watching.events(reply)
                        if first or (events and every_event):
                            yield None
                        elif over := ended(events):
                            yield over
                        first = False
            except Unavailable as error:
                if error.code is not ErrorCode.TIMED_OUT:
                    tries += 1
                    await self._transport.pause(min(tries, TRIES))
            yield None

    async def _tailed(self, tailing: Tailing) -> AsyncGenerator[LogChunk]:
        replies = self._transport.stream(LOGS, tailing.request(), submission.StreamLogsResponse)
        try:
            async with aclosing(replies):
                async for reply in replies:
                    for chunk in tailing.chunks(reply):
                        yield chunk
        except Unavailable as error:
            raise tailing.dropped(error) from error

    async def _has_begun(self, job_id: int) -> bool:
        async with aclosing(self.states(job_id)) as states:
            async for info in states:
                if info.state is JobState.RUNNING or info.done:
                    return True
        return False

    def _watched(
        self, watching: Watching, timeout_s: float | None
    ) -> AsyncGenerator[submission.WatchJobsResponse]:
        return self._transport.stream(
            WATCH, watching.request(), submission.WatchJobsResponse, timeout_s=timeout_s
        )
