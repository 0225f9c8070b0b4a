"""The order of the queue, against one that compares everything anew at every step."""

from collections import defaultdict
from dataclasses import dataclass, replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.core.engine.cycle import CycleLimits, plan
from atoll.core.model.ids import JobId, QueueName, Tenant
from atoll.core.model.job import Queue
from atoll.core.model.plan import GangRequest, GroupRequest, PendingJob, Plan, RunTerms
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.policies.factors import priority_factors, shares
from atoll.core.policies.fair_share import FairShare, FairShareSettings
from atoll.core.policies.registry import policies
from atoll.core.state.world import World
from tests.core.worlds import commit, simple_nodes, simple_world

NAMES = ("a", "a.x", "a.y", "a.y.1", "b", "b.x", "c")
KIND = "H100"
DEFAULT = FairShareSettings()


@dataclass(frozen=True)
class Case:
    queues: tuple[Queue, ...]
    jobs: tuple[PendingJob, ...]
    gpus: int


def devices(count: int, *, tasks: int = 1, limit: float = 0.0) -> GangRequest:
    shape = TaskShape(0, 0, DeviceRequest(KIND, count))
    return GangRequest((GroupRequest(tasks, tasks, (shape,)),), terms=RunTerms(limit))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    queues = tuple(
        Queue(
            QueueName(name),
            Tenant(""),
            weight=draw(st.sampled_from((1.0, 2.0, 0.5))),
            deserved=((KIND, draw(st.sampled_from((50, 100, 200, 400)))),),
        )
        for name in draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=5))
    )
    jobs = tuple(
        PendingJob(
            JobId(number),
            1,
            QueueName(draw(st.sampled_from(NAMES))),
            priority=draw(st.sampled_from((0, 0, 1))),
            submitted_at=float(draw(st.integers(0, 3)) * 3600),
            request=draw(st.sampled_from((devices(1), devices(2), devices(1, tasks=2)))),
            guaranteed=draw(st.sampled_from((False, False, False, True))),
        )
        for number in range(1, draw(st.integers(1, 14)) + 1)
    )
    return Case(queues, jobs, draw(st.integers(1, 8)))


def world_of(case: Case) -> World:
    world = simple_world(simple_nodes(2, gpus=case.gpus), case.jobs)
    world.set_queues(case.queues)
    return world


def planned(world: World, settings: FairShareSettings = DEFAULT, *, now: float = 20_000.0) -> Plan:
    chosen = replace(policies(), order=FairShare(settings))
    limits = CycleLimits(max_explained=0)
    return plan(world.freeze(now), chosen, now=now, rng=np.random.default_rng(0), limits=limits)


class Slow:
    """The queue tree with everything summed up anew for every comparison."""

    def __init__(self, case: Case) -> None:
        self.rows = {str(queue.name): queue for queue in case.queues}
        self.names = {name for job in case.jobs for name in self.path(str(job.queue))}
        self.names |= {name for queue in self.rows for name in self.path(queue)}
        self.held: dict[str, float] = defaultdict(float)
        self.whole = 2.0 * case.gpus

    @staticmethod
    def path(queue: str) -> list[str]:
        parts = queue.split(".")
        return [".".join(parts[: n + 1]) for n in range(len(parts))]

    def deserved(self, name: str) -> float:
        if name in self.rows:
            return sum(blocks for _, blocks in self.rows[name].deserved) / 100
        return sum(self.deserved(child) for child in self.children(name))

    def children(self, name: str) -> list[str]:
        return sorted(n for n in self.names if n.rpartition(".")[0] == name and n)

    def size(self, job: PendingJob) -> float:
        group = job.request.groups[0]
        device = group.shapes[0].device
        assert device is not None
        return float(group.count * device.count)

    def first(self, jobs: list[PendingJob]) -> PendingJob:
        """Descends from the root: the best child, its best child, and so on."""
        guaranteed = [job for job in jobs if job.guaranteed]
        return self._below("", guaranteed or jobs)

    def _below(self, name: str, jobs: list[PendingJob]) -> PendingJob:
        """The first job below a vertex, all of whose candidates are given."""
        options = []
        own = [job for job in jobs if str(job.queue) == name]
        children = self.children(name)
        waiting = [c for c in children if any(c in self.path(str(job.queue)) for job in jobs)]
        if own and not children:
            return min(own, key=self._in_queue)
        if own and not waiting and not self._is_inner(name):
            return min(own, key=self._in_queue)
        if own:
            best = min(own, key=self._in_queue)
            held = self.held[name] - sum(self.held[child] for child in children)
            left = self.deserved(name) - sum(self.deserved(child) for child in children)
            options.append((self._stand(held, max(0.0, left), 1.0, best), best))
        for child in waiting:
            best = self._below(child, [j for j in jobs if child in self.path(str(j.queue))])
            weight = self.rows[child].weight if child in self.rows else 1.0
            options.append((
                self._stand(self.held[child], self.deserved(child), weight, best),
                best,
            ))
        return min(options, key=lambda option: (*option[0], *self._in_queue(option[1])))[1]

    def _is_inner(self, name: str) -> bool:
        return bool(self.children(name))

    def _stand(
        self, held: float, deserved: float, weight: float, job: PendingJob
    ) -> tuple[int, float]:
        if held < deserved:
            return 0, round(held / deserved, 9)
        return 1, round((held + self.size(job)) / self.whole / weight, 9)

    def _in_queue(self, job: PendingJob) -> tuple[float, ...]:
        size = DEFAULT.size_s * np.log2(max(self.size(job), 1.0))
        return -job.priority, job.submitted_at - float(size), job.submitted_at, job.id

    def take(self, job: PendingJob) -> None:
        for name in self.path(str(job.queue)):
            self.held[name] += self.size(job)


