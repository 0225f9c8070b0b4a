"""What the placement leader knows, brought up to date by rows and frozen for each cycle.

Not safe for threads: whoever writes here must not do so while another writes
or freezes. A snapshot, once taken, is independent of it.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from atoll.core.model.booking import promise_mark
from atoll.core.model.ids import AttemptId, ClusterName, JobId, QueueName, job_of
from atoll.core.model.plan import PendingJob, Plan, TaskPlacement
from atoll.core.state.charges import charges_of, with_charges
from atoll.core.state.fit_kernels import Hardware
from atoll.core.state.freezing import level_order, queue_view
from atoll.core.state.heads import heads
from atoll.core.state.holds import charged
from atoll.core.state.job_queue import JobClass
from atoll.core.state.ledger import Holding
from atoll.core.state.renting import Renting
from atoll.core.state.running import NEVER
from atoll.core.state.shares import HALF_LIFE_S
from atoll.core.state.snapshot import Snapshot
from atoll.core.state.survey import Survey, survey

HEADS = 4096


class World(Renting):
    """Nodes, clusters, holdings and queue of one shard; past use halves in `half_life_s`."""

    def __init__(self, half_life_s: float = HALF_LIFE_S) -> None:
        super().__init__(half_life_s)
        self._now = 0.0
        self._immune: list[float] = []
        """When runs may be stopped that may not be now."""
        self._planned: set[AttemptId] = set()
        """Attempts of the last plan that have not become allocations yet."""

    def upsert_pending(self, jobs: Sequence[PendingJob]) -> tuple[JobId, ...]:
        """Enter or replace jobs; a revision lower than the known one is ignored.

        Returns the dependencies that nothing awaited before. Their states are to be looked
        up once, and `dependency_done` called for those that have succeeded already.
        """
        self.workload.note(len(jobs))
        awaited = self._queue.upsert(list(map(_promised, jobs)), made=self._complete)
        self._drop_empty()
        return awaited

    def remove_pending(self, ids: Iterable[JobId]) -> int:
        """Forget jobs (placed, held, ended); how many were here. Nothing is held for them then."""
        gone = tuple(ids)
        self.drop_nominations(gone)
        if self._pace.gone(gone):
            self._stamps.settings_changed()
        removed = self._queue.remove(gone)
        self._drop_empty()
        return removed

    def add_allocation(
        self,
        attempt: AttemptId,
        queue: QueueName,
        cluster: ClusterName,
        *,
        tasks: tuple[TaskPlacement, ...],
    ) -> None:
        """Count what a committed attempt holds; see `add_allocations`."""
        self.add_allocations([Holding(attempt, queue, cluster, tasks)])

    def add_allocations(self, holdings: Sequence[Holding]) -> None:
        """Count what committed attempts hold, all or none. The same again changes nothing.

        Raises AlreadyTaken when a share of a device has another owner.
        """
        new, uses = self.ledger.take(holdings)
        self.workload.note(len(new))
        self._queues.add(new, uses)
        self._running.add(new, uses, self._table)
        self._holds.used(job_of(holding.attempt) for holding in new)
        for holding in new:
            if holding.run is not None and holding.run.immune_until > self._now:
                heapq.heappush(self._immune, holding.run.immune_until)
        self._planned.difference_update(holding.attempt for holding in new)

    def resize(self, attempt: AttemptId, tasks: tuple[TaskPlacement, ...]) -> None:
        """An attempt holds other tasks than before; one that holds nothing is passed over."""
        held = self.ledger.holdings.get(attempt)
        if held is not None and held.tasks != tasks:
            self.end_allocations([attempt])
            self.add_allocations([held._replace(tasks=tasks)])

    def mark(self, marks: Mapping[JobId, tuple[str, ...]]) -> None:
        """Let bookings know jobs by some marks, queued and running ones."""
        queued = (self._queue.get(job) for job in sorted(marks))
        self.upsert_pending([
            replace(job, request=replace(job.request, marks=marks[job.id]))
            for job in queued
            if job is not None and job.request.marks != marks[job.id]
        ])
        for held in [h for a, h in self.ledger.holdings.items() if job_of(a) in marks]:
            if held.run is not None and held.run.marks != marks[job_of(held.attempt)]:
                run = held.run._replace(marks=marks[held.run.job])
                self.end_allocations([held.attempt])
                self.add_allocations([held._replace(run=run)])

    def stopping(self, attempts: Iterable[AttemptId]) -> None:
        """Attempts were told to stop: what they hold will come free."""
        self._running.stop(attempts)

    def end_allocation(self, attempt: AttemptId) -> bool:
        """Give back what an attempt holds; False when it holds nothing (any more)."""
        return self.end_allocations([attempt]) == 1

    def end_allocations(self, attempts: Iterable[AttemptId]) -> int:
        """Give back what attempts hold; how many held something."""
        held = [a for a in dict.fromkeys(attempts) if a in self.ledger.holdings]
        uses = self._running.uses(held, self._table.nodes)
        runs = self._running.ended(held)
        ended = self.ledger.release(held, uses)
        if ended:
            self._queues.end(held)
            self._running.remove(held)
            self._pace.ended(runs, uses, now=self._now)
            self._grew(uses.row)
            bound = {name for q in {h.queue for h in ended} for name in self._queues.bound(q)}
            self._stamps.limit_freed(bound)
        return len(ended)

    def freeze(self, now: float, heads_per_class: int = HEADS) -> Snapshot:
        """What a cycle at wall time `now` needs; classes that cannot have changed are left out.

        `heads_per_class` bounds the jobs that it shows of each class; a plan of that many
        placements sees all it needs.
        """
        self._advance(now)
        kept = self._pace.classes(self._queue)
        every = self._queue.classes.values()
        tried = [c for c in every if self._worth_a_try(c) or c.number in kept]
        return self._frozen(now, tried, heads_per_class)

    def look(self, now: float) -> Snapshot:
        """Nodes, runs and limits without the queue, for questions beside the cycles.

        Nothing is advanced: what is waiting is tried again no sooner for it.
        """
        return self._frozen(now, (), 0)

    def survey(self, now: float) -> Survey:
        """All of the queue in short beside what `look` shows, for forecasts."""
        classes = [c for c in self._queue.classes.values() if not c.fifo.empty]
        each = list(zip(classes, self._views(classes), strict=True))
        return survey(self.look(now), self._queue, each, times=self.run_times.freeze())

    def _frozen(self, now: float, tried: Sequence[JobClass], heads_per_class: int) -> Snapshot:
        nodes, names, row_of = self._table.share()
        holds, rentals = self._hold(nodes, now)
        limits, shares = charged(
            holds, *self._queues.freeze(), tree=self._queues.tree, table=self._table
        )
        hardware, running = Hardware(*self._table.arrays()), self._running.freeze()
        if rentals:
            shares = self._locally(shares, running, rentals)
        windows, wide = self._windows.freeze(now), shares.held.shape[1]
        booked = charges_of(windows, nodes, hardware=hardware, running=running, now=now, wide=wide)
        limits, shares = with_charges(booked, limits, shares, tree=self._queues.tree)
        without = np.array([hold.job.id for hold in holds], np.int64)
        first = heads(self._queue, tried, heads_per_class, without=without)
        return Snapshot(
            world=self._table,
            now=now,
            stamp=self._stamps.now,
            nodes=nodes,
            hardware=hardware,
            shapes=self._shapes.copy(),
            shape_values=tuple(self._shapes.values),
            names=names,
            row_of=row_of,
            clusters=self._cluster_views(),
            avoidances=self._avoidances,
            label_sets=self._table.labels,
            label_count=len(self._table.labels.sets),
            levels=level_order(self._table),
            kinds=dict(self._table.models.kinds.number),
            typical=self.workload.table(self._queue.classes, self.ledger.holdings, self._table),
            queue=queue_view(self._queue, self._views(tried), first),
            limits=limits,
            shares=shares,
            running=running,
            holds=holds,
            first=frozenset(self._holds.first),
            apart=self.ledger.apart.freeze(),
            pace=self._pace.freeze(shares.capacity, now=self._now),
            calm=self._queues.calm(),
            windows=windows,
            charges=booked,
            rentals=rentals,
        )

    def note_waiting(self, snapshot: Snapshot, plan: Plan) -> None:
        """Do not try again what did not fit, until capacity has grown since the snapshot.

        It did not fit beside the plan's placements. Should one of those not have become an
        allocation by the next cycle, everything is tried again.
        """
        held = self.ledger.holdings
        self._planned = {p.attempt for p in plan.placements if p.attempt not in held}
        self._holds.first.clear()
        self._to_hold = False
        self._windows.planned(plan.evictions)
        if self._pace.promise(plan.promises, cleared=plan.cleared):
            self._stamps.settings_changed()
        waiting = {(w.queue, w.request) for w in plan.waiting if not w.again}
        for view in snapshot.queue.classes:
            group = self._queue.classes.get(view.number)
            if group is not None and (view.queue, view.request) in waiting:
                group.blocked_at = snapshot.stamp

    def has_work(self, now: float | None = None) -> bool:
        """Whether a cycle at wall time `now` could do something: some class is worth a try.

        So it is when somebody is to be stopped for a booking, or a rented machine is to be held.
        Without `now` as of the last freeze: a begin or an avoidance that ends later is not seen.
        """
        if now is not None:
            self._advance(now)
        if self._windows.due or self._rental_is_due(self._now if now is None else now):
            return True
        return any(self._worth_a_try(c) for c in self._queue.classes.values())

    def next_wakeup(self, now: float) -> float | None:
        """Wall time after `now` at which waiting alone makes another cycle worthwhile."""
        begin = self._queue.next_begin()
        times = [a.until for a in self._avoidances] + ([begin] if begin is not None else [])
        times += self._immune[:1]
        times += [n.until for n in self.ledger.nominations.values()]
        times += [self._windows.next_time(now, self._running.freeze()), *self._rental_times()]
        return min((time for time in times if now < time < NEVER), default=None)

    def _advance(self, now: float) -> None:
        if self._planned:
            self._planned.clear()
            self._stamps.settings_changed()
        if any(self._now < a.until <= now for a in self._avoidances):
            self._stamps.settings_changed()
        self.drop_nominations(self._holds.overdue(now))
        while self._immune and self._immune[0] <= now:
            heapq.heappop(self._immune)
            self._stamps.settings_changed()
        if self._windows.advance(self._now, now, self._running.freeze()):
            self._stamps.settings_changed()
        self._now = max(now, self._now)
        self._queues.advance(self._now)
        self._queue.advance(now)

    def _worth_a_try(self, group: JobClass) -> bool:
        if group.fifo.empty or group.blocked_at < 0:
            return not group.fifo.empty
        bound = self._queues.bound(group.queue)
        return self._stamps.latest(group.watch, bound) > group.blocked_at


def _promised(job: PendingJob) -> PendingJob:
    """A job whose deadline is guaranteed, by the mark under which its devices are kept for it."""
    mark, marks = promise_mark(job.queue), job.request.marks
    if not job.guaranteed or mark in marks:
        return job
    return replace(job, request=replace(job.request, marks=(*marks, mark)))
