"""What changes of size have in common over the backends."""

from collections.abc import Iterable, Sequence

from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.plan import TaskPlacement
from atoll.ports.backend import ResizeOrder, RunEvent

Tasks = tuple[TaskPlacement, ...]


def changed_tasks(
    running: Sequence[TaskPlacement], wanted: Sequence[TaskPlacement]
) -> tuple[Tasks, Tasks]:
    """Of what runs that which goes on, and what is to begin."""
    ranks = {task.rank for task in wanted}
    kept = tuple(task for task in running if task.rank in ranks)
    here = {task.rank for task in kept}
    return kept, tuple(task for task in wanted if task.rank not in here)


def resized(order: ResizeOrder, running: Iterable[TaskPlacement]) -> RunEvent:
    """The answer to an order."""
    return RunEvent(
        order.attempt,
        AttemptEvent.RESIZED,
        generation=order.generation,
        ranks=tuple(sorted(task.rank for task in running)),
    )
