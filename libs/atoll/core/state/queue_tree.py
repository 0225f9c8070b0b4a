"""The tree of queues as numbers. Names are paths; a parent needs no row of its own."""

from collections.abc import Iterator
from typing import Final

from atoll.core.model.ids import QueueName

ROOT: Final = 0
"""Vertex of the whole; it has no name."""
NO_PARENT: Final = -1


def ancestry(queue: QueueName) -> Iterator[QueueName]:
    """`a.b.c`, `a.b`, `a`."""
    name = str(queue)
    while name:
        yield QueueName(name)
        name = name.rpartition(".")[0]


class QueueTree:
    """Vertices in the order in which their names came: a parent before its children."""

    def __init__(self) -> None:
        self.names: list[QueueName] = [QueueName("")]
        self.parent: list[int] = [NO_PARENT]
        self._chains: list[tuple[int, ...]] = [(ROOT,)]
        self._number: dict[QueueName, int] = {QueueName(""): ROOT}

    def __len__(self) -> int:
        return len(self.names)

    def __call__(self, queue: QueueName) -> int:
        """The vertex of a queue, a new one for a name that is new."""
        known = self._number.get(queue)
        return self._enter(queue) if known is None else known

    def find(self, queue: QueueName) -> int | None:
        """The vertex of a queue; None when its name never came."""
        return self._number.get(queue)

    def chain(self, vertex: int) -> tuple[int, ...]:
        """The vertex and its ancestors up to the root."""
        return self._chains[vertex]

    def _enter(self, queue: QueueName) -> int:
        parent = self(QueueName(str(queue).rpartition(".")[0]))
        vertex = self._number[queue] = len(self.names)
        self.names.append(queue)
        self.parent.append(parent)
        self._chains.append((vertex, *self._chains[parent]))
        return vertex
