"""Fills a fleet, keeps it full while jobs come and go, and times the parts of every cycle."""

import os
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from unittest import mock

import numpy as np

from atoll.core.engine import cycle
from atoll.core.engine.cycle import CycleLimits, plan
from atoll.core.engine.kernels import warm
from atoll.core.engine.memo import Memo
from atoll.core.engine.verify import verify
from atoll.core.model.ids import AttemptId, ClusterName, JobId, QueueName
from atoll.core.model.inventory import Cluster
from atoll.core.model.plan import GangPlacement, PendingJob, run_facts
from atoll.core.policies.registry import policies
from atoll.core.state.ledger import Holding
from atoll.core.state.world import World
from atoll.runtime.garbage import settle
from tools.bench_core_kernels import BatchClock
from tools.bench_core_shapes import DEVICES, kinds, node

QUEUE = QueueName("bench")
CLUSTERS = 4
FULL = 0.9
MOST_JOBS = 4096
PART = 10
"""A cycle takes at most one of so many running jobs."""
TICK_S = 0.1
SAY_EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class Scenario:
    """One size."""

    nodes: int
    operations: int
    """Placements and releases together, at least."""


@dataclass(slots=True)
class Run:
    """A job that holds capacity."""

    attempt: AttemptId
    kind: int
    tasks: int


