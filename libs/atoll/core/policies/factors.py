"""What the order of the queue makes of one job, factor by factor, for people to read."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from atoll.core.model.plan import PendingJob
from atoll.core.policies.fair_share import (
    FairShare,
    FairShareSettings,
    Jobs,
    gains,
    past_shares,
    standing_of,
    units,
)
from atoll.core.policies.interfaces import Policies, Standing
from atoll.core.policies.urgency import Haste
from atoll.core.state.history_kernels import Expected
from atoll.core.state.mig import UNITS_PER_BLOCK, UNITS_PER_DEVICE
from atoll.core.state.needs import NO_KIND, Needs, need_of, stack
from atoll.core.state.run_times import GUESS_S
from atoll.core.state.shares import CPU, DEVICES, MEMORY
from atoll.core.state.snapshot import Snapshot

_SECONDS: Final = "s"
NOTHING_KNOWN: Final = (1 / GUESS_S, GUESS_S)


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor of a job's place. Factors come in the order in which they are compared."""

    name: str
    value: float
    unit: str = ""
    """`s`: seconds by which it is brought forward in its queue; else a plain number."""
    queue: str = ""
    """The queue that it is of; empty for factors of the job itself."""


@dataclass(frozen=True, slots=True)
class KindShare:
    """A queue's devices of one kind, in blocks (1 % of a device)."""

    kind: str
    held: int
    deserved: int
    capacity: int


@dataclass(frozen=True, slots=True)
class ShareRow:
    """A queue as the order sees it; what is below it counts for it."""

    queue: str
    weight: float
    cpu_milli: int
    memory_bytes: int
    kinds: tuple[KindShare, ...]
    """Of those that it holds or deserves, by name."""
    dominant_share: float
    """Of the whole, now, before its weight."""
    past_share: float
    """Of the whole, over the past, decayed."""
    bias: float
    """What its past adds to its share when it holds more than it deserves."""


def priority_factors(
    snapshot: Snapshot,
    pending: PendingJob,
    policies: Policies,
    *,
    now: float,
    expected: Expected = NOTHING_KNOWN,
) -> tuple[Factor, ...]:
    """The effective value of every factor that places a pending job, the first compared first.

    `expected`: how long it will run, by what is known of others.
    """
    order = policies.order
    if not isinstance(order, FairShare):
        return (_priority(pending), Factor("age", now - pending.submitted_at, _SECONDS))
    settings = order.settings
    queue = _queue_factors(snapshot, pending, settings) if settings.shares else ()
    guaranteed = Factor("guaranteed", float(pending.guaranteed and settings.guarantees_first))
    own = _own(snapshot, pending, settings, now=now, expected=expected)
    if settings.priority_first:
        return (guaranteed, _priority(pending), *queue, *own)
    return (guaranteed, *queue, _priority(pending), *own)


def shares(snapshot: Snapshot, policies: Policies) -> tuple[ShareRow, ...]:
    """All queues that are known, by name."""
    order, found = policies.order, snapshot.shares
    settings = order.settings if isinstance(order, FairShare) else FairShareSettings()
    standing = standing_of(snapshot, settings)
    dominant = (found.held * standing.unit).max(axis=1, initial=0.0)
    past = past_shares(found, standing.unit)
    rows = [
        ShareRow(
            queue=found.names[v],
            weight=float(found.weight[v]),
            cpu_milli=int(found.held[v, CPU]),
            memory_bytes=int(found.held[v, MEMORY]),
            kinds=_kinds(snapshot, v),
            dominant_share=float(dominant[v]),
            past_share=float(past[v]),
            bias=float(standing.bias[v]),
        )
        for v in range(1, len(found.parent))
    ]
    return tuple(sorted(rows, key=lambda row: row.queue))


def _queue_factors(
    snapshot: Snapshot, pending: PendingJob, settings: FairShareSettings
) -> tuple[Factor, ...]:
    found = snapshot.shares
    standing = standing_of(snapshot, settings)
    needs = _needs(snapshot, pending)
    chain, vertex = [], found.vertex(pending.queue)
    while vertex > 0:
        chain.append(vertex)
        vertex = int(found.parent[vertex])
    each = [_level(snapshot, vertex, needs=needs, standing=standing) for vertex in reversed(chain)]
    return tuple(factor for factors in each for factor in factors)


def _level(
    snapshot: Snapshot, vertex: int, *, needs: Needs, standing: Standing
) -> tuple[Factor, ...]:
    found, kind, name = snapshot.shares, int(needs.kind[0]), snapshot.shares.names[vertex]
    if kind != NO_KIND and found.held[vertex, DEVICES + kind] < found.deserved[vertex, kind]:
        ratio = found.held[vertex, DEVICES + kind] / found.deserved[vertex, kind]
        return (Factor("below_deserved", 1.0, queue=name), Factor("used", float(ratio), queue=name))
    share = ((found.held[vertex] + needs.amount[0]) * standing.unit).max(initial=0.0)
    return (
        Factor("below_deserved", 0.0, queue=name),
        Factor("share", float(share / found.weight[vertex]), queue=name),
        Factor("history", float(standing.bias[vertex]), queue=name),
    )


def _own(
    snapshot: Snapshot,
    pending: PendingJob,
    settings: FairShareSettings,
    *,
    now: float,
    expected: Expected,
) -> tuple[Factor, ...]:
    needs = _needs(snapshot, pending).amount[0]
    share = (needs * units(snapshot.shares, snapshot.kinds, settings)).max(initial=0.0)
    numbers = (
        pending.submitted_at,
        float(needs[DEVICES:].sum() / UNITS_PER_DEVICE),
        pending.request.terms.time_limit_s,
        pending.deadline_at,
        float(pending.preemptions),
    )
    haste = Haste(*(np.array([n], np.float64) for n in (*expected, share)))
    submitted, devices, limit, deadline, stops = (np.array([n], np.float64) for n in numbers)
    jobs = Jobs(submitted, devices, limit, deadline, stops, haste)
    gained = gains(jobs, settings, now=now, backlog_s=snapshot.pace.backlog_s)
    factors = [Factor(name, float(seconds[0]), _SECONDS) for name, seconds in gained.items()]
    return (*factors, Factor("total", sum(f.value for f in factors), _SECONDS))


def _needs(snapshot: Snapshot, pending: PendingJob) -> Needs:
    number = snapshot.kinds
    need = need_of(pending.request, lambda kind: number.get(kind, len(number)))
    return stack([need], snapshot.shares.capacity)


def _kinds(snapshot: Snapshot, vertex: int) -> tuple[KindShare, ...]:
    found = snapshot.shares
    rows = [
        KindShare(
            kind,
            held=-(-int(found.held[vertex, DEVICES + number]) // UNITS_PER_BLOCK),
            deserved=int(found.deserved[vertex, number]) // UNITS_PER_BLOCK,
            capacity=int(found.capacity[DEVICES + number]) // UNITS_PER_BLOCK,
        )
        for kind, number in sorted(snapshot.kinds.items())
    ]
    return tuple(row for row in rows if row.held or row.deserved)


def _priority(pending: PendingJob) -> Factor:
    return Factor("priority", float(pending.priority))
