"""Holds machines that boot for the jobs for which they were rented: what fits, in their order."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from atoll.core.engine.alone import alone
from atoll.core.engine.gangs import UNLIMITED
from atoll.core.engine.ground import Ask, ground
from atoll.core.engine.masks import Masks
from atoll.core.engine.score_kernels import Scoring
from atoll.core.model.ids import JobId
from atoll.core.model.plan import Nomination, PendingJob
from atoll.core.state.columns import Nodes
from atoll.core.state.ledger import flatten
from atoll.core.state.ledger_kernels import take_tasks
from atoll.core.state.run_columns import uses_of
from atoll.core.state.snapshot import ClusterView, Snapshot


def held_on(
    masks: Masks, scoring: Scoring, nodes: Nodes, *, without: set[JobId]
) -> Iterator[Nomination]:
    """New holds on machines that boot, but for jobs in `without`; they are taken from `nodes`."""
    rentals = masks.snapshot.rentals
    apart = {(rentals.number(hold), _name(hold.job)) for hold in rentals.holds}
    booted, done = _booted(masks.snapshot), set(without)
    for number, job in rentals.wanted:
        name = (number, _name(job))
        if job.id in done or (name[1] and name in apart):
            continue
        if rentals.not_allowed(number, job.queue, job.request):
            continue
        nomination = _held(masks, scoring, replace(booted, nodes=nodes), number=number, job=job)
        if nomination is not None:
            uses = flatten([nomination.tasks], masks.snapshot)
            take_tasks(nodes, uses, 0, len(uses.row))
            done.add(job.id)
            apart.add(name)
            yield nomination


def _booted(snapshot: Snapshot) -> Snapshot:
    """The snapshot as if all machines that boot had come up, as they are offered."""
    coming = set(snapshot.rentals.cluster)
    clusters = tuple(
        ClusterView(view.name, None, can_guard=True) if number in coming else view
        for number, view in enumerate(snapshot.clusters)
    )
    return replace(snapshot, clusters=clusters)


def _held(
    masks: Masks, scoring: Scoring, booted: Snapshot, *, number: int, job: PendingJob
) -> Nomination | None:
    rental = booted.rentals.values[number]
    part = alone(booted, job)
    there, view = Masks(part, masks.policies, masks.now), part.queue.classes[0]
    where = {
        shape: there.rented(job.request, part.task_shape(shape), job.queue, rental=number)
        for shapes in view.shapes
        for shape in shapes
    }
    rows = np.flatnonzero(np.logical_or.reduce([*where.values()]))
    if not len(rows):
        return None
    nobody = uses_of(part.running.tasks, np.zeros(0, np.int64), part.nodes)
    ask = Ask(view, 0, where, masks.policies.score.gathers)
    field, gone = ground(part, scoring._replace(shapes=part.shapes), ask, rows=rows, uses=nobody)
    found = field.without(gone > 0, UNLIMITED)
    if found is None:
        return None
    tasks = field.placement(found).tasks
    return Nomination(job.id, rental.cluster, job.queue, tasks, until=rental.give_up_at)


def _name(job: PendingJob) -> str:
    apart = job.request.anti_affinity
    return apart.name if apart is not None else ""