class Bench:
    """A world that is driven as the leader drives it."""

    full = FULL
    """How full the fleet is to be."""

    def __init__(self, nodes: int) -> None:
        self.kinds = kinds()
        self.size = nodes * DEVICES
        self.world = World()
        self.clock = BatchClock()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.cpu: defaultdict[str, float] = defaultdict(float)
        self.runs: list[Run] = []
        self.devices = 0.0
        self._memo = Memo()
        self._rng = np.random.default_rng(7)
        self._policies = policies()
        self._ids = count(1)
        self._kind: dict[JobId, int] = {}
        self._now = 0.0
        self._furnish(nodes)

    def fill(self) -> None:
        """Let jobs of all shapes come until the fleet is as full as it is to be."""
        placed = 1
        while placed:
            missing = self.full * self.size - self.devices
            drawn = self._rng.integers(len(self.kinds), size=MOST_JOBS)
            asked = np.cumsum([self.kinds[number].devices for number in drawn.tolist()])
            self.submit(drawn[asked <= missing].tolist())
            placed = self.cycle(MOST_JOBS)

    def exchange(self, jobs: int) -> tuple[int, int]:
        """End so many jobs, submit their like, and place what fits: tasks placed and released."""
        ended, released = self._release(jobs)
        self.submit(ended)
        return self.cycle(MOST_JOBS), released

    def submit(self, numbers: Sequence[int]) -> None:
        """Queue jobs of these shapes, in this order."""
        ids = [JobId(next(self._ids)) for _ in numbers]
        self._kind.update(zip(ids, numbers, strict=True))
        jobs = [
            PendingJob(job, 1, QUEUE, 0, submitted_at=self._now, request=self.kinds[number].request)
            for job, number in zip(ids, numbers, strict=True)
        ]
        with self._timed("submit"):
            self.world.upsert_pending(jobs)

    def cycle(self, limit: int) -> int:
        """One cycle; how many tasks were placed."""
        self._now += TICK_S
        with self._timed("freeze"):
            snapshot = self.world.freeze(self._now, limit)
        with self._timed("plan"):
            made = plan(
                snapshot,
                self._policies,
                now=self._now,
                rng=self._rng,
                limits=CycleLimits(max_placements=limit),
                memo=self._memo,
            )
        with self._timed("verify"):
            verify(made, self.world.ledger)
        with self._timed("take note"):
            self.world.add_allocations([self._holding(p) for p in made.placements])
            self.world.remove_pending([p.job for p in made.placements])
            self.world.note_waiting(snapshot, made)
        return sum(map(self._ran, made.placements))

    def _furnish(self, nodes: int) -> None:
        # Each form gets as many nodes as it asks for.
        sliced = sum(kind.devices for kind in self.kinds if kind.sliced)
        step = nodes // max(1, round(nodes * sliced / sum(kind.devices for kind in self.kinds)))
        names = [ClusterName(f"c{i}") for i in range(CLUSTERS)]
        self.world.set_clusters([Cluster(name) for name in names])
        self.world.upsert_nodes([
            node(number, names[number * CLUSTERS // (nodes + 1)], sliced=number % step == 0)
            for number in range(1, nodes + 1)
        ])

    def _holding(self, placement: GangPlacement) -> Holding:
        facts = run_facts(placement, started_at=self._now)
        return Holding(
            placement.attempt, placement.queue, placement.cluster, placement.tasks, facts
        )

    def _ran(self, placement: GangPlacement) -> int:
        kind = self._kind.pop(placement.job)
        self.runs.append(Run(placement.attempt, kind, len(placement.tasks)))
        self.devices += self.kinds[kind].devices
        return len(placement.tasks)

    def _release(self, jobs: int) -> tuple[list[int], int]:
        # The last one takes the place of one that goes.
        gone = []
        for at in np.sort(self._rng.choice(len(self.runs), jobs, replace=False))[::-1].tolist():
            gone.append(self.runs[at])
            last = self.runs.pop()
            if at < len(self.runs):
                self.runs[at] = last
        self.devices -= sum(self.kinds[run.kind].devices for run in gone)
        with self._timed("release"):
            self.world.end_allocations([run.attempt for run in gone])
        return [run.kind for run in gone], sum(run.tasks for run in gone)

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        start, cpu = time.perf_counter(), time.process_time()
        yield
        self.seconds[part] += time.perf_counter() - start
        self.cpu[part] += time.process_time() - cpu


def measure(scenario: Scenario) -> dict[str, object]:
    """All numbers of one size. Takes the whole process onto one core."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    warm()
    bench = Bench(scenario.nodes)
    bench.fill()
    # As a leader does once it has taken over.
    settle()
    _say(scenario, bench, "filled")
    jobs = max(1, min(MOST_JOBS, len(bench.runs) // PART))
    with mock.patch.object(cycle, "run", bench.clock.run):
        # The clock's own loop is compiled now.
        bench.exchange(jobs)
        bench.seconds.clear()
        bench.cpu.clear()
        bench.clock.clear()
        placed = released = cycles = 0
        said = time.perf_counter()
        while placed + released < scenario.operations:
            more, less = bench.exchange(jobs)
            placed, released, cycles = placed + more, released + less, cycles + 1
            if time.perf_counter() - said > SAY_EVERY_S:
                said = time.perf_counter()
                _say(scenario, bench, f"{placed} placed, {released} released")
    submitting = bench.seconds.pop("submit")
    bench.cpu.pop("submit")
    seconds, cpu = sum(bench.seconds.values()), sum(bench.cpu.values())
    numbers = {
        "placements_per_s": round(placed / seconds),
        "placements_per_cpu_s": round(placed / cpu),
        **bench.clock.percentiles(),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "cpu_us_per_placement": {k: round(s / placed * 1e6, 2) for k, s in bench.cpu.items()},
        "submit_us_per_job": round(submitting / (cycles * jobs) * 1e6, 2),
        "placed": placed,
        "released": released,
        "cycles": cycles,
        "jobs_per_cycle": jobs,
        "running_jobs": len(bench.runs),
        "full": round(bench.devices / bench.size, 3),
    }
    _say(scenario, bench, f"{numbers['placements_per_s']} placements/s, {numbers}")
    return numbers


def _say(scenario: Scenario, bench: Bench, what: str) -> None:
    full = f"{bench.devices / bench.size:.1%} full, {len(bench.runs)} jobs"
    print(f"{scenario.nodes} nodes: {what}; {full}", file=sys.stderr, flush=True)
