"""A dry run: what a cycle would do for one job if it were the only one in the queue.

It is the cycle's own `plan` on a snapshot whose queue has that job alone, so
that the answer is what the next cycle would decide for it.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.random import Generator

from atoll.core.engine.cycle import CycleLimits, plan
from atoll.core.engine.explain import UNKNOWN_KIND, Explanation, explain, view_of
from atoll.core.model.ids import ClusterName
from atoll.core.model.plan import Eviction, PendingJob, Plan, TaskPlacement
from atoll.core.policies.interfaces import Policies
from atoll.core.state.columns import STATUS_OK, Nodes
from atoll.core.state.shape_table import shapes_of
from atoll.core.state.snapshot import ClusterView, QueueView, Snapshot
from atoll.core.state.windows import no_windows

DEFAULT_LIMITS: Final = CycleLimits()


@dataclass(frozen=True, slots=True)
class Trial:
    """What would become of a job that is submitted now."""

    cluster: ClusterName | None
    """Where it would go; None: nowhere for now."""
    tasks: tuple[TaskPlacement, ...]
    victims: tuple[Eviction, ...]
    """Who would be stopped for it; none: there is room."""
    explanation: Explanation
    ever: bool
    """False: even if nothing else ran it would have no place."""


def try_out(
    snapshot: Snapshot,
    pending: PendingJob,
    policies: Policies,
    *,
    now: float,
    rng: Generator,
    ahead: int = 0,
    limits: CycleLimits = DEFAULT_LIMITS,
) -> Trial:
    """Plan for `pending` alone. `ahead`: jobs before it in the order, which are left out."""
    made = _planned(alone(snapshot, pending), policies, now=now, rng=rng, limits=limits)
    found = explain(snapshot, pending, policies, now=now, ahead=ahead)
    for placement in made.placements:
        if placement.job == pending.id:
            return Trial(placement.cluster, placement.tasks, (), found, ever=True)
    for held in made.nominations:
        if held.job == pending.id:
            victims = tuple(e for e in made.evictions if e.for_job == pending.id)
            return Trial(held.cluster, held.tasks, victims, found, ever=True)
    anywhere = replace(pending, request=replace(pending.request, reservation=""))
    bare = alone(vacated(snapshot), anywhere)
    empty = _planned(bare, policies, now=now, rng=rng, limits=limits)
    return Trial(None, (), (), found, ever=bool(empty.placements))


def alone(snapshot: Snapshot, pending: PendingJob) -> Snapshot:
    """The snapshot with one job in its queue and the shapes of that job."""
    values = tuple(shape for group in pending.request.groups for shape in group.shapes)
    return replace(
        snapshot,
        shapes=shapes_of(values, lambda kind: snapshot.kinds.get(kind, UNKNOWN_KIND)),
        shape_values=values,
        queue=_queue_of(snapshot, pending),
    )


def vacated(snapshot: Snapshot) -> Snapshot:
    """The snapshot as if nothing ran, nothing was held, and every node took work."""
    nodes, running = snapshot.nodes, snapshot.running
    limits = snapshot.limits
    return replace(
        snapshot,
        nodes=_emptied(nodes),
        clusters=tuple(_opened(view) for view in snapshot.clusters),
        avoidances=(),
        limits=replace(limits, used=np.zeros_like(limits.used)),
        running=replace(running, live=np.zeros_like(running.live)),
        holds=(),
        apart={},
        windows=no_windows(),
        charges=(),
    )


def _planned(
    snapshot: Snapshot, policies: Policies, *, now: float, rng: Generator, limits: CycleLimits
) -> Plan:
    return plan(snapshot, policies, now=now, rng=rng, limits=replace(limits, max_placements=1))


def _queue_of(snapshot: Snapshot, pending: PendingJob) -> QueueView:
    return QueueView(
        classes=(view_of(snapshot, pending),),
        first=np.array([0, 1], np.int64),
        more=np.zeros(1, np.bool_),
        job=np.array([pending.id], np.int64),
        revision=np.array([pending.revision], np.int64),
        submitted_at=np.array([pending.submitted_at], np.float64),
        attempts=np.array([pending.attempts], np.int32),
        deadline_at=np.array([pending.deadline_at], np.float64),
        guaranteed=np.array([pending.guaranteed], np.bool_),
        preemptions=np.array([pending.preemptions], np.int16),
        trace=("",),
    )


def _emptied(nodes: Nodes) -> Nodes:
    return nodes._replace(
        status=np.full_like(nodes.status, STATUS_OK),
        cpu_free=nodes.cpu_cap,
        memory_free=nodes.memory_cap,
        blocks_free=nodes.blocks_cap,
        slices=np.zeros_like(nodes.slices),
    )


def _opened(view: ClusterView) -> ClusterView:
    return replace(view, closed=None)
