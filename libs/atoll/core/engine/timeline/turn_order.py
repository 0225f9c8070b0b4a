"""In which order the jobs of a survey will have their turn, by the order that the cycle uses.

Inside a queue it is the policy's own. Between queues the policy compares what they
hold just then; over time that gives each a part of the capacity, and a queue has its
next turn when the work that it has had, over its part, is the least (weighted fair
queueing; Demers, Keshav, Shenker, "Analysis and Simulation of a Fair Queueing
Algorithm", SIGCOMM'89).
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from atoll.core.engine.timeline.expected_runs import ExpectedRuns
from atoll.core.policies.interfaces import Policies, Ranks
from atoll.core.state.needs import stack
from atoll.core.state.shares import DEVICES, Shares
from atoll.core.state.survey import Survey

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_LEAST_PART = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class TurnOrder:
    """The J jobs of a survey."""

    jobs: Ints
    """(J) indices, in the order of their turns."""
    weight: Floats
    """(J) jobs that each stands for: itself, and half of those up to the next that is shown."""
    of: Ints
    """(J) class."""


def turn_order(
    survey: Survey, policies: Policies, runs: ExpectedRuns, *, now: float, rng: Generator
) -> TurnOrder:
    """The order as things stand."""
    snapshot, queue = survey.snapshot, survey.snapshot.queue
    of = np.repeat(np.arange(len(queue.classes)), np.diff(queue.first))
    weight = _weights(survey, of)
    ranks = policies.order.ranks(snapshot, now=now, rng=rng)
    inside = (queue.job, queue.submitted_at, ranks.key, ranks.inner)
    jobs = np.lexsort((*inside, ranks.outer))
    if ranks.standing is not None:
        turn = _turns(survey, ranks, runs, jobs=jobs, weight=weight, of=of, now=now)
        jobs = np.lexsort((*inside, turn, ranks.outer))
    return TurnOrder(jobs, weight, of)


def _weights(survey: Survey, of: Ints) -> Floats:
    """Jobs between two that are shown count half for each."""
    place = survey.place.astype(np.float64)
    last = np.append(of[1:] != of[:-1], True) if len(of) else np.zeros(0, np.bool_)
    following = np.append(place[1:], 0.0)
    following[last] = survey.total[of[last]]
    gap = np.maximum(0.0, following - place - 1)
    weight = 1.0 + gap / 2
    weight[last] += gap[last] / 2
    return weight


def _before(values: Floats, jobs: Ints, group: Ints) -> Floats:
    """(J) sum of the values of those of a job's group that come earlier in `jobs`."""
    by_group = jobs[np.argsort(group[jobs], kind="stable")]
    total = np.cumsum(values[by_group]) - values[by_group]
    new = np.ones(len(by_group), np.bool_)
    new[1:] = group[by_group[1:]] != group[by_group[:-1]]
    start = np.maximum.accumulate(np.where(new, np.arange(len(by_group)), 0))
    before = np.zeros(len(jobs))
    before[by_group] = total - total[start]
    return before


def _turns(
    survey: Survey,
    ranks: Ranks,
    runs: ExpectedRuns,
    *,
    jobs: Ints,
    weight: Floats,
    of: Ints,
    now: float,
) -> Floats:
    """(J) the work that a job's queue has had when its turn comes, over its part of the whole."""
    assert ranks.standing is not None
    snapshot, unit = survey.snapshot, ranks.standing.unit
    views = snapshot.queue.classes
    needs = stack([view.need for view in views], snapshot.shares.capacity)
    length = np.array([view.expected[1] for view in views], np.float64)
    work = weight * ((needs.amount * unit).max(axis=1, initial=0.0) * length)[of]
    vertex = np.array([view.vertex for view in views], np.int64)[of]
    part = _parts(snapshot.shares, unit, np.unique(vertex))
    had = _had(survey, runs, unit, now=now)
    turn: Floats = (had[vertex] + _before(work, jobs, vertex)) / part[vertex]
    return turn


def _had(survey: Survey, runs: ExpectedRuns, unit: Floats, *, now: float) -> Floats:
    """(V) what the runs of a queue will still take, as they will have gone on meanwhile."""
    snapshot = survey.snapshot
    running, shares = snapshot.running, snapshot.shares
    devices = np.zeros(len(runs.slots))
    of_grant = np.repeat(runs.run_of_task, np.diff(runs.uses.first_grant))
    np.add.at(devices, of_grant, runs.uses.blocks)
    cpu = np.zeros(len(runs.slots))
    np.add.at(cpu, runs.run_of_task, runs.uses.cpu)
    whole = max(float(shares.capacity[DEVICES:].sum()) / 56, 1.0)
    share = np.maximum(devices / whole, cpu * unit[0])
    known = {name: number for number, name in enumerate(shares.names[: len(shares.parent)])}
    vertices = np.array([known.get(name, 0) for name in running.queues.values], np.int64)
    had = np.zeros(len(shares.parent))
    np.add.at(had, vertices[running.runs.queue[runs.slots]], share * (runs.ends - now))
    return had


def _parts(shares: Shares, unit: Floats, waiting: Ints) -> Floats:
    """(V) the part of the whole that is a queue's while those that wait do, and no other."""
    size = len(shares.parent)
    active = np.zeros(size, np.bool_)
    active[waiting] = True
    for vertex in range(size - 1, 0, -1):
        active[shares.parent[vertex]] |= active[vertex]
    deserved = np.minimum(1.0, (shares.deserved * unit[DEVICES:]).sum(axis=1))
    part = np.zeros(size)
    part[0] = 1.0
    for parent in np.unique(shares.parent[1:][active[1:]]).tolist():
        children = np.flatnonzero((shares.parent == parent) & active)
        part[children] = _split(part[parent], deserved[children], shares.weight[children])
    return np.maximum(part, _LEAST_PART)


def _split(whole: float, deserved: Floats, weight: Floats) -> Floats:
    """What each deserves, and of the rest by weight."""
    total = float(deserved.sum())
    own = deserved * min(1.0, whole / total) if total > 0 else deserved
    rest = max(0.0, whole - float(own.sum()))
    shared: Floats = own + rest * weight / max(float(weight.sum()), _LEAST_PART)
    return shared
