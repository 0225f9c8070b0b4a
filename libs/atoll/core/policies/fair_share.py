"""Fair shares between queues, and inside a queue the longest-waiting first, with a few nudges.

Queues below what they deserve of the kind asked for go first, by used/deserved;
the others by dominant share / weight with the candidate counted, at every level
of the tree (Ghodsi et al., "Dominant Resource Fairness", NSDI'11). Inside a queue
seconds of waiting are the common currency of all factors.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from atoll.core.policies.fair_tree import sibling_ranks
from atoll.core.policies.interfaces import Patience, Ranks, Standing
from atoll.core.policies.priority_fifo import job_priorities
from atoll.core.policies.urgency import Haste, aged, urgency_s
from atoll.core.state.mig import UNITS_PER_DEVICE
from atoll.core.state.needs import stack
from atoll.core.state.shares import CPU, DEVICES, HALF_LIFE_S, MEMORY, Floats, Shares
from atoll.core.state.snapshot import Snapshot

HOUR_S: Final = 3600.0
_AGED: Final = -1e18
"""Before whatever an order says."""
_GUARANTEED: Final = -(1 << 41)
"""Before whatever any priority says."""


@dataclass(frozen=True, slots=True)
class FairShareSettings:
    """Weights and switches; 0 or False takes a factor out of the order."""

    shares: bool = True
    """Queues count; otherwise all jobs are as of one queue."""
    cpu: float = 1.0
    """Weight of CPU in dominant shares; so are the next ones."""
    memory: float = 1.0
    devices: Mapping[str, float] = field(default_factory=dict)
    """By kind, what a device is worth in equivalents of one of weight 1."""
    half_life_s: float = HALF_LIFE_S
    """After so long past usage counts half; a leader knows what it has seen itself."""
    history: float = 0.0
    """What its rank among siblings by past usage adds to a queue's share: 0 to this."""
    priority_first: bool = False
    """Priority is compared before queues are, and not only inside a queue."""
    guarantees_first: bool = True
    """Jobs with a guaranteed deadline go before all others."""
    age: float = 1.0
    """Seconds gained by each second of waiting."""
    size_s: float = 12 * HOUR_S
    """Seconds gained by each doubling of the devices that a job asks for; large ones wait longer
    for a place as it is."""
    deadline_s: float = 24 * HOUR_S
    """Seconds gained at no laxity left, falling to none over as much laxity."""
    preempted_s: float = HOUR_S
    """Seconds gained by each time it was stopped for others."""
    urgency: float = 0.0
    """Seconds gained by each doubling of what a start now is worth over what the job takes, by how
    long its like have run, per second of the largest backlog."""
    patience: Patience = field(default_factory=lambda: Patience(after_s=24 * HOUR_S, below=0.25))
    """When nodes are cleared for a gang. Others pay for it with idle devices, so that it is for the
    few whose queue gets next to nothing."""
    rebalance: bool = False
    """Of two queues that borrow, the one with more gives way to the other's job, if even with
    that job the larger of the two is smaller than before."""

    def __post_init__(self) -> None:
        """Raise ValueError for what would make no order."""
        if not self.half_life_s > 0:
            raise ValueError("half_life_s must be above 0")
        if min(self.cpu, self.memory, *self.devices.values()) < 0:
            raise ValueError("weights of resources must be 0 or more")


@dataclass(frozen=True, slots=True)
class FairShare:
    """The order of the service."""

    settings: FairShareSettings = FairShareSettings()

    def ranks(self, snapshot: Snapshot, *, now: float, rng: Generator) -> Ranks:
        """The order as it stands before anything is placed."""
        del rng
        settings = self.settings
        priority = job_priorities(snapshot)
        outer = -priority if settings.priority_first else np.zeros_like(priority)
        if settings.guarantees_first:
            outer[snapshot.queue.guaranteed] = _GUARANTEED
        jobs = shown_jobs(snapshot, settings)
        backlog_s = snapshot.pace.backlog_s
        gained = sum(gains(jobs, settings, now=now, backlog_s=backlog_s).values())
        standing = standing_of(snapshot, settings) if settings.shares else None
        key = -np.asarray(gained, np.float64)
        if settings.urgency:
            waited = now - jobs.submitted_at
            key[aged(waited, jobs.haste.share, _vertices(snapshot), backlog_s=backlog_s)] = _AGED
        return Ranks(outer, -priority, key, standing, settings.patience, settings.rebalance)


