"""Queue limits: hard, over all device kinds or of one; they bind everything below the queue."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.ids import QueueName
from atoll.core.model.job import Queue
from atoll.core.state.interning import Interner
from atoll.core.state.mig import UNITS_PER_BLOCK
from atoll.core.state.queue_tree import QueueTree, ancestry
from atoll.core.state.shares import ShareBook

ALL_KINDS: Final = -1

__all__ = ["ALL_KINDS", "LimitBook", "Limits", "ancestry"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a snapshot in 1/56 block, and what is used below the queue that each is of."""

    queues: tuple[QueueName, ...]
    kinds: tuple[str, ...]
    """Device kind that each is of; empty for all kinds together."""
    kind: NDArray[np.int64]
    """The same as numbers; ALL_KINDS for all."""
    used: NDArray[np.int64]
    limit: NDArray[np.int64]

    def of(self, queue: QueueName) -> tuple[int, ...]:
        """Which of the limits bind a queue."""
        above = set(ancestry(queue))
        return tuple(n for n, name in enumerate(self.queues) if name in above)


class LimitBook:
    """What queues may hold."""

    def __init__(self, kinds: Interner[str]) -> None:
        self._kinds = kinds
        self._limits: dict[QueueName, dict[str, int]] = {}
        self._frozen: tuple[tuple[QueueName, ...], tuple[str, ...]] | None = None
        self._bound: dict[QueueName, tuple[QueueName, ...]] = {}
        self._numbers: dict[QueueName, tuple[int, ...]] = {}

    def set(self, queues: Iterable[Queue]) -> bool:
        """Enter or replace queues; True when a limit was raised or taken away."""
        raised = False
        for queue in queues:
            before, after = self._limits.pop(queue.name, {}), _limits_of(queue)
            if after:
                self._limits[queue.name] = after
            raised |= any(kind not in after or after[kind] > old for kind, old in before.items())
        self._forget()
        return raised

    def remove(self, queues: Iterable[QueueName]) -> bool:
        """Forget queues' limits; True when there was one."""
        had = [self._limits.pop(queue, None) for queue in queues]
        self._forget()
        return any(had)

    def bound(self, queue: QueueName) -> tuple[QueueName, ...]:
        """The queue and its ancestors, as far as they have limits."""
        known = self._bound.get(queue)
        if known is None:
            known = tuple(name for name in ancestry(queue) if name in self._limits)
            self._bound[queue] = known
        return known

    def numbers(self, queue: QueueName) -> tuple[int, ...]:
        """Which of the limits of the next snapshot bind a queue."""
        known = self._numbers.get(queue)
        if known is None:
            above = set(self.bound(queue))
            names = self._order()[0]
            known = tuple(n for n, name in enumerate(names) if name in above)
            self._numbers[queue] = known
        return known

    def freeze(self, tree: QueueTree, shares: ShareBook) -> Limits:
        """Limits and use as they stand."""
        queues, kinds = self._order()
        numbers = [self._kinds(kind) if kind else ALL_KINDS for kind in kinds]
        pairs = list(zip(queues, numbers, strict=True))
        used = [shares.held(tree(q), None if k == ALL_KINDS else k) for q, k in pairs]
        limit = [self._limits[q][kind] for q, kind in zip(queues, kinds, strict=True)]
        return Limits(
            queues,
            kinds,
            np.array(numbers, np.int64),
            np.array(used, np.int64),
            np.array(limit, np.int64),
        )

    def _order(self) -> tuple[tuple[QueueName, ...], tuple[str, ...]]:
        if self._frozen is None:
            rows = sorted((q, kind) for q, kinds in self._limits.items() for kind in kinds)
            self._frozen = tuple(q for q, _ in rows), tuple(kind for _, kind in rows)
        return self._frozen

    def _forget(self) -> None:
        self._frozen = None
        self._bound.clear()
        self._numbers.clear()


def _limits_of(queue: Queue) -> dict[str, int]:
    limits: Sequence[tuple[str, int]] = queue.kind_limits
    found = {kind: blocks * UNITS_PER_BLOCK for kind, blocks in limits}
    if queue.device_limit:
        found[""] = queue.device_limit * UNITS_PER_BLOCK
    return found
