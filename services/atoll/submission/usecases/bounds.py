"""How many jobs a queue may hold: refuse, never drop."""

from collections.abc import Mapping

from atoll.core.model.errors import ErrorCode, Exhausted
from atoll.core.model.ids import QueueName
from atoll.core.model.job import Queue


class Rooms:
    """The room left in queues while one transaction fills them.

    `most_queued` is the bound of queues that have none of their own.
    """

    def __init__(
        self,
        queues: Mapping[QueueName, Queue],
        counts: Mapping[QueueName, int],
        *,
        most_queued: int,
    ) -> None:
        self._queues = queues
        self._counts = dict(counts)
        self._most_queued = most_queued

    def take(self, adding: Mapping[QueueName, int]) -> None:
        """Fill all queues of a call, or none and raise Exhausted QUEUE_FULL."""
        for name, more in adding.items():
            queue, count = self._queues[name], self._counts.get(name, 0)
            bound = queue.max_queued_jobs or self._most_queued
            if count + more > bound:
                raise _full(name, count=count, bound=bound, more=more)
        for name, more in adding.items():
            self._counts[name] = self._counts.get(name, 0) + more


def _full(name: QueueName, *, count: int, bound: int, more: int) -> Exhausted:
    return Exhausted(
        f"queue {name} holds {count:,} jobs of at most {bound:,}: no room for {more:,} more",
        code=ErrorCode.QUEUE_FULL,
        metadata={"queue": name, "queued": str(count), "limit": str(bound)},
    )