class Jobs(NamedTuple):
    """What the order inside a queue depends on, (J) of each."""

    submitted_at: Floats
    devices: Floats
    """Asked for, in whole devices."""
    time_limit_s: Floats
    deadline_at: Floats
    """0: none."""
    preemptions: Floats
    haste: Haste


def gains(
    jobs: Jobs, settings: FairShareSettings, *, now: float, backlog_s: float
) -> dict[str, Floats]:
    """By factor, (J) seconds by which it brings each job forward in its queue.

    `backlog_s`: the largest that was seen.
    """
    slack = laxity(jobs.deadline_at, jobs.time_limit_s, now=now)
    over = np.maximum(settings.deadline_s, 1e-9)
    late = np.where(jobs.deadline_at > 0, np.clip(1.0 - slack / over, 0.0, 1.0), 0.0)
    return {
        "age": settings.age * (now - jobs.submitted_at),
        "size": settings.size_s * np.log2(np.maximum(jobs.devices, 1.0)),
        "deadline": settings.deadline_s * late,
        "preempted": settings.preempted_s * jobs.preemptions,
        "urgency": urgency_s(jobs.haste, worth=settings.urgency, backlog_s=backlog_s),
    }


def shown_jobs(snapshot: Snapshot, settings: FairShareSettings) -> Jobs:
    """The jobs that a snapshot shows."""
    queue = snapshot.queue
    counts = np.diff(queue.first)
    wanted = [sum(units for _, units in view.need.devices) for view in queue.classes]
    limits = [view.request.terms.time_limit_s for view in queue.classes]
    return Jobs(
        queue.submitted_at,
        np.repeat(np.array(wanted, np.float64) / UNITS_PER_DEVICE, counts),
        np.repeat(np.array(limits, np.float64), counts),
        queue.deadline_at,
        queue.preemptions.astype(np.float64),
        _haste(snapshot, settings, counts),
    )


def _haste(snapshot: Snapshot, settings: FairShareSettings, counts: NDArray[np.int64]) -> Haste:
    views = snapshot.queue.classes
    if not settings.urgency:
        nothing = np.ones(int(counts.sum()))
        return Haste(nothing, nothing, nothing)
    needs = stack([view.need for view in views], snapshot.shares.capacity)
    unit = units(snapshot.shares, snapshot.kinds, settings)
    expected = np.array([view.expected for view in views], np.float64).reshape(-1, 2)
    share = (needs.amount * unit).max(axis=1, initial=0.0)
    return Haste(*(np.repeat(each, counts) for each in (*expected.T, share)))


def _vertices(snapshot: Snapshot) -> NDArray[np.int64]:
    vertex = np.array([view.vertex for view in snapshot.queue.classes], np.int64)
    return np.repeat(vertex, np.diff(snapshot.queue.first))


def laxity(deadline_at: Floats, time_limit_s: Floats, *, now: float) -> Floats:
    """Seconds for which a job could still wait and end in time, by its time limit."""
    slack: Floats = deadline_at - now - time_limit_s
    return slack


def standing_of(snapshot: Snapshot, settings: FairShareSettings) -> Standing:
    """How queues are compared in a snapshot."""
    shares = snapshot.shares
    unit = units(shares, snapshot.kinds, settings)
    size = len(shares.parent)
    if not settings.history:
        return Standing(unit, np.zeros(size))
    ranks = sibling_ranks(shares.parent, past_shares(shares, unit), shares.weight)
    return Standing(unit, settings.history * ranks)


def units(shares: Shares, kinds: Mapping[str, int], settings: FairShareSettings) -> Floats:
    """(R) share of the whole that one unit is; a device kind is one of all, by their weights."""
    worth = np.ones(len(shares.capacity) - DEVICES)
    for kind, weight in settings.devices.items():
        if kind in kinds and kinds[kind] < len(worth):
            worth[kinds[kind]] = weight
    unit = np.zeros(len(shares.capacity))
    for column, weight in ((CPU, settings.cpu), (MEMORY, settings.memory)):
        if shares.capacity[column] > 0:
            unit[column] = weight / shares.capacity[column]
    whole = float((worth * shares.capacity[DEVICES:]).sum())
    if whole > 0:
        unit[DEVICES:] = worth / whole
    return unit


def past_shares(shares: Shares, unit: Floats) -> Floats:
    """(V) dominant share of the whole over the past, each moment by its decayed weight."""
    used = (shares.usage * unit).max(axis=1, initial=0.0)
    past: Floats = used * math.log(2.0) / shares.half_life_s
    return past
