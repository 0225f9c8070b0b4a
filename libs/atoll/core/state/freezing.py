"""Parts of a snapshot that are worked out from the world's tables."""

from collections.abc import Sequence

from atoll.core.state.heads import Heads
from atoll.core.state.job_queue import JobClass, JobQueue
from atoll.core.state.node_table import NodeTable
from atoll.core.state.queue_books import QueueBooks
from atoll.core.state.snapshot import ClassView, QueueView


def class_views(classes: Sequence[JobClass], books: QueueBooks) -> tuple[ClassView, ...]:
    """Classes as they stand, with the numbers of the limits that bind them."""
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
        )
        for c in classes
    )


def queue_view(queue: JobQueue, classes: tuple[ClassView, ...], heads: Heads) -> QueueView:
    """The heads of the classes by value."""
    columns = queue.table.columns
    return QueueView(
        classes=classes,
        first=heads.first,
        more=heads.more,
        job=columns.job[heads.slots],
        revision=columns.revision[heads.slots],
        submitted_at=columns.submitted_at[heads.slots],
        attempts=columns.attempts[heads.slots],
        deadline_at=columns.deadline_at[heads.slots],
        guaranteed=columns.guaranteed[heads.slots],
        preemptions=columns.preemptions[heads.slots],
        trace=columns.trace[heads.slots].tolist(),
    )


def level_order(table: NodeTable) -> tuple[tuple[str, int], ...]:
    """Levels with their columns, the narrowest first."""
    levels = sorted(table.levels.values, key=lambda level: (-table.depth[level], level))
    return tuple((level, table.levels.number[level]) for level in levels)
