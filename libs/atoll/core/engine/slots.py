"""Numbers for what is kept over cycles, given away when room is short and nobody asks for them."""

from collections.abc import Collection, Hashable, Sequence
from typing import Final, Generic, TypeVar

import numpy as np

K = TypeVar("K", bound=Hashable)
NEVER: Final = -1
"""Before any change: a number of which nothing is known."""


class Slots(Generic[K]):
    """Numbers below `wide` by key, and when what is kept for them was true."""

    def __init__(self, step: int) -> None:
        self.number: dict[K, int] = {}
        self.true_at = np.full(0, NEVER, np.int64)
        self._step = step

    @property
    def wide(self) -> int:
        """Numbers that there are, a multiple of the step."""
        return len(self.true_at)

    def assign(self, keys: Sequence[K], *, most: int) -> list[int]:
        """The number of every key. `most`: numbers, unless the keys alone are more."""
        wanted = dict.fromkeys(keys)
        new = [key for key in wanted if key not in self.number]
        self._make_room(len(new), wanted, most=max(most, len(wanted)))
        free = iter(sorted(set(range(self.wide)) - set(self.number.values())))
        self.number.update((key, next(free)) for key in new)
        return [self.number[key] for key in keys]

    def _make_room(self, new: int, wanted: Collection[K], *, most: int) -> None:
        missing = new - (self.wide - len(self.number))
        if missing <= 0:
            return
        if self.wide + missing <= most:
            self._widen(min(most, max(self.wide + missing, 2 * self.wide)))
            return
        self._widen(min(most, self.wide + missing))
        idle = [key for key in self.number if key not in wanted]
        idle.sort(key=lambda key: int(self.true_at[self.number[key]]))
        for key in idle[: new - (self.wide - len(self.number))]:
            self.true_at[self.number.pop(key)] = NEVER

    def _widen(self, wide: int) -> None:
        more = -(-wide // self._step) * self._step - self.wide
        self.true_at = np.append(self.true_at, np.full(max(0, more), NEVER, np.int64))
