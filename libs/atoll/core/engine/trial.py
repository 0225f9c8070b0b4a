"""A dry run: what a cycle would do for one job if it were the only one in the queue.

It is the cycle's own `plan` on a snapshot whose queue has that job alone, so
that the answer is what the next cycle would decide for it.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.random import Generator

from atoll.core.engine.alone import alone
from atoll.core.engine.cycle import CycleLimits, plan
from atoll.core.engine.explain import Explanation, explain
from atoll.core.model.ids import ClusterName
from atoll.core.model.plan import Eviction, PendingJob, Plan, TaskPlacement
from atoll.core.policies.interfaces import Policies
from atoll.core.state.columns import STATUS_OK, Nodes
from atoll.core.state.snapshot import ClusterView, Snapshot
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


def vacated(snapshot: Snapshot) -> Snapshot:
    """The snapshot as if nothing ran, nothing was held, and every node took work.

    Rented machines do not count: they will not be there for long.
    """
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
        rentals=snapshot.rentals.shut(),
    )


def _planned(
    snapshot: Snapshot, policies: Policies, *, now: float, rng: Generator, limits: CycleLimits
) -> Plan:
    return plan(snapshot, policies, now=now, rng=rng, limits=replace(limits, max_placements=1))


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
