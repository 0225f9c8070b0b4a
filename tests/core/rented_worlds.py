"""A shard with local nodes and rented machines, committed to at once; time moves by hand."""

from dataclasses import dataclass, field, replace

import numpy as np

from atoll.core.engine.cycle import CycleLimits, plan
from atoll.core.engine.verify import verify
from atoll.core.model.burst import (
    BurstPolicy,
    InstanceId,
    InstanceState,
    Market,
    Offer,
    Rental,
    node_names,
)
from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId, QueueName, job_of
from atoll.core.model.inventory import Cluster, ClusterState, Device, Node, NodeInventory
from atoll.core.model.plan import (
    GangRequest,
    GroupRequest,
    PendingJob,
    Plan,
    RunTerms,
    run_facts,
)
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.policies.registry import policies
from atoll.core.state.ledger import Holding
from atoll.core.state.world import World
from tests.core.worlds import GB, GIB, simple_nodes, simple_world

ANYBODY = BurstPolicy(None, allowed=True)
FIRST_RENTED = 100
"""Number of the node of instance 0; local ones have lower numbers."""
APART = 1000
"""Between the numbers of nodes of one instance."""


def machine(number: int, state: InstanceState = InstanceState.READY, **given: object) -> Rental:
    """Instance `number`: 2 H100s and 8 cores in a cluster of its own, at `number` dollars.

    `nodes`: so many of that in one.
    """
    offer = Offer(
        "cloud", "eu-1a", "eu", "small", Market.SPOT, 8000, 64 * GIB, "H100", 2, price=number
    )
    offer = replace(offer, nodes=int(str(given.pop("nodes", 1))))
    plain = Rental(
        InstanceId(number),
        ClusterName(f"burst-{number}"),
        state,
        offer,
        ready_at=300.0,
        give_up_at=900.0,
    )
    return replace(plain, **given)  # type: ignore[arg-type]


def job(number: int, gpus: int = 2, *, burst: bool = True, **given: object) -> PendingJob:
    """A job for some H100s; `tasks`, `firm`: never stopped for others."""
    shape = TaskShape(1000, 0, DeviceRequest("H100", gpus))
    tasks = int(str(given.pop("tasks", 1)))
    terms = RunTerms(preemptible=not given.pop("firm", False))
    request = GangRequest((GroupRequest(tasks, tasks, (shape,)),), terms=terms, burst=burst)
    plain = PendingJob(JobId(number), 1, QueueName("a"), 0, submitted_at=0.0, request=request)
    return replace(plain, **given)  # type: ignore[arg-type]


@dataclass
class Shard:
    """One local node with 2 H100s unless it is told otherwise."""

    nodes: int = 1
    limits: CycleLimits = field(default_factory=CycleLimits)
    world: World = field(init=False)
    told: set[AttemptId] = field(default_factory=set)
    """To stop."""

    def __post_init__(self) -> None:
        self.world = simple_world(simple_nodes(self.nodes, cpu=8, gpus=2))
        self.world.set_burst_policies([ANYBODY])

    def rent(self, *rentals: Rental, joined: bool | None = None) -> None:
        """Machines as the store tells of them; those that are READY have joined."""
        for rental in rentals:
            ready = rental.state is InstanceState.READY if joined is None else joined
            state = ClusterState.ACTIVE if ready else ClusterState.BOOTING
            cluster = Cluster(rental.cluster, state=state, inventory_number=int(ready))
            self.world.put_rentals([rental])
            self.world.set_clusters([cluster])
            self.world.upsert_nodes(nodes_of(rental, joined=ready))

    def submit(self, *jobs: PendingJob) -> None:
        self.world.upsert_pending(jobs)

    def cycle(self, now: float) -> Plan:
        made = plan(
            self.world.freeze(now),
            policies(order="priority_fifo"),
            now=now,
            rng=np.random.default_rng(0),
            limits=self.limits,
        )
        verify(made, self.world.ledger, now=now)
        return made

    def at(self, now: float) -> Plan:
        """A cycle, and what follows from it."""
        snapshot = self.world.freeze(now)
        made = self.cycle(now)
        self.world.note_waiting(snapshot, made)
        self.world.stopping(e.attempt for e in made.evictions)
        self.told.update(e.attempt for e in made.evictions)
        self.world.add_allocations([
            Holding(p.attempt, p.queue, p.cluster, p.tasks, run_facts(p, started_at=now))
            for p in made.placements
        ])
        self.world.remove_pending([p.job for p in made.placements])
        self.world.add_nominations(made.nominations, instead_of=made.released)
        return made

    def end(self, number: int) -> None:
        """A running job ends."""
        holdings = self.world.ledger.holdings
        self.world.end_allocations([a for a in holdings if job_of(a) == number])

    def where(self, number: int) -> str:
        """The cluster that a job runs on; empty: it does not run."""
        holdings = self.world.ledger.holdings.items()
        return next((held.cluster for a, held in holdings if job_of(a) == number), "")

    def held(self) -> dict[int, str]:
        """Clusters that are held, by job."""
        return {int(n.job): n.cluster for n in self.world.ledger.nominations.values()}


def node_of(rental: Rental, *, joined: bool) -> Node:
    """Its one node, as it is offered or as its agent reports it."""
    (node,) = nodes_of(rental, joined=joined)
    return node


def nodes_of(rental: Rental, *, joined: bool) -> list[Node]:
    """All of its nodes."""
    offer = rental.offer
    devices = tuple(Device(i, offer.kind, 80 * GB) for i in range(offer.devices))
    return [
        Node(
            NodeId(FIRST_RENTED + rental.instance + n * APART),
            rental.cluster,
            NodeInventory(name, offer.cpu_milli, offer.memory_bytes, devices),
            inventory_number=int(joined),
            revision=1 + int(joined),
        )
        for n, name in enumerate(node_names(rental.cluster, offer.nodes))
    ]


def places(made: Plan) -> dict[int, str]:
    """Clusters by the jobs that a plan places there."""
    return {int(p.job): str(p.cluster) for p in made.placements}
