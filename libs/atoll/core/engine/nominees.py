"""Starts jobs on what is held for them, as soon as their victims are gone."""

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.masks import Masks
from atoll.core.engine.windows.admission import Admission, Entrance, taken
from atoll.core.engine.windows.bookings import claimant
from atoll.core.model.ids import attempt_id
from atoll.core.model.plan import GangPlacement
from atoll.core.state.columns import Nodes
from atoll.core.state.holds import Hold
from atoll.core.state.ledger_kernels import take_gangs
from atoll.core.state.snapshot import Snapshot

_FIRST: Final = 1 << 40
"""Before whatever an order says."""


def start_nominees(
    masks: Masks, nodes: Nodes
) -> tuple[tuple[GangPlacement, ...], tuple[Hold, ...]]:
    """Place jobs on exactly what is held for them, where that is free; the holds that remain.

    `nodes`: the free columns of the cycle; those that start have taken their hold there.
    """
    snapshot = masks.snapshot
    order = sorted(snapshot.holds, key=lambda hold: (-hold.job.priority, hold.job.id))
    mode = snapshot.hardware.models.mode
    admission = Admission(masks.bookings, None)
    started = [h for h in order if _may_start(h, masks) and _takes(h, nodes, admission, mode=mode)]
    jobs = {hold.job.id for hold in started}
    left = tuple(hold for hold in snapshot.holds if hold.job.id not in jobs)
    # Its hold stays taken: the job has it now.
    return tuple(placement_on(hold) for hold in started), left


def favour(snapshot: Snapshot, outer: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order of jobs, those in front whose queues lost capacity to a hold for nothing.

    Before all of them are those that were promised a start. `outer`: (J) what is compared first.
    """
    if snapshot.pace.promised:
        promised = np.isin(snapshot.queue.job, np.array([*snapshot.pace.promised], np.int64))
        outer = outer - promised * (2 * _FIRST)
    if not snapshot.first:
        return outer
    sizes = np.diff(snapshot.queue.first)
    first = [view.queue in snapshot.first for view in snapshot.queue.classes]
    return outer - np.repeat(np.array(first, np.int64), sizes) * _FIRST


def placement_on(hold: Hold) -> GangPlacement:
    """The job of a hold, placed exactly on it."""
    job, nomination = hold.job, hold.nomination
    return GangPlacement(
        job=job.id,
        revision=job.revision,
        attempt=attempt_id(job.id, job.attempts + 1),
        cluster=nomination.cluster,
        queue=job.queue,
        request=job.request,
        submitted_at=job.submitted_at,
        tasks=nomination.tasks,
        trace=job.trace,
        priority=job.priority,
        deadline_at=job.deadline_at,
        guaranteed=job.guaranteed,
        preemptions=job.preemptions,
    )


def _may_start(hold: Hold, masks: Masks) -> bool:
    limits, job = masks.snapshot.limits, hold.job
    if any(limits.used[n] > limits.limit[n] for n in limits.of(job.queue)):
        return False
    if job.request.anti_affinity is not None:
        # It is not kept apart from itself.
        others = tuple(h for h in masks.snapshot.holds if h is not hold)
        masks = Masks(replace(masks.snapshot, holds=others), masks.policies, masks.now)
    of = np.array([task.group for task in hold.nomination.tasks], np.int64)
    # What was allowed when it was held need not be any more: nodes go down, others come near.
    return all(
        any(
            masks.unbooked(job.request, shape)[hold.uses.row[of == number]].all()
            for shape in shapes
        )
        for number, shapes in enumerate(group.shapes for group in job.request.groups)
    )


def _entrance(hold: Hold, admission: Admission, nodes: Nodes) -> Entrance | None:
    """Onto the rows that are held, past bookings; None: it is to wait for its own."""
    who, now = claimant(hold.job.queue, hold.job.request), admission.now
    if who.reservation:
        return admission.owners(who, nodes, at=now)
    return admission.others(who, nodes, np.unique(hold.uses.row))


def _takes(hold: Hold, nodes: Nodes, admission: Admission, *, mode: NDArray[np.int8]) -> bool:
    entrance = _entrance(hold, admission, nodes)
    if entrance is None or not entrance.rows[hold.uses.row].all():
        return False
    hold.give_back(nodes)
    with taken(nodes, entrance.kept):
        refused = take_gangs(nodes, mode, hold.uses, True).any()
    if refused:
        hold.take(nodes)
    return not refused
