"""Compiles every kernel beforehand: a leader never compiles.

Compiled code is cached beside the modules, or where NUMBA_CACHE_DIR says, so
that only the first call on a machine takes long.
"""

from typing import Final

import numpy as np

from atoll.core.engine.bookings.warm import warm_calendar
from atoll.core.engine.burst.warm import warm_spot
from atoll.core.engine.cycle import plan
from atoll.core.engine.deadlines.warm import warm_book
from atoll.core.engine.explain import explain
from atoll.core.engine.timeline.warm import warm_forecasts
from atoll.core.engine.verify import verify
from atoll.core.engine.windows.warm import warm_windows
from atoll.core.model.ids import ClusterName, JobId, NodeId, QueueName, Tenant
from atoll.core.model.inventory import Cluster, Device, Node, NodeInventory
from atoll.core.model.job import Queue
from atoll.core.model.plan import GangRequest, GroupRequest, PendingJob, RunTerms, run_facts
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.model.spec import Topology
from atoll.core.policies.registry import policies
from atoll.core.state.ledger import Holding
from atoll.core.state.world import World

_GIB: Final = 1 << 30
_QUEUE: Final = QueueName("warm")
_FORMS: Final = (
    None,
    DeviceRequest("H100", 1),
    DeviceRequest("H100", 1, blocks=30),
    DeviceRequest("", 1, blocks=0, memory_bytes=_GIB),
    DeviceRequest("H100", 1, profile="1g.10gb"),
    DeviceRequest("B200", 1),
)


def warm() -> None:
    """Run every kernel once on a small world, with the types that all worlds have."""
    warm_book()
    warm_spot()
    world = _world()
    snapshot = world.freeze(1.0)
    made = plan(snapshot, policies(), now=1.0, rng=np.random.default_rng(0))
    verify(made, world.ledger)
    world.add_allocations([
        Holding(p.attempt, p.queue, p.cluster, p.tasks, run_facts(p, started_at=0.0))
        for p in made.placements
    ])
    warm_forecasts(world)
    warm_windows(world, 1.0)
    world.remove_pending([p.job for p in made.placements])
    world.end_allocations([p.attempt for p in made.placements])
    _warm_preemption()
    _warm_reservations()
    warm_calendar(snapshot)
    for number in range(1, 2 * len(_FORMS) + 1):
        pending = world.pending(JobId(number))
        if pending is not None:
            explain(snapshot, pending, policies(), now=1.0, ahead=world.jobs_ahead(pending))


def warm_bookings() -> None:
    """The part of it that booking time needs."""
    warm_book()
    warm_calendar(_world().freeze(1.0))


def _warm_preemption() -> None:
    world, request = _world(), GangRequest((GroupRequest(2, 2, (TaskShape(1, 1),)),))
    whole = GangRequest((GroupRequest(2, 2, (TaskShape(64_000, _GIB),)),))
    for number, asked in ((1001, request), (1002, whole)):
        world.upsert_pending([
            PendingJob(JobId(number), 1, _QUEUE, number, submitted_at=0.0, request=asked)
        ])
        made = plan(world.freeze(1.0), policies(), now=1.0, rng=np.random.default_rng(0))
        world.add_nominations(made.nominations)
        verify(made, world.ledger)
        world.add_allocations([
            Holding(p.attempt, p.queue, p.cluster, p.tasks, run_facts(p, started_at=0.0))
            for p in made.placements
        ])
        world.remove_pending([p.job for p in made.placements])


def _warm_reservations() -> None:
    """A run that ends, one job that waits for it, one that ends before, and one too many."""
    world, now = _world(), 1.0
    world.remove_pending([JobId(number) for number in range(1, 2 * len(_FORMS) + 1)])
    for number, (tasks, limit) in enumerate(((1, 100.0), (2, 100.0), (1, 10.0), (1, 500.0)), 1):
        group = GroupRequest(tasks, tasks, (TaskShape(40_000, _GIB, DeviceRequest("H100", 2)),))
        asked = GangRequest((group,), terms=RunTerms(time_limit_s=limit))
        world.upsert_pending([
            PendingJob(JobId(number), 1, _QUEUE, 0, submitted_at=now, request=asked)
        ])
        now += 1.0
        snapshot = world.freeze(now)
        made = plan(snapshot, policies(), now=now, rng=np.random.default_rng(0))
        world.note_waiting(snapshot, made)
        world.add_allocations([
            Holding(p.attempt, p.queue, p.cluster, p.tasks, run_facts(p, started_at=now))
            for p in made.placements
        ])
        world.remove_pending([p.job for p in made.placements])
    world.end_allocations([*world.ledger.holdings])


def _world() -> World:
    world = World()
    world.set_clusters([Cluster(ClusterName("warm"))])
    world.set_queues([Queue(_QUEUE, Tenant(""), device_limit=10_000)])
    world.upsert_nodes([_node(number) for number in (1, 2)])
    jobs = [
        PendingJob(JobId(number), 1, _QUEUE, 0, submitted_at=0.0, request=request)
        for number, request in enumerate(_requests(), 1)
    ]
    world.upsert_pending(jobs)
    return world


def _node(number: int) -> Node:
    devices = tuple(Device(i, "H100", 80 * _GIB, mig=i == 0) for i in range(4))
    inventory = NodeInventory(
        f"n{number}", 64_000, 64 * _GIB, devices, domains=(("rack", f"r{number}"),)
    )
    return Node(NodeId(number), ClusterName("warm"), inventory)


def _requests() -> list[GangRequest]:
    shapes = [TaskShape(1000, _GIB, form) for form in _FORMS]
    singles = [GangRequest((GroupRequest(1, 1, (shape,)),)) for shape in shapes]
    topology = Topology("rack")
    return singles + [GangRequest((GroupRequest(2, 1, (s,)),), topology) for s in shapes]


if __name__ == "__main__":
    warm()
