"""Random worlds and queues, small enough to be full and odd enough to be interesting."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from atoll.core.engine.cycle import CycleLimits, plan
from atoll.core.model.ids import ClusterName, JobId, NodeId, QueueName, Tenant
from atoll.core.model.inventory import Cluster, Device, LocalUse, Node, NodeInventory
from atoll.core.model.job import Queue
from atoll.core.model.plan import GangRequest, GroupRequest, PendingJob, Plan, run_facts
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.model.spec import AntiAffinity, Spread, Topology
from atoll.core.policies.registry import policies
from atoll.core.state.ledger import Holding
from atoll.core.state.snapshot import Snapshot
from atoll.core.state.world import World

GIB = 1 << 30
GB = 10**9
KINDS = (("A100", 40 * GB), ("H100", 80 * GB))
ZONES = ((), (("zone", "a"),), (("disk", "ssd"), ("zone", "a")), (("zone", "b"),))
QUEUES = tuple(QueueName(name) for name in ("a", "a.x", "a.y", "b"))


@dataclass(frozen=True)
class Given:
    """What a random case starts from."""

    clusters: tuple[Cluster, ...]
    nodes: tuple[Node, ...]
    queues: tuple[Queue, ...]
    jobs: tuple[PendingJob, ...]


def devices() -> st.SearchStrategy[tuple[Device, ...]]:
    one = st.tuples(
        st.sampled_from(KINDS),
        st.sampled_from((False, False, True)),
        st.sampled_from((True, True, True, False)),
        st.sampled_from((False, False, True)),
        st.sampled_from((False, False, False, True)),
    )
    several = st.lists(one, max_size=4)
    return several.map(lambda made: tuple(_device(i, *each) for i, each in enumerate(made)))


def _device(
    index: int, kind: tuple[str, int], mig: bool, healthy: bool, layout: bool, either: bool
) -> Device:
    small, large = ("1g.5gb", "3g.20gb") if kind[0] == "A100" else ("1g.10gb", "3g.40gb")
    static = ((small, 0, "u0"), (small, 6, "u6"), (large, 4, "u4")) if mig and layout else ()
    return Device(
        index,
        kind[0],
        kind[1],
        healthy=healthy,
        mig=mig,
        mig_instances=static,
        mig_dynamic=either,
    )


@st.composite
def nodes(draw: st.DrawFn, number: int) -> Node:
    cluster = draw(st.sampled_from(("c1", "c1", "c2")))
    made = draw(devices())
    local = LocalUse(
        cpu_milli=draw(st.sampled_from((0, 0, 1000))),
        blocks=draw(st.sampled_from(((), ((0, 25),)))) if made else (),
    )
    rack = draw(st.sampled_from(("r1", "r2", "")))
    inventory = NodeInventory(
        name=f"n{number}",
        cpu_milli=draw(st.integers(0, 8)) * 1000,
        memory_bytes=draw(st.integers(0, 8)) * GIB,
        devices=made,
        labels=draw(st.sampled_from(ZONES)),
        domains=(("block", "b1"), ("rack", rack)) if rack else (),
        up=draw(st.sampled_from((True, True, True, False))),
        local_use=local,
    )
    return Node(
        NodeId(number),
        ClusterName(cluster),
        inventory,
        cordoned=draw(st.sampled_from((False, False, False, True))),
    )


def device_requests() -> st.SearchStrategy[DeviceRequest | None]:
    kinds = st.sampled_from(("A100", "H100", "B200", ""))
    profiles = st.sampled_from(("1g.5gb", "1g.10gb", "3g.40gb", "2g.20gb", "1g.10gb+me", "9g.1gb"))
    return st.one_of(
        st.none(),
        st.builds(DeviceRequest, kinds, st.integers(1, 3)),
        st.builds(
            lambda kind, b: DeviceRequest(kind, 1, blocks=b),
            kinds,
            st.sampled_from((1, 25, 50, 99)),
        ),
        st.builds(
            lambda kind, gb: DeviceRequest(kind, 1, blocks=0, memory_bytes=gb * GB),
            kinds,
            st.sampled_from((1, 13, 40, 41, 90)),
        ),
        st.builds(
            lambda kind, p, n: DeviceRequest(kind, n, profile=p), kinds, profiles, st.integers(1, 3)
        ),
    )


def shapes() -> st.SearchStrategy[TaskShape]:
    return st.builds(
        TaskShape,
        cpu_milli=st.integers(0, 4).map(lambda n: n * 1000),
        memory_bytes=st.integers(0, 3).map(lambda n: n * GIB),
        device=device_requests(),
        labels=st.sampled_from(((), (), (), (("zone", "a"),), (("zone", "c"),))),
        labels_not=st.sampled_from(((), (), (), (("zone", "a"),), (("disk", ""),))),
    )


@st.composite
def groups(draw: st.DrawFn) -> GroupRequest:
    count = draw(st.sampled_from((1, 1, 1, 2, 3)))
    least = draw(st.integers(1, count))
    return GroupRequest(
        count,
        least,
        tuple(draw(st.lists(shapes(), min_size=1, max_size=2, unique=True))),
        draw(st.sampled_from((None, None, None, Spread("node", 1), Spread("rack", 1)))),
    )


def requests() -> st.SearchStrategy[GangRequest]:
    topologies = st.sampled_from((
        None,
        None,
        None,
        Topology("rack"),
        Topology("rack", required=False),
        Topology("row"),
    ))
    return st.builds(
        lambda made, topology, guard, apart: GangRequest(
            tuple(made), topology, needs_guard=guard, anti_affinity=apart
        ),
        st.lists(groups(), min_size=1, max_size=2),
        topologies,
        st.sampled_from((False, False, False, True)),
        st.sampled_from((None, None, AntiAffinity("x"), AntiAffinity("x", "rack"))),
    )


def singles() -> st.SearchStrategy[GangRequest]:
    return st.lists(shapes(), min_size=1, max_size=2, unique=True).map(
        lambda made: GangRequest((GroupRequest(1, 1, tuple(made)),))
    )


@st.composite
def givens(
    draw: st.DrawFn, asked: st.SearchStrategy[GangRequest] | None = None, jobs: int = 12
) -> Given:
    limits = draw(st.sampled_from(((), (Queue(QUEUES[0], Tenant(""), device_limit=150),))))
    kinds = draw(st.lists(requests() if asked is None else asked, min_size=1, max_size=4))
    queue = tuple(
        PendingJob(
            JobId(number),
            revision=1,
            queue=draw(st.sampled_from(QUEUES)),
            priority=draw(st.sampled_from((0, 0, 1))),
            submitted_at=float(draw(st.integers(0, 3))),
            request=draw(st.sampled_from(kinds)),
        )
        for number in range(1, draw(st.integers(1, jobs)) + 1)
    )
    made = tuple(draw(nodes(number)) for number in range(1, draw(st.integers(1, 7)) + 1))
    clusters = (Cluster(ClusterName("c1")), Cluster(ClusterName("c2"), can_guard=True))
    return Given(clusters, made, limits, queue)


def world_of(given: Given) -> World:
    world = World()
    world.set_clusters(given.clusters)
    world.set_queues(given.queues)
    world.upsert_nodes(given.nodes)
    world.upsert_pending(given.jobs)
    return world


def teach(world: World, case: Given) -> None:
    """Let the world take the case's tasks for a large workload, so that policies rely on it."""
    groups = (group for job in case.jobs for group in job.request.groups)
    world.workload.give((group.shapes, 1000 * group.count) for group in groups)


