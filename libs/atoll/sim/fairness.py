"""Does anybody lose by sharing? Virtual clusters, each by itself and all in one.

Each virtual cluster gets a private cluster of its size; the shared cluster has
all their nodes, a queue for each with a quota in proportion, and the same policy.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from atoll.core.engine.cycle import CycleLimits
from atoll.core.model.errors import FieldViolation, InvalidInput
from atoll.core.model.ids import QueueName, Tenant
from atoll.core.model.inventory import Device, NodeInventory
from atoll.core.model.job import Queue
from atoll.core.model.resources import BLOCKS_PER_DEVICE, DeviceRequest, TaskShape
from atoll.core.model.spec import Checkpoint, JobSpec, TaskGroup
from atoll.core.policies.interfaces import Policies
from atoll.sim.driver import Driver
from atoll.sim.fleet import fleet
from atoll.sim.readers.philly import PhillyJob
from atoll.sim.record import Record
from atoll.sim.work import Work

KIND = "GPU"
NODE_GPUS = 8
HEADROOM = 1.2
"""Of a private cluster over the mean use of its virtual cluster."""
LIMITS = CycleLimits(max_placements=256, max_explained=0)


@dataclass(frozen=True, slots=True)
class Part:
    """A virtual cluster."""

    name: str
    jobs: int
    mean_gpus: float
    largest: int
    """GPUs of its largest job."""
    nodes: int
    """Of its private cluster."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One simulation."""

    waits: dict[str, list[float]]
    """By virtual cluster: seconds from submit to end beyond the duration, by submit."""
    evictions: int
    lost_gpu_h: float
    plans: int


def parts_of(jobs: Sequence[PhillyJob]) -> list[Part]:
    """The virtual clusters by name. Means are over the time from first submit to last end."""
    span = max(job.submitted_s + job.run_s for job in jobs)
    return [_part(name, jobs, span) for name in sorted({job.cluster for job in jobs})]


def quotas(parts: Sequence[Part], gpus: int) -> dict[str, int]:
    """Blocks by virtual cluster: in proportion to the private nodes, never below a largest job.

    What is added to one is taken from the others. InvalidInput when `gpus` are too few.
    """
    whole = gpus * BLOCKS_PER_DEVICE
    least = {part.name: part.largest * BLOCKS_PER_DEVICE for part in parts}
    if sum(least.values()) > whole:
        raise InvalidInput((
            FieldViolation("nodes_ratio", "the largest jobs together need more nodes"),
        ))
    raised: set[str] = set()
    while True:
        rest = whole - sum(least[name] for name in raised)
        nodes = sum(part.nodes for part in parts if part.name not in raised)
        share = {p.name: rest * p.nodes // max(1, nodes) for p in parts if p.name not in raised}
        below = {name for name, blocks in share.items() if blocks < least[name]}
        if not below:
            return share | {name: least[name] for name in raised}
        raised |= below


def run_private(
    part: Part,
    jobs: Iterable[PhillyJob],
    policies: Policies,
    *,
    checkpoint_s: float,
    tick: Callable[[int], None],
) -> Outcome:
    """The jobs of a virtual cluster on nodes of its own."""
    queues = [_queue(part.name, part.nodes * NODE_GPUS * BLOCKS_PER_DEVICE)]
    mine = [job for job in jobs if job.cluster == part.name]
    return _run(mine, part.nodes, queues, policies=policies, checkpoint_s=checkpoint_s, tick=tick)


def run_shared(
    parts: Sequence[Part],
    jobs: Sequence[PhillyJob],
    policies: Policies,
    *,
    nodes: int,
    checkpoint_s: float,
    tick: Callable[[int], None],
) -> Outcome:
    """All jobs on shared nodes."""
    found = quotas(parts, nodes * NODE_GPUS)
    queues = [_queue(name, blocks) for name, blocks in sorted(found.items())]
    return _run(jobs, nodes, queues, policies=policies, checkpoint_s=checkpoint_s, tick=tick)


def _part(name: str, jobs: Sequence[PhillyJob], span: float) -> Part:
    mine = [job for job in jobs if job.cluster == name]
    mean = math.fsum(job.gpus * job.run_s for job in mine) / span
    largest = max(job.gpus for job in mine)
    nodes = max(math.ceil(HEADROOM * mean / NODE_GPUS), math.ceil(largest / NODE_GPUS))
    return Part(name, len(mine), mean, largest, nodes)


def _queue(name: str, blocks: int) -> Queue:
    return Queue(QueueName(name), Tenant(""), weight=max(blocks, 1), deserved=((KIND, blocks),))


def _run(
    jobs: Sequence[PhillyJob],
    nodes: int,
    queues: Sequence[Queue],
    *,
    policies: Policies,
    checkpoint_s: float,
    tick: Callable[[int], None],
) -> Outcome:
    inventories = [_node(number) for number in range(nodes)]
    driver = Driver(
        fleet({"shared": inventories}), policies, queues=queues, limits=LIMITS, on_progress=tick
    )
    return _outcome(driver.run([_work(job, checkpoint_s) for job in jobs]), driver.plans)


def _node(number: int) -> NodeInventory:
    devices = tuple(Device(index, KIND, 1) for index in range(NODE_GPUS))
    return NodeInventory(f"n{number:03}", 0, 0, devices)


def _work(job: PhillyJob, checkpoint_s: float) -> Work:
    spec = JobSpec(
        name="",
        queue=job.cluster,
        groups=_groups(job.gpus),
        checkpoint=Checkpoint(interval_s=checkpoint_s) if checkpoint_s else None,
        grace_s=0.0,
    )
    return Work(job.submitted_s, spec, job.run_s)


def _groups(gpus: int) -> tuple[TaskGroup, ...]:
    whole, rest = (0, gpus) if gpus <= NODE_GPUS else divmod(gpus, NODE_GPUS)
    sizes = [("whole", whole, NODE_GPUS), ("rest", 1, rest)]
    return tuple(
        TaskGroup(name, count, count, (TaskShape(0, 0, DeviceRequest(KIND, size)),), run="")
        for name, count, size in sizes
        if count and size
    )


def _outcome(record: Record, plans: int) -> Outcome:
    waits: dict[str, list[float]] = {}
    for job in record.jobs.values():
        if job.delay_s is None:
            raise RuntimeError(f"job {job.id} never ended")
        waits.setdefault(job.work.spec.queue, []).append(job.delay_s)
    evicted = [stretch for stretch in record.stretches if stretch.how == "PREEMPTED"]
    lost = math.fsum(stretch.lost_s * stretch.units for stretch in evicted)
    return Outcome(waits, len(evicted), lost / BLOCKS_PER_DEVICE / 3600, plans)
