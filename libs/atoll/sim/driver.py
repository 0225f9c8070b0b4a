"""Simulates without messages: the core's own `plan()` over a world, on a virtual clock.

For long traces without faults. Nothing is decided here: what the plan says happens at once, and
runs end when they are due. A job's run time is looked up only when its run begins, to know when
to end it; no decision can depend on it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count
from typing import Final

import numpy as np

from atoll.agent.simcluster.progress import Progress, saving_of
from atoll.core.engine.cycle import CycleLimits, plan
from atoll.core.engine.memo import Memo
from atoll.core.model.ids import AttemptId, JobId, attempt_number, job_of
from atoll.core.model.job import Queue
from atoll.core.model.plan import Eviction, GangPlacement, PendingJob, Plan, run_facts
from atoll.core.policies.interfaces import Policies
from atoll.core.state.ledger import Holding
from atoll.core.state.run_times import ended_run
from atoll.core.state.world import World
from atoll.sim.booked import Booked
from atoll.sim.fleet import Fleet, fragmentation, wanted_units
from atoll.sim.foretelling import Foretelling
from atoll.sim.record import Record
from atoll.sim.service.clock import START
from atoll.sim.typical import typical_tasks
from atoll.sim.work import Work, blocks_of, cpu_of, pending

SAMPLES: Final = 500
QUICK: Final = CycleLimits(max_placements=256, max_explained=0)
"""Nobody reads why jobs wait, and few start at the same moment."""
ENDS, ARRIVES, LOOKS = 0, 1, 2
"""Events at the same moment in the order in which they are dealt with."""


@dataclass(slots=True)
class _Running:
    placement: GangPlacement
    begun: float
    restart_s: float
    stopping: bool = False


@dataclass(slots=True)
class Driver:
    """One simulation. Times are seconds from its start."""

    fleet: Fleet
    policies: Policies
    seed: int = 0
    queues: Sequence[Queue] = ()
    limits: CycleLimits = field(default_factory=lambda: QUICK)
    on_progress: Callable[[int], None] | None = None
    """Told how many jobs have ended."""
    sample_s: float = 0.0
    """Time between two samples; 0: as makes SAMPLES of them before the last submit."""
    foretelling: Foretelling | None = None
    """Whether, and how, jobs are told when they will start."""
    booked: Booked | None = None
    world: World = field(default_factory=World)
    record: Record = field(default_factory=Record)
    plans: int = 0
    _now: float = 0.0
    _events: list[tuple[float, int, int, object]] = field(default_factory=list)
    _order: "count[int]" = field(default_factory=count)
    _memo: Memo = field(default_factory=Memo)
    _works: dict[JobId, Work] = field(default_factory=dict)
    _jobs: dict[JobId, PendingJob] = field(default_factory=dict)
    _progress: dict[JobId, Progress] = field(default_factory=dict)
    _running: dict[AttemptId, _Running] = field(default_factory=dict)
    _typical: tuple[tuple[float, int, int], ...] = ()
    _next_sample: float = 0.0

    def run(self, works: Iterable[Work], *, until: float = float("inf")) -> Record:
        """Submit, plan, run and end all; returns what happened. May be called once."""
        self._begin(sorted(works, key=lambda work: work.at))
        while self._events and self._events[0][0] <= until:
            self._advance(self._events[0][0])
            self._take_events()
            self._schedule()
        self.record.ended = until if self._events else self._now
        return self.record

    def _begin(self, works: Sequence[Work]) -> None:
        devices = self.fleet.has_devices
        self.record.unit = "device blocks" if devices else "milli-CPU"
        self.record.set_capacity(0.0, self.fleet.units)
        self.world.set_clusters(self.fleet.clusters)
        self.world.upsert_nodes(self.fleet.nodes)
        self.world.set_queues(self.queues)
        self._typical = typical_tasks(works)
        self.sample_s = self.sample_s or max(1.0, (works[-1].at if works else 0.0) / SAMPLES)
        for number, work in enumerate(works, start=1):
            self._works[JobId(number)] = work
            self._push(work.at, ARRIVES, JobId(number))
        for at in self.booked.times() if self.booked is not None else ():
            self._push(max(0.0, at - START), LOOKS, None)

    def _push(self, at: float, kind: int, what: object) -> None:
        heappush(self._events, (at, kind, next(self._order), what))

    def _advance(self, at: float) -> None:
        while self._next_sample <= at:
            self.record.sample(self._next_sample, self._fragmentation())
            self._next_sample += self.sample_s
        self._now = max(self._now, at)

    def _take_events(self) -> None:
        arrived: list[JobId] = []
        ended: list[AttemptId] = []
        while self._events and self._events[0][0] <= self._now:
            _, kind, _, what = heappop(self._events)
            if kind == ARRIVES and isinstance(what, int):
                arrived.append(JobId(what))
            elif kind == ENDS and isinstance(what, tuple) and self._is_due(*what):
                ended.append(what[0])
        self._submit(arrived)
        self._end(ended)
        if self.booked is not None:
            self.booked.step(self.world, START + self._now)

    def _submit(self, arrived: Sequence[JobId]) -> None:
        devices = self.fleet.has_devices
        for number in arrived:
            work = self._works[number]
            self._jobs[number] = pending(work, number, start=START)
            units = wanted_units(work.spec, devices=devices)
            self.record.submit(number, work, at=work.at, units=units)
        self.world.upsert_pending([self._jobs[number] for number in arrived])
        if self.foretelling is not None:
            self.foretelling.arrived(arrived)

    def _is_due(self, attempt: AttemptId, how: str) -> bool:
        running = self._running.get(attempt)
        return running is not None and (how == "PREEMPTED" or not running.stopping)

    def _end(self, ended: Sequence[AttemptId]) -> None:
        self.world.end_allocations(ended)
        back: list[PendingJob] = []
        for attempt in ended:
            running = self._running.pop(attempt)
            job = job_of(attempt)
            if running.stopping:
                back.append(self._stopped(job, attempt, running))
            else:
                self._finished(job, attempt, running)
        self.world.upsert_pending(back)
        if ended and self.on_progress is not None:
            self.on_progress(len(ended) - len(back))

    def _finished(self, job: JobId, attempt: AttemptId, running: _Running) -> None:
        useful = self._now - running.begun - running.restart_s
        self.record.stop(
            attempt, "FINISHED", at=self._now, useful_s=useful, restart_s=running.restart_s
        )
        placed = running.placement
        limit_s = placed.request.terms.time_limit_s
        ran_s = self._now - running.begun
        self.world.run_times.note([
            ended_run(placed.queue, placed.tasks, limit_s=limit_s, ran_s=ran_s)
        ])
        self.record.move(job, "RUNNING", "SUCCEEDED")
        self.record.finish(job, at=self._now)
        self.world.dependency_done(job)
        del self._jobs[job], self._works[job]
        self._progress.pop(job, None)

    def _stopped(self, job: JobId, attempt: AttemptId, running: _Running) -> PendingJob:
        before, ran = self._progress.get(job, Progress()), self._now - running.begun
        work = self._works[job]
        after = before.after(saving_of(work.spec), work.run_s, ran_s=ran)
        self._progress[job] = after
        self.record.stop(
            attempt,
            "PREEMPTED",
            at=self._now,
            useful_s=after.saved_s - before.saved_s,
            restart_s=min(ran, running.restart_s),
        )
        self.record.move(job, "RUNNING", "QUEUED")
        number = attempt_number(attempt)
        stopped = self._jobs[job]
        self._jobs[job] = replace(
            stopped,
            attempts=number,
            revision=stopped.revision + 2,
            preemptions=stopped.preemptions + 1,
        )
        return self._jobs[job]

    def _schedule(self) -> None:
        while self.world.has_work(START + self._now):
            made = self._plan()
            self._carry_out(made)
            if len(made.placements) < self.limits.max_placements:
                break
        if self.foretelling is not None:
            self.foretelling.look(self.world, self.policies, now=START + self._now)
        wakeup = self.world.next_wakeup(START + self._now)
        if wakeup is not None:
            self._push(wakeup - START, LOOKS, None)

    def _plan(self) -> Plan:
        now = START + self._now
        snapshot = self.world.freeze(now, self.limits.max_placements)
        rng = np.random.default_rng((self.seed, self.plans))
        self.plans += 1
        made = plan(snapshot, self.policies, now=now, rng=rng, limits=self.limits, memo=self._memo)
        self.world.note_waiting(snapshot, made)
        return made

    def _carry_out(self, made: Plan) -> None:
        placed = made.placements
        self.world.add_allocations([
            Holding(
                each.attempt,
                each.queue,
                each.cluster,
                each.tasks,
                run_facts(each, started_at=START + self._now),
            )
            for each in placed
        ])
        self.world.remove_pending([each.job for each in placed])
        if self.foretelling is not None:
            self.foretelling.started([each.job for each in placed], now=START + self._now)
        for each in placed:
            self._start(each)
        self.world.stopping([eviction.attempt for eviction in made.evictions])
        self.world.add_nominations(made.nominations, instead_of=made.released)
        for eviction in made.evictions:
            self._evict(eviction)

    def _start(self, placement: GangPlacement) -> None:
        job, work = placement.job, self._works[placement.job]
        progress = self._progress.get(job, Progress())
        saving = saving_of(work.spec)
        restart = progress.restart_s(saving)
        self._running[placement.attempt] = _Running(placement, self._now, restart)
        tasks = placement.tasks
        units = blocks_of(tasks) if self.fleet.has_devices else cpu_of(tasks)
        self.record.begin(placement.attempt, placement.cluster, at=self._now, units=units)
        self.record.move(job, "QUEUED", "RUNNING")
        self._push(
            self._now + progress.left_s(saving, work.run_s), ENDS, (placement.attempt, "FINISHED")
        )

    def _evict(self, eviction: Eviction) -> None:
        running = self._running.get(eviction.attempt)
        if running is None or running.stopping:
            return
        running.stopping = True
        job = job_of(eviction.attempt)
        self.record.evict([job])
        # A simulated run saves its work and goes at once: grace is the most that it may take.
        self._push(self._now, ENDS, (eviction.attempt, "PREEMPTED"))

    def _fragmentation(self) -> float:
        nodes = self.world.ledger.table.nodes
        rows = len(self.fleet.nodes)
        free = np.maximum(nodes.blocks_free[:rows], 0)
        return fragmentation(free, nodes.cpu_free[:rows], self._typical)