@given(cases())
@settings(max_examples=200)
def test_jobs_are_placed_in_the_order_that_is_worked_out_anew_after_each(case: Case) -> None:
    made = [p.job for p in planned(world_of(case)).placements]
    slow, waiting = Slow(case), list(case.jobs)
    blocked: set[tuple[str, GangRequest, int]] = set()
    placed: list[int] = []
    while left := [j for j in waiting if (str(j.queue), j.request, j.priority) not in blocked]:
        job = slow.first(left)
        if job.id in made:
            placed.append(job.id)
            slow.take(job)
            waiting.remove(job)
        else:
            blocked.add((str(job.queue), job.request, job.priority))
    assert placed == made


@given(cases(), st.randoms())
def test_the_order_of_arrival_does_not_matter(case: Case, random: Random) -> None:
    jobs = list(case.jobs)
    random.shuffle(jobs)
    shuffled = Case(case.queues[::-1], tuple(jobs), case.gpus)
    ours, theirs = planned(world_of(case)), planned(world_of(shuffled))
    assert [p.job for p in ours.placements] == [p.job for p in theirs.placements]


@given(cases())
def test_what_a_job_lacks_comes_from_nobody_below_what_it_deserves(case: Case) -> None:
    world = world_of(case)
    made = planned(world)
    commit(world, made)
    found = world.freeze(30_000.0).shares
    free = 200 * case.gpus - sum(len(t.devices) * 100 for p in made.placements for t in p.tasks)
    if free == 0 or not made.placements:
        return
    # With devices left, nobody waits who asks for one device alone.
    assert found.held[0, 2:].sum() == (200 * case.gpus - free) * 56
    waiting = [j for j in case.jobs if j.id not in {p.job for p in made.placements}]
    assert all(job.request != devices(1) for job in waiting)


def queue_of_two(
    first: PendingJob, second: PendingJob, settings: FairShareSettings = DEFAULT
) -> list[int]:
    world = simple_world(simple_nodes(1, gpus=1), (first, second))
    return [p.job for p in planned(world, settings).placements]


def job(number: int, **more: object) -> PendingJob:
    base = PendingJob(JobId(number), 1, QueueName("a"), 0, submitted_at=0.0, request=devices(1))
    return replace(base, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("first", "second", "wins"),
    [
        (job(1), job(2, priority=1), 2),
        (job(1), job(2, submitted_at=10.0), 1),
        (job(1), job(2, guaranteed=True), 2),
        (job(1), job(2, guaranteed=True, request=devices(1, limit=5.0)), 2),
        (job(1), job(2, preemptions=1, submitted_at=10.0), 2),
        (job(1), job(2, preemptions=1, submitted_at=10.0, request=devices(1, limit=5.0)), 2),
        (
            job(1),
            job(2, deadline_at=20_100.0, submitted_at=10.0, request=devices(1, limit=50.0)),
            2,
        ),
        (
            job(1),
            job(2, deadline_at=9e9, submitted_at=10.0, request=devices(1, limit=50.0)),
            1,
        ),
    ],
)
def test_inside_a_queue(first: PendingJob, second: PendingJob, wins: int) -> None:
    assert queue_of_two(first, second) == [wins]


def test_a_switch_takes_a_factor_out() -> None:
    early, late = job(1), job(2, preemptions=1, submitted_at=10.0, request=devices(1, limit=5.0))
    assert queue_of_two(early, late, replace(DEFAULT, preempted_s=0.0)) == [1]


def test_past_use_decides_between_queues_when_it_counts() -> None:
    jobs = [job(1, queue=QueueName("a")), job(2, queue=QueueName("b"))]
    for history, wins in ((0.0, 1), (0.5, 2)):
        world = simple_world(simple_nodes(1, gpus=1), [job(9, queue=QueueName("a"))])
        commit(world, planned(world))
        world.freeze(50_000.0)
        world.end_allocations(list(world.ledger.holdings))
        world.upsert_pending(jobs)
        made = planned(world, replace(DEFAULT, history=history), now=50_001.0)
        assert [p.job for p in made.placements] == [wins]


def test_every_factor_of_a_job_can_be_seen() -> None:
    queues = (Queue(QueueName("org.a"), Tenant(""), deserved=((KIND, 100),)),)
    one = job(1, queue=QueueName("org.a"), priority=3, preemptions=2, deadline_at=100_000.0)
    world = simple_world(simple_nodes(1, gpus=4), (one,))
    world.set_queues(queues)
    chosen = policies(order="fair_share")
    found = priority_factors(world.freeze(7200.0), one, chosen, now=7200.0)
    told = {(f.queue, f.name): f.value for f in found}
    assert told["org", "below_deserved"] == told["org.a", "below_deserved"] == 1.0
    assert told["", "priority"] == 3.0
    assert told["", "age"] == 7200.0
    assert told["", "preempted"] == 2 * 3600.0
    assert told["", "total"] == sum(
        told["", name] for name in ("age", "size", "deadline", "preempted")
    )
    commit(world, planned(world, now=7200.0))
    after = priority_factors(world.freeze(9000.0), one, chosen, now=9000.0)
    told = {(f.queue, f.name): f.value for f in after}
    assert told["org.a", "below_deserved"] == 0.0
    # One device held and one asked for, of four.
    assert told["org.a", "share"] == pytest.approx(0.5)
    rows = {row.queue: row for row in shares(world.freeze(9000.0), chosen)}
    assert rows["org"].kinds == rows["org.a"].kinds
    assert (rows["org"].kinds[0].held, rows["org"].kinds[0].deserved) == (100, 100)
    assert rows["org"].dominant_share == pytest.approx(0.25)
    assert 0 < rows["org"].past_share < 0.25
