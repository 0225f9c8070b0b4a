"""What attempts were counted with, in columns: many come and go at once."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.ids import AttemptId

Ints = NDArray[np.int64]


class AmountTable:
    """A vertex and amounts by attempt."""

    def __init__(self) -> None:
        self._slot: dict[AttemptId, int] = {}
        self._vertex = np.zeros(16, np.int64)
        self._amount = np.zeros((16, 1), np.int64)
        self._free = list(range(16))

    def add(self, attempts: Sequence[AttemptId], vertices: Ints, amounts: Ints) -> None:
        """Enter attempts that are not here; `amounts`: (attempts, R), at least as wide as ever."""
        self._reserve(len(attempts), amounts.shape[1])
        slots = self._free[len(self._free) - len(attempts) :]
        del self._free[len(self._free) - len(attempts) :]
        self._slot.update(zip(attempts, slots, strict=True))
        self._vertex[slots] = vertices
        self._amount[slots] = 0
        self._amount[slots, : amounts.shape[1]] = amounts

    def pop(self, attempts: Iterable[AttemptId]) -> tuple[Ints, Ints]:
        """Take out those attempts that are here: their vertices, and (attempts, R) amounts."""
        slots = [s for a in attempts if (s := self._slot.pop(a, None)) is not None]
        self._free.extend(slots)
        return self._vertex[slots], self._amount[slots]

    def _reserve(self, more: int, wide: int) -> None:
        have, columns = self._amount.shape
        missing = more - len(self._free)
        if missing <= 0 and wide <= columns:
            return
        size = have if missing <= 0 else max(2 * have, have + missing)
        vertex, amount = np.zeros(size, np.int64), np.zeros((size, max(wide, columns)), np.int64)
        vertex[:have], amount[:have, :columns] = self._vertex, self._amount
        self._vertex, self._amount = vertex, amount
        self._free.extend(range(have, size))
