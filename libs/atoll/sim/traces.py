"""Public traces as work for a simulation: each job in the product's own words."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from atoll.cli.replay import openb
from atoll.core.model.resources import BLOCKS_PER_DEVICE, DeviceRequest, TaskShape
from atoll.core.model.spec import Checkpoint, JobSpec, OnLost, TaskGroup
from atoll.sim.readers.elasticflow import TraceJob, read_cluster
from atoll.sim.readers.parallel import ParallelLog
from atoll.sim.readers.philly import read_philly
from atoll.sim.readers.pwa import read_pwa
from atoll.sim.readers.swf import read_swf
from atoll.sim.scenario import Trace
from atoll.sim.service.clock import START
from atoll.sim.work import Work

MILLI_PER_BLOCK: Final = 10
CPUS_PER_DEVICE: Final = 4_000
MEMORY_PER_DEVICE: Final = 16 << 30
NODE_DEVICES: Final = 8
MIB: Final = 1 << 20
LEAST_RUN_S: Final = 1.0
RETRIES: Final = 100


def read_trace(trace: Trace) -> list[Work]:
    """The jobs, by their submits, the first at 0; raises InvalidInput."""
    works = sorted(READERS[trace.format](trace), key=lambda work: work.at)
    works = works[: trace.limit or None]
    first = works[0].at if works else 0.0
    return [_adapted(work, trace, first=first, number=number) for number, work in enumerate(works)]


def _adapted(work: Work, trace: Trace, *, first: float, number: int) -> Work:
    spec = replace(
        work.spec,
        name=f"{trace.format}-{number}",
        queue=trace.queue or work.spec.queue,
        checkpoint=Checkpoint(interval_s=trace.checkpoint) if trace.checkpoint else None,
        on_lost=OnLost.REQUEUE,
        retries=RETRIES,
    )
    return Work((work.at - first) / trace.speed, spec, max(LEAST_RUN_S, work.run_s))


def _openb(trace: Trace) -> Iterator[Work]:
    for pod in openb.read_pods(trace.file, limit=trace.limit):
        blocks = math.ceil(pod.milli / MILLI_PER_BLOCK)
        wishes = [DeviceRequest(kind, pod.devices, blocks) for kind in pod.kinds or ("",)]
        cpu, memory = max(1, pod.cpu_milli), max(1, pod.memory_bytes)
        shapes = [TaskShape(cpu, memory, wish if pod.devices else None) for wish in wishes]
        group = TaskGroup("main", 1, 1, shapes=tuple(shapes), run="true")
        yield Work(pod.created_s, JobSpec(pod.name, "default", (group,)), pod.ran_s)


def _philly(trace: Trace) -> Iterator[Work]:
    for job in read_philly(trace.file):
        spec = JobSpec("job", f"vc-{job.cluster}", _whole_nodes(job.gpus))
        yield Work(job.submitted_s, spec, job.run_s)


def _elasticflow(trace: Trace) -> Iterator[Work]:
    """Every job rigid, at the smallest size at which it could meet its deadline."""
    for job in read_cluster(trace.file, trace.cluster):
        devices, rate = _size(job)
        groups = (_tasks(devices, 1),)
        deadline = START + job.deadline_s
        spec = JobSpec("job", "default", groups, deadline_at=deadline, best_effort=True)
        yield Work(float(job.submitted_s), spec, job.iterations / rate)


def _parallel(read: Callable[[Path], ParallelLog]) -> Callable[[Trace], Iterator[Work]]:
    """Processors are CPUs, `per_node` of them in a task; requests are time limits."""

    def works(trace: Trace) -> Iterator[Work]:
        log = read(trace.file)
        columns = (log.submit, log.run, log.processors, log.request)
        for at, run_s, processors, request_s in zip(*(c.tolist() for c in columns), strict=True):
            groups = _cpus(processors, trace.per_node)
            spec = JobSpec("job", "default", groups, time_limit_s=math.ceil(request_s) + 1.0)
            yield Work(at, spec, run_s)

    return works


def _cpus(processors: int, per_node: int) -> tuple[TaskGroup, ...]:
    whole, rest = divmod(processors, per_node)
    sizes = [("main", whole, per_node), ("rest", 1 if rest else 0, rest)]
    return tuple(
        TaskGroup(name, count, count, shapes=(TaskShape(1000 * cpus, cpus * MIB),), run="true")
        for name, count, cpus in sizes
        if count
    )


def _size(job: TraceJob) -> tuple[int, float]:
    left = max(1, job.deadline_s - job.submitted_s)
    enough = ((g, rate) for g, rate in job.throughput if rate * left >= job.iterations)
    return next(enough, job.throughput[-1])


def _whole_nodes(devices: int) -> tuple[TaskGroup, ...]:
    """Whole nodes of eight, and one remainder."""
    whole, rest = divmod(max(1, devices), NODE_DEVICES)
    groups = []
    if whole:
        groups.append(_tasks(whole, NODE_DEVICES))
    if rest:
        groups.append(replace(_tasks(1, rest), name="rest"))
    return tuple(groups)


def _tasks(count: int, devices: int) -> TaskGroup:
    shape = TaskShape(
        CPUS_PER_DEVICE * devices,
        MEMORY_PER_DEVICE * devices,
        DeviceRequest("", devices, BLOCKS_PER_DEVICE),
    )
    return TaskGroup("main", count, count, shapes=(shape,), run="true")


READERS: Final[Mapping[str, Callable[[Trace], Iterator[Work]]]] = {
    "openb": _openb,
    "philly": _philly,
    "elasticflow": _elasticflow,
    "swf": _parallel(read_swf),
    "pwa": _parallel(read_pwa),
}
