"""All pending jobs by class (queue, request, priority)."""

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from atoll.core.model.ids import JobId, QueueName
from atoll.core.model.plan import GangRequest, PendingJob
from atoll.core.state.fifo import Fifo
from atoll.core.state.needs import NOTHING, Need
from atoll.core.state.pending import PendingTable

NEVER_BLOCKED = -1
_ClassKey = tuple[QueueName, GangRequest, int]


@dataclass(slots=True)
class JobClass:
    """Jobs that ask for the same in the same queue at the same priority."""

    number: int
    queue: QueueName
    request: GangRequest
    priority: int
    fifo: Fifo = field(default_factory=Fifo)
    live: int = 0
    blocked_at: int = NEVER_BLOCKED
    """Stamp of the capacity in which it did not fit."""
    shapes: tuple[tuple[int, ...], ...] = ()
    """By task group: rows of its alternatives in the shape table."""
    watch: tuple[int, ...] = ()
    """Device kinds whose release could make it fit."""
    vertex: int = 0
    """Of its queue in the queue tree."""
    need: Need = NOTHING


class JobQueue:
    """Pending jobs. Those that wait for a dependency or a time are in no fifo yet."""

    def __init__(self) -> None:
        self.table = PendingTable()
        self.classes: dict[int, JobClass] = {}
        self._number: dict[_ClassKey, int] = {}
        self._same: dict[tuple[int, QueueName, int], int] = {}
        self._next = 0
        self._emptied: set[int] = set()
        self._awaited: dict[JobId, set[JobId]] = {}
        self._later: list[tuple[float, int]] = []
        self.now = 0.0

    def upsert(
        self, jobs: Sequence[PendingJob], *, made: Callable[[JobClass], None]
    ) -> tuple[JobId, ...]:
        """Enter or replace jobs; `made` completes a new class. Dependencies not awaited before."""
        latest = tuple({job.id: job for job in jobs}.values())
        old = self.table.find(job.id for job in latest)
        known = np.where(old >= 0, self.table.columns.revision[old], -1).tolist()
        fresh = [job for job, rev in zip(latest, known, strict=True) if job.revision >= rev]
        self.remove(job.id for job in fresh)
        groups = np.array([self._class_of(job, made) for job in fresh], np.int64)
        waits = np.array([len(set(job.depends_on)) for job in fresh], np.int64)
        self.table.add(fresh, groups=groups, waits=waits)
        for job, group in zip(fresh, groups.tolist(), strict=True):
            self.classes[group].live += 1
            if not job.depends_on:
                self._enter(job.id, group, begin_at=job.begin_at, submitted_at=job.submitted_at)
        return self._await(fresh)

    def remove(self, ids: Iterable[JobId]) -> int:
        """Forget jobs; how many were here. Classes stay until `drop_empty`."""
        slots = np.unique(self.table.find(ids))
        slots = slots[slots >= 0]
        for group in self.table.columns.group[slots].tolist():
            self.classes[group].live -= 1
            if not self.classes[group].live:
                self._emptied.add(group)
        self.table.remove(slots)
        return len(slots)

    def drop_empty(self) -> tuple[JobClass, ...]:
        """Forget classes without jobs; they are returned."""
        left = (self.classes.get(number) for number in sorted(self._emptied))
        empty = tuple(c for c in left if c is not None and not c.live)
        self._emptied.clear()
        for gone in empty:
            del self.classes[gone.number]
            del self._number[gone.queue, gone.request, gone.priority]
            del self._same[id(gone.request), gone.queue, gone.priority]
        return empty

    def dependency_done(self, done: JobId) -> int:
        """A job succeeded: how many jobs waited for it."""
        waiting = sorted(self._awaited.pop(done, ()))
        slots = self.table.find(waiting)
        columns = self.table.columns
        for job, slot in zip(waiting, slots.tolist(), strict=True):
            if slot < 0 or not columns.waits[slot]:
                continue
            columns.waits[slot] -= 1
            if not columns.waits[slot]:
                self._enter_slot(job, slot)
        return len(waiting)

    def awaited(self) -> tuple[JobId, ...]:
        """Jobs that others wait for."""
        return tuple(sorted(self._awaited))

    def advance(self, now: float) -> None:
        """Let jobs in whose begin has come."""
        self.now = max(now, self.now)
        while self._later and self._later[0][0] <= self.now:
            job = JobId(heapq.heappop(self._later)[1])
            slot = int(self.table.find([job])[0])
            if slot >= 0 and not self.table.columns.waits[slot]:
                self._enter_slot(job, slot)

    def next_begin(self) -> float | None:
        """When the next job may begin; None when no job waits for a time."""
        while self._later:
            begin, job = self._later[0]
            slot = int(self.table.find([JobId(job)])[0])
            if slot >= 0 and self.table.begin_at(np.array([slot]))[0] == begin:
                return begin
            heapq.heappop(self._later)
        return None

    def get(self, job: JobId) -> PendingJob | None:
        """A pending job; `depends_on` is what it still waits for."""
        table = self.table
        slots = table.find([job])
        slot = int(slots[0])
        if slot < 0:
            return None
        columns = table.columns
        group = self.classes[int(columns.group[slot])]
        return PendingJob(
            id=job,
            revision=int(columns.revision[slot]),
            queue=group.queue,
            priority=group.priority,
            submitted_at=float(columns.submitted_at[slot]),
            request=group.request,
            attempts=int(columns.attempts[slot]),
            begin_at=float(table.begin_at(slots)[0]),
            depends_on=tuple(d for d in self.awaited() if job in self._awaited[d]),
            trace=table.traces(slots)[0],
            deadline_at=float(table.deadline_at(slots)[0]),
            guaranteed=bool(table.guaranteed(slots)[0]),
            preemptions=int(table.preemptions(slots)[0]),
        )

    def ahead(self, job: PendingJob) -> int:
        """Jobs of any queue that are before this one: priority, submit time, id."""
        columns = self.table.columns
        live = np.flatnonzero(columns.job)
        priorities = np.zeros(max(self.classes, default=0) + 1, np.int64)
        for number, group in self.classes.items():
            priorities[number] = group.priority
        priority, submitted = priorities[columns.group[live]], columns.submitted_at[live]
        earlier = (submitted < job.submitted_at) | (
            (submitted == job.submitted_at) & (columns.job[live] < job.id)
        )
        before = (priority > job.priority) | ((priority == job.priority) & earlier)
        return int(before.sum())

    def _class_of(self, job: PendingJob, made: Callable[[JobClass], None]) -> int:
        same = (id(job.request), job.queue, job.priority)
        number = self._same.get(same)
        if number is None:
            number = self._number.get((job.queue, job.request, job.priority))
        return self._new_class(job, made) if number is None else number

    def _new_class(self, job: PendingJob, made: Callable[[JobClass], None]) -> int:
        number = self._next
        self._next += 1
        group = JobClass(number, job.queue, job.request, job.priority)
        # The class keeps its request alive, so that no other object gets the same id.
        self._same[id(job.request), job.queue, job.priority] = number
        self._number[job.queue, job.request, job.priority] = number
        self.classes[number] = group
        made(group)
        return number

    def _await(self, jobs: Iterable[PendingJob]) -> tuple[JobId, ...]:
        new: set[JobId] = set()
        for job in jobs:
            for dependency in job.depends_on:
                if dependency not in self._awaited:
                    new.add(dependency)
                self._awaited.setdefault(dependency, set()).add(job.id)
        return tuple(sorted(new))

    def _enter_slot(self, job: JobId, slot: int) -> None:
        columns = self.table.columns
        self._enter(
            job,
            int(columns.group[slot]),
            begin_at=float(self.table.begin_at(np.array([slot]))[0]),
            submitted_at=float(columns.submitted_at[slot]),
        )

    def _enter(self, job: JobId, group: int, *, begin_at: float, submitted_at: float) -> None:
        if begin_at > self.now:
            heapq.heappush(self._later, (begin_at, job))
        else:
            self.classes[group].fifo.push(job, submitted_at)
