"""When capacity last grew, so that a class that did not fit is not tried for nothing."""

from collections.abc import Iterable, Sequence

from atoll.core.model.ids import QueueName
from atoll.core.state.columns import ANY


class Stamps:
    """A counter that grows with every change that could make some class fit."""

    def __init__(self) -> None:
        self.now = 0
        self._settings = 0
        self._any = 0
        self._kind: dict[int, int] = {}
        self._limit: dict[QueueName, int] = {}

    def settings_changed(self) -> None:
        """Anything may fit now."""
        self.now += 1
        self._settings = self.now

    def grew(self, kinds: Iterable[int]) -> None:
        """CPU, memory, and perhaps devices of some kinds were freed or came."""
        self.now += 1
        self._any = self.now
        for kind in kinds:
            self._kind[kind] = self.now

    def limit_freed(self, queues: Iterable[QueueName]) -> None:
        """Queues hold less than they did."""
        self.now += 1
        for queue in queues:
            self._limit[queue] = self.now

    def latest(self, watch: Sequence[int], bound: Sequence[QueueName]) -> int:
        """The last change that matters to these kinds (ANY: all) and queues with limits."""
        stamps = [self._any if kind == ANY else self._kind.get(kind, 0) for kind in watch]
        limits = [self._limit.get(queue, 0) for queue in bound]
        return max(self._settings, *stamps, *limits)
