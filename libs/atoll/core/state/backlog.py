"""The queue of a shard: what waits, and what is known of jobs that ended."""

from collections.abc import Container, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.ids import JobId, QueueName
from atoll.core.model.plan import GangRequest, PendingJob
from atoll.core.state.fleet import Fleet
from atoll.core.state.freezing import class_views
from atoll.core.state.heads import heads
from atoll.core.state.history_kernels import Expected
from atoll.core.state.job_queue import JobClass, JobQueue
from atoll.core.state.needs import need_of
from atoll.core.state.run_times import RunTimes, job_like
from atoll.core.state.shape_table import ShapeTable, watched_kinds
from atoll.core.state.snapshot import ClassView
from atoll.core.state.typical import Workload


class Backlog(Fleet):
    """The part of a world that knows of jobs, but of no run."""

    def __init__(self, half_life_s: float) -> None:
        super().__init__(half_life_s)
        self._shapes = ShapeTable(self._table.models.kinds)
        self._queue = JobQueue()
        self.workload = Workload()
        self.run_times = RunTimes()

    @property
    def pending_count(self) -> int:
        """Pending jobs, those included that wait for a dependency or a time."""
        return self._queue.table.count

    def dependency_done(self, job: JobId) -> int:
        """A job succeeded; how many jobs waited for it."""
        return self._queue.dependency_done(job)

    def awaited(self) -> tuple[JobId, ...]:
        """Jobs that pending ones wait for, by id."""
        return self._queue.awaited()

    def pending(self, job: JobId) -> PendingJob | None:
        """A pending job, its `depends_on` reduced to what it still waits for."""
        return self._queue.get(job)

    def still_pending(self, jobs: Iterable[JobId]) -> list[JobId]:
        """Those of some jobs that wait."""
        each = list(jobs)
        slots = self._queue.table.find(each).tolist()
        return [job for job, slot in zip(each, slots, strict=True) if slot >= 0]

    def expected(self, job: PendingJob) -> Expected:
        """How long a job will run, by what is known of others."""
        need = need_of(job.request, self._table.models.kinds)
        limit_s = job.request.terms.time_limit_s
        return self.run_times.view().one(job_like(job.queue, need, limit_s=limit_s))

    def guaranteed(self) -> tuple[PendingJob, ...]:
        """Pending jobs whose deadline is guaranteed, by id."""
        found = (self._queue.get(JobId(job)) for job in self._queue.table.promised().tolist())
        return tuple(job for job in found if job is not None)

    def asked(self) -> Iterator[tuple[QueueName, GangRequest]]:
        """What pending jobs ask for that could start now, but for room."""
        classes = self._queue.classes.values()
        return ((group.queue, group.request) for group in classes if not group.fifo.empty)

    def first_of(
        self, classes: Container[tuple[QueueName, GangRequest]], most: int
    ) -> Iterator[tuple[QueueName, GangRequest, int, NDArray[np.int64]]]:
        """(queue, request, priority, jobs): the first `most` jobs of classes, but for room."""
        every = self._queue.classes.values()
        found = [c for c in every if not c.fifo.empty and (c.queue, c.request) in classes]
        first = heads(self._queue, found, most)
        job = self._queue.table.columns.job[first.slots]
        for at, group in enumerate(found):
            jobs = job[first.first[at] : first.first[at + 1]]
            yield group.queue, group.request, group.priority, jobs[:most]

    def jobs_ahead(self, job: PendingJob) -> int:
        """Pending jobs that are before this one, over all queues."""
        return self._queue.ahead(job)

    def _views(self, classes: Sequence[JobClass]) -> tuple[ClassView, ...]:
        return class_views(classes, self._queues, self.run_times.view())

    def _complete(self, group: JobClass) -> None:
        groups = group.request.groups
        group.shapes = tuple(tuple(self._shapes.hold(s) for s in g.shapes) for g in groups)
        group.watch = watched_kinds(group.request, self._table.models.kinds)
        group.vertex = self._queues.tree(group.queue)
        group.need = need_of(group.request, self._table.models.kinds)

    def _drop_empty(self) -> None:
        for group in self._queue.drop_empty():
            for number in (n for numbers in group.shapes for n in numbers):
                self._shapes.let_go(number)
