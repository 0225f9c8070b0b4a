"""A shard with bookings on a virtual clock, and what is true of it by counting alone."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from atoll.core.engine.cycle import CycleLimits, plan
from atoll.core.engine.verify import verify
from atoll.core.model.booking import NodeShare, OccurrenceId, Owners, Window, owned_by
from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId, QueueName, job_of
from atoll.core.model.lifecycle import StopCause
from atoll.core.model.plan import (
    GangRequest,
    GroupRequest,
    PendingJob,
    Plan,
    RunTerms,
    TaskPlacement,
    run_facts,
)
from atoll.core.model.resources import DeviceGrant, DeviceRequest, TaskShape
from atoll.core.policies.registry import policies
from atoll.core.state.ledger import Holding
from atoll.core.state.world import World
from tests.core.worlds import simple_nodes, simple_world

CPU, GPUS = 8, 4
LEFT = NodeShare(NodeId(0), "", 4000, 0, (DeviceGrant(0, 100), DeviceGrant(1, 100)))
RIGHT = NodeShare(NodeId(0), "", 4000, 0, (DeviceGrant(2, 100), DeviceGrant(3, 100)))
WHOLE = NodeShare(NodeId(0), "", whole=True)


def window(
    number: int, start: float, end: float, shares: Iterable[tuple[int, NodeShare]], **more: object
) -> Window:
    """A window of booking `b<number>` for queue nlp: (node, share) pairs."""
    made = tuple(replace(s, node=NodeId(n), node_name=f"n{n}") for n, s in shares)
    plain = Window(
        OccurrenceId(number),
        f"b{number}",
        start,
        end,
        ClusterName("c1"),
        made,
        owners=Owners(queues=(QueueName("nlp"),)),
    )
    return replace(plain, **more)  # type: ignore[arg-type]


def job(
    number: int,
    queue: str = "a",
    *,
    cpu: float = 1,
    gpus: int = 0,
    tasks: int = 1,
    limit: float = 0.0,
    grace: float = 0.0,
    firm: bool = False,
    inside: str = "",
    marks: tuple[str, ...] = (),
    at: float = 0.0,
) -> PendingJob:
    """A job; `firm`: it is never stopped for others, `inside`: the booking that it asks for."""
    device = DeviceRequest("H100", gpus) if gpus else None
    shape = TaskShape(round(cpu * 1000), 0, device)
    terms = RunTerms(time_limit_s=limit, grace_s=grace, preemptible=not firm)
    groups = (GroupRequest(tasks, tasks, (shape,)),)
    request = GangRequest(groups, terms=terms, reservation=inside, marks=marks)
    return PendingJob(JobId(number), 1, QueueName(queue), 0, submitted_at=at, request=request)


@dataclass
class Shard:
    """Plans, commits at once, and lets runs that are told to stop do so after their grace."""

    nodes: int = 2
    limits: CycleLimits = field(default_factory=CycleLimits)
    world: World = field(init=False)
    ends: dict[AttemptId, float] = field(default_factory=dict)
    """When runs end; those that are not here run on."""
    jobs: dict[JobId, PendingJob] = field(default_factory=dict)
    plans: list[Plan] = field(default_factory=list)
    told: set[AttemptId] = field(default_factory=set)
    """To stop."""

    def __post_init__(self) -> None:
        self.world = simple_world(simple_nodes(self.nodes, cpu=CPU, gpus=GPUS))

    def book(self, *windows: Window) -> None:
        self.world.put_windows(windows)

    def submit(self, *jobs: PendingJob) -> None:
        self.jobs.update((each.id, each) for each in jobs)
        self.world.upsert_pending(jobs)

    def at(self, now: float) -> Plan:
        """Let all end that is over by now, then one cycle, whether it is worth it or not."""
        over = [attempt for attempt, end in self.ends.items() if end <= now]
        for attempt in sorted(over):
            del self.ends[attempt]
            self.end(attempt)
        return self.cycle(now)

    def end(self, attempt: AttemptId) -> None:
        held = self.world.ledger.holdings[attempt]
        self.world.end_allocation(attempt)
        if attempt in self.told and held.run is not None:
            again = self.jobs[held.run.job]
            self.submit(replace(again, attempts=again.attempts + 1, revision=again.revision + 1))

    def cycle(self, now: float) -> Plan:
        snapshot = self.world.freeze(now)
        rng = np.random.default_rng(0)
        fifo = policies(order="priority_fifo")
        made = plan(snapshot, fifo, now=now, rng=rng, limits=self.limits)
        verify(made, self.world.ledger, now=now)
        self.world.note_waiting(snapshot, made)
        self.world.stopping(e.attempt for e in made.evictions)
        self.told.update(e.attempt for e in made.evictions)
        for attempt in (e.attempt for e in made.evictions):
            run = self.world.ledger.holdings[attempt].run
            assert run is not None
            end = self.ends.get(attempt, float("inf"))
            self.ends[attempt] = min(now + run.terms.grace_s, end)
        self.world.add_allocations([
            Holding(p.attempt, p.queue, p.cluster, p.tasks, run_facts(p, started_at=now))
            for p in made.placements
        ])
        for placement in made.placements:
            limit = placement.request.terms.time_limit_s
            if limit:
                self.ends[placement.attempt] = now + limit
        self.world.remove_pending([p.job for p in made.placements])
        self.world.add_nominations(made.nominations, instead_of=made.released)
        self.plans.append(made)
        return made

    def running(self) -> list[int]:
        """Jobs that run."""
        return sorted(job_of(attempt) for attempt in self.world.ledger.holdings)

    def tasks(self, number: int) -> tuple[TaskPlacement, ...]:
        """Where a running job is."""
        holdings = self.world.ledger.holdings.items()
        return next(held.tasks for attempt, held in holdings if job_of(attempt) == number)


def placed(made: Plan) -> list[int]:
    return sorted(p.job for p in made.placements)


def stopped(made: Plan) -> list[int]:
    """Jobs that are told to stop for bookings."""
    booked = (e for e in made.evictions if e.cause is StopCause.BOOKING)
    return sorted(job_of(e.attempt) for e in booked)


def faults(shard: Shard, windows: Iterable[Window], now: float) -> Iterator[str]:
    """What is wrong with windows that are open: nobody's arithmetic but counting."""
    is_open = [w for w in windows if w.start <= now < w.end]
    by_node: dict[int, list[tuple[Window, NodeShare]]] = defaultdict(list)
    for each in is_open:
        for share in each.shares:
            by_node[share.node].append((each, share))
    for node, booked in by_node.items():
        yield from _node_faults(shard, node, booked)


