"""A snapshot with one job in its queue."""

from dataclasses import replace

import numpy as np

from atoll.core.engine.explain import UNKNOWN_KIND, view_of
from atoll.core.model.plan import PendingJob
from atoll.core.state.shape_table import shapes_of
from atoll.core.state.snapshot import QueueView, Snapshot


def alone(snapshot: Snapshot, pending: PendingJob) -> Snapshot:
    """The snapshot with one job in its queue and the shapes of that job, for a question."""
    values = tuple(shape for group in pending.request.groups for shape in group.shapes)
    return replace(
        snapshot,
        shapes=shapes_of(values, lambda kind: snapshot.kinds.get(kind, UNKNOWN_KIND)),
        shape_values=values,
        queue=_queue_of(snapshot, pending),
        rentals=snapshot.rentals.asked(),
    )


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
