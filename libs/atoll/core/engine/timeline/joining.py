"""A survey with one job more, which is not submitted yet."""

from dataclasses import replace

import numpy as np

from atoll.core.engine.explain import UNKNOWN_KIND, view_of
from atoll.core.model.plan import PendingJob
from atoll.core.state.run_times import job_like
from atoll.core.state.shape_table import shapes_of
from atoll.core.state.snapshot import ClassView, QueueView, Snapshot
from atoll.core.state.survey import Survey


def joined(survey: Survey, pending: PendingJob) -> Survey:
    """The job comes last, as a class of its own."""
    snapshot = survey.snapshot
    view = _view(survey, pending)
    values = tuple(shape for group in pending.request.groups for shape in group.shapes)
    kinds = snapshot.kinds
    rows = shapes_of(values, lambda kind: kinds.get(kind, UNKNOWN_KIND))[: len(values)]
    return replace(
        survey,
        snapshot=replace(
            snapshot,
            shapes=np.concatenate([snapshot.shapes[: len(snapshot.shape_values)], rows]),
            shape_values=(*snapshot.shape_values, *values),
            queue=_with(snapshot.queue, view, pending),
        ),
        place=np.append(survey.place, 0),
        total=np.append(survey.total, 1),
    )


def _view(survey: Survey, pending: PendingJob) -> ClassView:
    snapshot: Snapshot = survey.snapshot
    view = view_of(snapshot, pending)
    first = len(snapshot.shape_values)
    limit_s = pending.request.terms.time_limit_s
    like = job_like(pending.queue, view.need, limit_s=limit_s)
    return replace(
        view,
        shapes=tuple(tuple(first + number for number in group) for group in view.shapes),
        expected=survey.times.one(like),
    )


def _with(queue: QueueView, view: ClassView, pending: PendingJob) -> QueueView:
    return replace(
        queue,
        classes=(*queue.classes, view),
        first=np.append(queue.first, queue.first[-1] + 1),
        more=np.append(queue.more, False),
        job=np.append(queue.job, pending.id),
        revision=np.append(queue.revision, pending.revision),
        submitted_at=np.append(queue.submitted_at, pending.submitted_at),
        attempts=np.append(queue.attempts, pending.attempts),
        deadline_at=np.append(queue.deadline_at, pending.deadline_at),
        guaranteed=np.append(queue.guaranteed, pending.guaranteed),
        preemptions=np.append(queue.preemptions, pending.preemptions),
        trace=[*queue.trace, pending.trace],
    )