def _node_faults(shard: Shard, node: int, booked: list[tuple[Window, NodeShare]]) -> Iterator[str]:
    strange = list(_strangers(shard, node, booked))
    for window_, share in booked:
        if share.whole and strange:
            yield f"{[n for n, _ in strange]} on n{node}, which {window_.booking} has"
    cpu = CPU * 1000 - sum(share.cpu_milli for _, share in booked)
    if cpu < sum(task.cpu_milli for _, task in strange):
        yield f"{[n for n, _ in strange]} leave too little CPU of n{node}"
    taken = [grant for _, share in booked for grant in share.devices]
    taken += [grant for _, task in strange for grant in task.devices]
    for index in range(GPUS):
        if sum(grant.blocks for grant in taken if grant.index == index) > 100:
            yield f"{[n for n, _ in strange]} have GPU {index} of n{node}"


def _strangers(
    shard: Shard, node: int, booked: list[tuple[Window, NodeShare]]
) -> Iterator[tuple[int, TaskPlacement]]:
    """Tasks on a node of jobs that own none of the windows there, and are not lent to."""
    for holding in shard.world.ledger.holdings.values():
        run = holding.run
        assert run is not None
        owns = any(owned_by(w.owners, holding.queue, run.marks) for w, _ in booked)
        lent = run.terms.preemptible and any(w.lends for w, _ in booked)
        if not owns and not lent:
            yield from ((run.job, task) for task in holding.tasks if task.node == node)
