"""The client for programs that wait."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Self, TypeAlias, overload

from atoll.adapters.system import SystemClock, SystemIds
from atoll.api.submission.v1 import submission_pb2 as submission
from atoll.client import calls, reading, scheduling
from atoll.client.bursting import Burst
from atoll.client.config import ClientConfig, load_config
from atoll.client.job import Job
from atoll.client.operating import PAGE_SIZE, Operations
from atoll.client.reserving import Reservations
from atoll.client.retry import TRIES, worth_another_try
from atoll.client.scheduling import PlannedJob
from atoll.client.streams import ALL_RANKS, LOGS, WATCH, Tailing, Watching, ended, offsets
from atoll.client.transport import Transport
from atoll.client.views import Event, Explanation, JobInfo, LogChunk
from atoll.client.waiting import Awaited, Deadline, batches
from atoll.core.model.errors import ErrorCode, FailedPrecondition, InvalidInput, Unavailable
from atoll.core.model.lifecycle import JobState

if TYPE_CHECKING:
    from atoll.client.prepare import ManySpecs, OneSpec

Jobs: TypeAlias = list[Job]
JobInfos: TypeAlias = list[JobInfo]


class Client(Operations):
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
        super().__init__(Transport(self.config))
        self.reservations = Reservations(self._transport)
        """Bookings."""
        self.burst = Burst(self._transport)
        """Rented capacity."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    @overload
    def submit(self, spec: "OneSpec", *, request_id: str | None = None) -> Job: ...

    @overload
    def submit(self, spec: "ManySpecs", *, request_id: str | None = None) -> Jobs: ...

    def submit(self, spec: "OneSpec | ManySpecs", *, request_id: str | None = None) -> Job | Jobs:
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
            written = self._transport.run(calls.submit(specs, request_id or self._ids.uuid()))
        except InvalidInput as error:
            raise about_one(error, specs) from error
        jobs = [
            Job(self, reading.submitted(job_id, one, told))
            for (job_id, told), one in zip(written, one_for_each_job(specs), strict=True)
        ]
        return jobs if is_many(spec) else jobs[0]

    def get(self, job_id: int) -> Job:
        """One job; NotFound when there is none."""
        return Job(self, self._transport.run(calls.get(job_id)))

    def list(
        self,
        *,
        queue: str = "",
        states: Iterable[JobState] = (),
        labels: Mapping[str, str] | None = None,
        job_ids: Iterable[int] = (),
        array_id: int = 0,
        cluster: str = "",
        page_size: int = PAGE_SIZE,
    ) -> Iterator[Job]:
        """Jobs, newest first; pages are read as they are needed."""
        wanted = calls.JobFilter(
            queue=queue,
            states=tuple(states),
            labels=tuple(sorted((labels or {}).items())),
            job_ids=tuple(job_ids),
            array_id=array_id,
            cluster=cluster,
        )
        for info in self._pages(
            lambda token: calls.list_jobs(wanted, page_size=page_size, token=token)
        ):
            yield Job(self, info)

    def as_completed(self, jobs: Iterable[Job], timeout: float | None = None) -> Iterator[Job]:
        """The jobs as they end; TimedOut when some have not after `timeout` seconds."""
        deadline, awaited = Deadline(self._clock, timeout), Awaited(jobs)
        yield from awaited.known_done()
        if not awaited:
            return
        for some in self._moments(awaited.ids(), deadline):
            for ids in batches(awaited.ids(some)):
                call = calls.list_jobs(calls.JobFilter(job_ids=tuple(ids)), page_size=len(ids))
                yield from awaited.update(ids, self._transport.run(call).items)
            if not awaited:
                return
            deadline.check(len(awaited))

    def states(self, job_id: int) -> Iterator[JobInfo]:
        """A job as it is now, and after every change, until it has ended."""
        last = None
        for _ in self._moments((job_id,), Deadline(self._clock, None), every_event=True):
            info = self._transport.run(calls.get(job_id))
            if info != last:
                yield info
            if info.done:
                return
            last = info

    def logs(
        self,
        job_id: int,
        *,
        follow: bool = False,
        rank: int = ALL_RANKS,
        attempt: int = 0,
        tail_lines: int = 0,
        resume: Mapping[int, int] | int | None = None,
    ) -> Iterator[LogChunk]:
        """Output of a job's live or last attempt, or of the numbered one.

        With `follow` it waits for the start, and ends with the attempt. Raises LogsDropped when
        the stream breaks; pass its `offsets` as `resume` to go on.
        """
        have = offsets(resume, rank)
        tailing = Tailing(job_id, rank, follow, attempt, tail_lines, have)
        try:
            yield from self._tailed(tailing)
        except FailedPrecondition as error:
            if not (tailing.waits_for_start(error) and self._has_begun(job_id)):
                raise
            yield from self._tailed(tailing)

    def watch(
        self, cursor: str = "", *, queue: str = "", job_ids: Iterable[int] = ()
    ) -> Iterator[Event]:
        """Events from now on, or after `cursor`, over reconnects, without an end.

        Raises CURSOR_EXPIRED when the cursor is older than what is kept: list the jobs then.
        """
        watching = Watching(cursor, queue, tuple(job_ids))
        tries = 0
        while True:
            try:
                for reply in self._watched(watching, None):
                    tries = 0
                    yield from watching.events(reply)
                raise Unavailable("the server ended the watch", code=ErrorCode.UNAVAILABLE)
            except Unavailable as error:
                tries += 1
                if not worth_another_try(error, repeatable=True, tries=tries):
                    raise
            self._transport.pause(tries)

    def cancel(self, job_ids: Iterable[int]) -> JobInfos:
        """End jobs, or ask their clusters to stop them; one that had ended is left as it is."""
        return self._transport.run(calls.cancel(job_ids))

    def hold(self, job_id: int, *, etag: str = "") -> JobInfo:
        """Keep a queued job from being placed."""
        return self._transport.run(calls.hold(job_id, etag))

    def release(self, job_id: int, *, etag: str = "") -> JobInfo:
        """Let a held job be placed again."""
        return self._transport.run(calls.release(job_id, etag))

    def set_priority(self, job_id: int, priority: int, *, etag: str = "") -> JobInfo:
        """Change the priority of a job that has not ended; higher goes first."""
        return self._transport.run(calls.set_priority(job_id, priority, etag))

    def explain(self, job_id: int) -> Explanation:
        """Why a job waits, or where it is; asked of the placement leader."""
        return self._transport.run(calls.explain(job_id))

    def plan(self, spec: "OneSpec") -> PlannedJob:
        """What would become of a job that is submitted now; nothing is submitted."""
        from atoll.client.prepare import about_plan, planned_spec

        one = planned_spec(spec, now=self._clock.now())
        try:
            return self._transport.run(scheduling.plan(one))
        except InvalidInput as error:
            raise about_plan(error) from error

    def _moments(
        self, job_ids: tuple[int, ...], deadline: Deadline, *, every_event: bool = False
    ) -> Iterator[frozenset[int] | None]:
        # When it is worth to look, and at which jobs (None: all): once the watch stands, at every
        # end, after every slice.
        watching, tries = Watching(job_ids=job_ids), 0
        while True:
            try:
                for n, reply in enumerate(self._watched(watching, deadline.slice_s())):
                    tries = 0
                    events = watching.events(reply)
                    if n == 0 or (events and every_event):
                        yield None
                    elif over := ended(events):
                        yield over
            except Unavailable as error:
                if error.code is not ErrorCode.TIMED_OUT:
                    tries += 1
                    self._transport.pause(min(tries, TRIES))
            yield None

    def _tailed(self, tailing: Tailing) -> Iterator[LogChunk]:
        try:
            for reply in self._transport.stream(
                LOGS, tailing.request(), submission.StreamLogsResponse
            ):
                yield from tailing.chunks(reply)
        except Unavailable as error:
            raise tailing.dropped(error) from error

    def _has_begun(self, job_id: int) -> bool:
        return any(info.state is JobState.RUNNING or info.done for info in self.states(job_id))

    def _watched(
        self, watching: Watching, timeout_s: float | None
    ) -> Iterator[submission.WatchJobsResponse]:
        return self._transport.stream(
            WATCH, watching.request(), submission.WatchJobsResponse, timeout_s=timeout_s
        )
