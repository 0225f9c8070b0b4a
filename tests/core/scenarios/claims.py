"""A small shard on which cycles run, victims end and queue again, and nothing finishes."""

from dataclasses import dataclass, field, replace

import numpy as np

from atoll.core.engine.cycle import CycleLimits, plan
from atoll.core.engine.verify import verify
from atoll.core.model.ids import (
    AttemptId,
    ClusterName,
    JobId,
    NodeId,
    QueueName,
    Tenant,
    attempt_id,
    job_of,
)
from atoll.core.model.inventory import Cluster, Node
from atoll.core.model.job import Queue
from atoll.core.model.plan import (
    GangRequest,
    GroupRequest,
    PendingJob,
    Plan,
    RunFacts,
    RunTerms,
    TaskPlacement,
    run_facts,
)
from atoll.core.model.resources import DeviceGrant, DeviceRequest, TaskShape
from atoll.core.model.spec import Topology
from atoll.core.policies.fair_share import FairShareSettings
from atoll.core.policies.registry import policies
from atoll.core.state.ledger import Holding
from atoll.core.state.world import World

from .. import worlds

PLAIN = RunTerms()


def gpus(
    count: int, *, tasks: int = 1, terms: RunTerms = PLAIN, topology: Topology | None = None
) -> GangRequest:
    shape = TaskShape(0, 0, DeviceRequest("H100", count))
    return GangRequest((GroupRequest(tasks, tasks, (shape,)),), topology, terms=terms)


def queue(
    name: str, deserved: int = 0, *, limit: int = 0, weight: float = 1.0, preempts: bool = True
) -> Queue:
    """`deserved` and `limit` in devices."""
    share = (("H100", deserved * 100),) if deserved else ()
    return Queue(
        QueueName(name),
        Tenant(""),
        weight=weight,
        deserved=share,
        device_limit=limit * 100,
        preempts=preempts,
    )


@dataclass
class Shard:
    """What a leader does, without a store: plans are true at once, stops when `end_victims`."""

    nodes: list[Node]
    queues: tuple[Queue, ...] = ()
    now: float = 1000.0
    order: str = "priority_fifo"
    shares: FairShareSettings | None = None
    world: World = field(default_factory=World)
    jobs: dict[JobId, PendingJob] = field(default_factory=dict)
    running: dict[JobId, AttemptId] = field(default_factory=dict)
    stopping: set[AttemptId] = field(default_factory=set)
    plans: list[Plan] = field(default_factory=list)
    next_job: int = 1

    def __post_init__(self) -> None:
        clusters = {node.cluster for node in self.nodes} | {ClusterName("c1")}
        self.world.set_clusters([Cluster(name) for name in sorted(clusters)])
        self.world.upsert_nodes(self.nodes)
        self.world.set_queues(self.queues)

    def submit(self, name: str, request: GangRequest, *, priority: int = 0) -> JobId:
        """One job, later than all before it."""
        job = JobId(self.next_job)
        self.next_job += 1
        self.now += 1
        pending = PendingJob(
            job, 1, QueueName(name), priority, submitted_at=self.now, request=request
        )
        self.jobs[job] = pending
        self.world.upsert_pending([pending])
        return job

    def put(self, name: str, node: int, device: int, *, terms: RunTerms = PLAIN) -> JobId:
        """A job of one device that runs there, whatever a policy says."""
        job = self.submit(name, gpus(1, terms=terms))
        grant = DeviceGrant(device, blocks=100)
        task = TaskPlacement(0, 0, NodeId(node), f"n{node}", 0, 0, devices=(grant,))
        attempt = attempt_id(job, 1)
        facts = RunFacts(job, started_at=self.now, terms=terms)
        holding = Holding(attempt, QueueName(name), ClusterName("c1"), (task,), facts)
        self.world.add_allocations([holding])
        self.world.remove_pending([job])
        self.running[job] = attempt
        return job

    def cycle(self) -> Plan:
        """Plan, verify, and let it be true."""
        self.now += 1
        snapshot = self.world.freeze(self.now)
        made = plan(
            snapshot,
            policies(order=self.order, shares=self.shares),
            now=self.now,
            rng=np.random.default_rng(0),
            limits=CycleLimits(max_explained=0),
        )
        verify(made, self.world.ledger)
        self.world.note_waiting(snapshot, made)
        self.commit(made)
        self.plans.append(made)
        return made

    def commit(self, made: Plan) -> None:
        holdings = [
            Holding(p.attempt, p.queue, p.cluster, p.tasks, run_facts(p, started_at=self.now))
            for p in made.placements
        ]
        self.world.add_allocations(holdings)
        self.world.remove_pending([p.job for p in made.placements])
        self.running.update((p.job, p.attempt) for p in made.placements)
        self.stopping.update(e.attempt for e in made.evictions)
        self.world.stopping([e.attempt for e in made.evictions])
        self.world.add_nominations(made.nominations, instead_of=made.released)

    def end(self, job: JobId) -> None:
        """A run finishes."""
        self.world.end_allocations([self.running.pop(job)])

    def end_victims(self) -> list[JobId]:
        """Those told to stop have stopped, and queue again at their places."""
        ended = sorted(self.stopping)
        self.stopping.clear()
        self.world.end_allocations(ended)
        back = []
        for attempt in ended:
            job = job_of(attempt)
            del self.running[job]
            before = self.jobs[job]
            self.jobs[job] = replace(
                before,
                revision=before.revision + 2,
                attempts=before.attempts + 1,
                preemptions=before.preemptions + 1,
            )
            back.append(job)
        self.world.upsert_pending([self.jobs[job] for job in back])
        return back

    def settle(self, most: int = 100) -> int:
        """Cycles until nothing happens any more; how many runs were stopped on the way."""
        evicted = 0
        for _ in range(most):
            made = self.cycle()
            evicted += len(made.evictions)
            waiting = self.stopping or self.world.ledger.nominations
            if made.empty and not waiting:
                return evicted
            if not waiting:
                # Immunity must not be what ends it.
                self.now += 3600
            self.end_victims()
        raise AssertionError(f"still not settled after {most} cycles, {evicted} evictions")


def stopped(made: Plan) -> list[int]:
    return sorted(job_of(e.attempt) for e in made.evictions)


def nodes(count: int, gpus: int = 8) -> list[Node]:
    return worlds.simple_nodes(count, gpus=gpus)
