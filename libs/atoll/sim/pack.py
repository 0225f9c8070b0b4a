"""Packs requests that arrive one by one and never leave, until what arrived exceeds capacity.

The set-up of the published runs (FGD, ATC'23). It is one cycle of the core: all
requests wait in the order of their arrival, and one that no node can hold is
passed over. Nothing leaves, so its like will not fit later either, which is what
the cycle takes for granted.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from atoll.core.engine.cycle import CycleLimits, plan
from atoll.core.engine.verify import verify
from atoll.core.model.ids import ClusterName, JobId, NodeId, QueueName, Tenant
from atoll.core.model.inventory import Cluster, Device, Node, NodeInventory
from atoll.core.model.job import Queue
from atoll.core.model.plan import GangRequest, GroupRequest, PendingJob, Plan
from atoll.core.model.resources import ANY_KIND, DeviceRequest, TaskShape
from atoll.core.policies.registry import policies
from atoll.core.state.world import World
from atoll.ports.clock import Clock
from atoll.sim.readers.openb import MILLI, MILLI_PER_BLOCK, Pod, TraceNode

_CLUSTER: Final = ClusterName("openb")
_QUEUE: Final = QueueName("pods")
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Held:
    """Where a pod went."""

    node: str
    devices: tuple[tuple[int, int], ...]
    """(index, milli-GPU)."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The result of one run."""

    arrived: tuple[Pod, ...]
    held: dict[int, Held]
    """By place in `arrived`; the others were dropped."""
    allocated_pct: float
    """GPUs held, in % of capacity."""
    seconds: float
    """In the cycle."""


def arrivals(pods: Sequence[Pod], *, capacity_milli: int, percent: int, seed: int) -> list[Pod]:
    """Pods in the order of their arrival until their requests reach `percent` of capacity.

    A shuffled list that reaches it is cut after the pod that does so; a shorter one is
    filled up with pods drawn by chance and shuffled again.
    """
    rng = np.random.default_rng(seed)
    order = [int(place) for place in rng.permutation(len(pods))]
    goal = capacity_milli * percent / 100
    total = 0
    for count, place in enumerate(order, 1):
        total += pods[place].asked_milli
        if total >= goal:
            return [pods[place] for place in order[:count]]
    while total < goal:
        order.append(int(rng.integers(len(pods))))
        total += pods[order[-1]].asked_milli
    return [pods[order[place]] for place in rng.permutation(len(order))]


def pack(
    nodes: Sequence[TraceNode],
    arrived: Sequence[Pod],
    *,
    known: Sequence[Pod],
    policy: str,
    seed: int,
    clock: Clock,
) -> Packed:
    """Place pods by the core's own cycle; `known`: those that fragmentation is measured by."""
    world = _world(nodes, arrived, known)
    snapshot = world.freeze(1.0, heads_per_class=len(arrived))
    chosen = policies(order="priority_fifo", score=policy)
    rng = np.random.default_rng(seed)
    began = clock.monotonic()
    made = plan(
        snapshot, chosen, now=1.0, rng=rng, limits=CycleLimits(len(arrived) + 1, max_explained=0)
    )
    seconds = clock.monotonic() - began
    verify(made, world.ledger)
    held = _held(made)
    used = sum(milli for each in held.values() for _, milli in each.devices)
    return Packed(tuple(arrived), held, 100.0 * used / capacity_milli(nodes), seconds)


def capacity_milli(nodes: Sequence[TraceNode]) -> int:
    """Milli-GPU of all nodes."""
    return MILLI * sum(node.gpus for node in nodes)


def _held(made: Plan) -> dict[int, Held]:
    return {
        placement.job - 1: Held(
            placement.tasks[0].node_name,
            tuple((d.index, d.blocks * MILLI_PER_BLOCK) for d in placement.tasks[0].devices),
        )
        for placement in made.placements
    }


def _world(nodes: Sequence[TraceNode], arrived: Sequence[Pod], known: Sequence[Pod]) -> World:
    world = World()
    world.set_clusters([Cluster(_CLUSTER)])
    world.set_queues([Queue(_QUEUE, Tenant(""))])
    world.upsert_nodes([_node(number, node) for number, node in enumerate(nodes, 1)])
    request = {pod: _request(pod) for pod in dict.fromkeys(map(_nameless, arrived))}
    world.upsert_pending([
        PendingJob(JobId(n), 1, _QUEUE, 0, submitted_at=n * 1e-6, request=request[_nameless(pod)])
        for n, pod in enumerate(arrived, 1)
    ])
    counted = Counter(map(_nameless, known))
    world.workload.give((_shapes(pod), number) for pod, number in counted.items())
    return world


def _node(number: int, node: TraceNode) -> Node:
    devices = tuple(Device(index, node.model, 0) for index in range(node.gpus))
    inventory = NodeInventory(node.name, node.cpu_milli, node.memory_mib * _MIB, devices)
    return Node(NodeId(number), _CLUSTER, inventory)


def _nameless(pod: Pod) -> Pod:
    return Pod("", pod.cpu_milli, pod.memory_mib, pod.gpus, pod.gpu_milli, pod.models)


def _request(pod: Pod) -> GangRequest:
    return GangRequest((GroupRequest(1, 1, _shapes(pod)),))


def _shapes(pod: Pod) -> tuple[TaskShape, ...]:
    memory = pod.memory_mib * _MIB
    if not pod.gpus:
        return (TaskShape(pod.cpu_milli, memory),)
    blocks = pod.gpu_milli // MILLI_PER_BLOCK
    return tuple(
        TaskShape(pod.cpu_milli, memory, DeviceRequest(model, pod.gpus, blocks))
        for model in pod.models or (ANY_KIND,)
    )
