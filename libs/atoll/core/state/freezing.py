"""Parts of a snapshot that are worked out from the world's tables."""

from collections.abc import Sequence

import numpy as np

from atoll.core.state.heads import Heads
from atoll.core.state.job_queue import JobClass, JobQueue
from atoll.core.state.node_table import NodeTable
from atoll.core.state.queue_books import QueueBooks
from atoll.core.state.run_times import RunTimesView, form_of
from atoll.core.state.snapshot import ClassView, QueueView


def class_views(
    classes: Sequence[JobClass], books: QueueBooks, times: RunTimesView
) -> tuple[ClassView, ...]:
    """Classes as they stand, with the numbers of the limits that bind them."""
    expected = times.expected(
        times.owners(c.queue for c in classes),
        form_of(
            np.array([c.need.cpu_milli for c in classes], np.int64),
            np.array([sum(units for _, units in c.need.devices) for c in classes], np.int64),
        ),
        np.array([c.request.terms.time_limit_s for c in classes], np.float64),
    )
    return tuple(
        ClassView(
            number=c.number,
            queue=c.queue,
            request=c.request,
            priority=c.priority,
            shapes=c.shapes,
            limits=books.limits_of(c.queue),
            vertex=c.vertex,
            need=c.need,
            jobs=c.live,
            expected=(hurry, length),
        )
        for c, (hurry, length) in zip(classes, expected.tolist(), strict=True)
    )


def queue_view(queue: JobQueue, classes: tuple[ClassView, ...], heads: Heads) -> QueueView:
    """The heads of the classes by value."""
    table, slots = queue.table, heads.slots
    columns = table.columns
    return QueueView(
        classes=classes,
        first=heads.first,
        more=heads.more,
        job=columns.job[slots],
        revision=columns.revision[slots].astype(np.int64),
        submitted_at=columns.submitted_at[slots],
        attempts=columns.attempts[slots],
        deadline_at=table.deadline_at(slots),
        guaranteed=table.guaranteed(slots),
        preemptions=table.preemptions(slots),
        trace=table.traces(slots),
    )


def level_order(table: NodeTable) -> tuple[tuple[str, int], ...]:
    """Levels with their columns, the narrowest first."""
    levels = sorted(table.levels.values, key=lambda level: (-table.depth[level], level))
    return tuple((level, table.levels.number[level]) for level in levels)
