"""Queue limits: hard, and a queue's limit binds everything below it in the tree."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.ids import QueueName
from atoll.core.model.job import Queue
from atoll.core.state.ledger import Holding
from atoll.core.state.mig import UNITS_PER_BLOCK, grant_units


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a snapshot in 1/56 block: what is used below each queue that has one."""

    queues: tuple[QueueName, ...]
    used: NDArray[np.int64]
    limit: NDArray[np.int64]


class LimitBook:
    """What queues hold, and what they may hold."""

    def __init__(self) -> None:
        self._limit: dict[QueueName, int] = {}
        self._used: dict[QueueName, int] = {}

    def set(self, queues: Iterable[Queue]) -> bool:
        """Enter or replace queues; True when a limit was raised or taken away."""
        raised = False
        for queue in queues:
            before = self._limit.pop(queue.name, 0)
            if queue.device_limit:
                self._limit[queue.name] = queue.device_limit * UNITS_PER_BLOCK
            after = self._limit.get(queue.name, 0)
            raised |= bool(before) and (not after or after > before)
        return raised

    def remove(self, queues: Iterable[QueueName]) -> bool:
        """Forget queues' limits; True when there was one."""
        had = sum(self._limit.pop(queue, 0) for queue in queues)
        return had > 0

    def add(self, holdings: Sequence[Holding], sign: int) -> None:
        """Count (1) or discount (-1) what attempts hold."""
        for holding in holdings:
            left = self._used.get(holding.queue, 0) + sign * _units(holding)
            self._used[holding.queue] = left
            if not left:
                del self._used[holding.queue]

    def bound(self, queue: QueueName) -> tuple[QueueName, ...]:
        """The queue and its ancestors, as far as they have limits."""
        return tuple(name for name in ancestry(queue) if name in self._limit)

    def freeze(self) -> Limits:
        """Limits and use as they stand."""
        queues = tuple(sorted(self._limit))
        used = dict.fromkeys(queues, 0)
        for queue, units in self._used.items():
            for name in self.bound(queue):
                used[name] += units
        return Limits(
            queues,
            np.array([used[name] for name in queues], np.int64),
            np.array([self._limit[name] for name in queues], np.int64),
        )


def _units(holding: Holding) -> int:
    blocks, units = 0, 0
    for task in holding.tasks:
        for grant in task.devices:
            if grant.slice_mask:
                units += grant_units(grant)
            else:
                blocks += grant.blocks
    return units + blocks * UNITS_PER_BLOCK


def ancestry(queue: QueueName) -> Iterator[QueueName]:
    """`a.b.c`, `a.b`, `a`."""
    name = str(queue)
    while name:
        yield QueueName(name)
        name = name.rpartition(".")[0]
