"""Makes jobs up from a seed: when they come, what they want, how long they run."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeVar

import numpy as np
from numpy.random import Generator

from atoll.core.model.priority import DEFAULT_CLASSES, by_name
from atoll.core.model.resources import BLOCKS_PER_DEVICE, DeviceRequest, TaskShape
from atoll.core.model.spec import Checkpoint, JobSpec, OnLost, TaskGroup, Topology
from atoll.sim.scenario import DAY_S, Synthetic
from atoll.sim.service.clock import START
from atoll.sim.work import Work

K = TypeVar("K")
SIM_SECONDS: Final = "ATOLL_SIM_SECONDS"
CLASSES: Final = by_name(DEFAULT_CLASSES)


def generate(part: Synthetic, rng: Generator, *, prefix: str) -> list[Work]:
    """The jobs, by their submits."""
    times = arrivals(part, rng)
    return [_job(part, at, rng, name=f"{prefix}-{i}") for i, at in enumerate(times)]


def arrivals(part: Synthetic, rng: Generator) -> list[float]:
    """Times of a Poisson process, thinned at night by `daily`; so many as are wanted, sorted."""
    times: list[float] = []
    while len(times) < part.jobs:
        at = float(rng.random()) * part.over
        day = 0.5 * (1 + np.sin(2 * np.pi * at / DAY_S))
        if rng.random() >= part.daily * (1 - day):
            times.append(at)
    return sorted(times)


def with_run_time(spec: JobSpec, run_s: float) -> JobSpec:
    """The job as a simulated cluster understands it: it is told how long it runs."""
    groups = tuple(
        replace(group, envs=(*group.envs, (SIM_SECONDS, repr(run_s)))) for group in spec.groups
    )
    return replace(spec, groups=groups)


def _job(part: Synthetic, at: float, rng: Generator, *, name: str) -> Work:
    run = part.run
    seconds = float(run.median * np.exp(run.sigma * rng.standard_normal()))
    run_s = float(round(min(max(seconds, run.least), run.most), 1))
    size = _drawn(part.sizes, rng)
    kind = _drawn(part.kinds, rng)
    level = CLASSES[_drawn(part.classes, rng)]
    queue = _drawn(part.queues, rng)
    requeue, deadline = rng.random() < part.requeue, rng.random() < part.deadlines
    limit, slack = _between(part.limits, rng), _between(part.slack, rng)
    group = _group(part, size, kind)
    spec = JobSpec(
        name=name,
        queue=queue,
        groups=(group,),
        priority=level.priority,
        priority_class=level.name,
        time_limit_s=float(np.ceil(run_s * limit + 60)),
        deadline_at=START + at + run_s * slack if deadline else 0.0,
        best_effort=deadline and part.best_effort,
        restart_cost_s=part.restart_cost,
        topology=_topology(part, group),
        checkpoint=Checkpoint(interval_s=part.checkpoint) if part.checkpoint else None,
        on_lost=OnLost.REQUEUE if requeue else OnLost.HOLD,
        retries=part.retries,
        grace_s=part.grace,
    )
    return Work(at, spec, run_s)


def _group(part: Synthetic, size: float, kind: str) -> TaskGroup:
    whole = max(1, int(size))
    nodes = max(1, -(-whole // part.per_node)) if size >= 1 else 1
    each = -(-whole // nodes)
    shape = TaskShape(
        part.cpus * (each if size >= 1 else 1), part.memory * each, _wish(size, each, kind)
    )
    return TaskGroup("main", nodes, nodes, shapes=(shape,), run="true")


def _wish(size: float, each: int, kind: str) -> DeviceRequest | None:
    if size <= 0:
        return None
    if size < 1:
        return DeviceRequest(kind, 1, max(1, round(size * BLOCKS_PER_DEVICE)))
    return DeviceRequest(kind, each)


def _topology(part: Synthetic, group: TaskGroup) -> Topology | None:
    gang = group.count > 1 and part.topology
    return Topology(part.topology, required=False) if gang else None


def _drawn(weights: Mapping[K, float], rng: Generator) -> K:
    keys = list(weights)
    shares = np.array(list(weights.values()), float)
    return keys[int(rng.choice(len(keys), p=shares / shares.sum()))]


def _between(bounds: tuple[float, float], rng: Generator) -> float:
    return float(bounds[0] + (bounds[1] - bounds[0]) * rng.random())