def planned(snapshot: Snapshot, *, most: int = 4096) -> Plan:
    return plan(
        snapshot,
        policies(order="priority_fifo"),
        now=snapshot.now,
        rng=np.random.default_rng(0),
        limits=CycleLimits(max_placements=most),
    )


def holdings(made: Plan) -> list[Holding]:
    return [
        Holding(p.attempt, p.queue, p.cluster, p.tasks, run_facts(p, started_at=0.0))
        for p in made.placements
    ]


def commit(world: World, made: Plan) -> None:
    """Take note of a plan as the leader does after its commit."""
    world.add_allocations(holdings(made))
    world.remove_pending([p.job for p in made.placements])


def simple_nodes(count: int, **amounts: int) -> list[Node]:
    """Nodes n1, n2 ... of cluster c1 with `cpu` cores, 64 GiB and `gpus` H100."""
    made = tuple(Device(i, "H100", 80 * GB) for i in range(amounts.get("gpus", 0)))
    return [
        Node(
            NodeId(number),
            ClusterName("c1"),
            NodeInventory(f"n{number}", amounts.get("cpu", 8) * 1000, 64 * GIB, made),
        )
        for number in range(1, count + 1)
    ]


def simple_job(number: int, request: GangRequest, *, at: float | None = None) -> PendingJob:
    submitted_at = float(number) if at is None else at
    return PendingJob(JobId(number), 1, QUEUES[0], 0, submitted_at=submitted_at, request=request)


def single(shape: TaskShape) -> GangRequest:
    return GangRequest((GroupRequest(1, 1, (shape,)),))


def cpus(count: float) -> GangRequest:
    return single(TaskShape(round(count * 1000), 0))


def simple_world(node_list: Sequence[Node], jobs: Sequence[PendingJob] = ()) -> World:
    world = World()
    world.set_clusters([Cluster(ClusterName("c1"))])
    world.upsert_nodes(node_list)
    world.upsert_pending(jobs)
    return world


def placed(made: Plan) -> list[int]:
    return [p.job for p in made.placements]


def heads(world: World, now: float = 1.0, size: int = 4096) -> list[int]:
    return list(map(int, world.freeze(now, size).queue.job))
