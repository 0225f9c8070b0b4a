"""Texts that many entries share, as numbers: forgotten with the last entry that has them."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
EMPTY: Final = 0


class SharedTexts:
    """Texts by number; 0 is the empty one."""

    def __init__(self) -> None:
        self._number = {"": EMPTY}
        self._texts = [""]
        self._uses = [0]
        self._free: list[int] = []

    def hold(self, texts: Sequence[str]) -> Ints:
        """The number of every text; to be let go as often."""
        counts: dict[str, int] = {}
        for text in texts:
            counts[text] = counts.get(text, 0) + 1
        for text, count in counts.items():
            self._uses[self._numbered(text)] += count
        return np.array([self._number[text] for text in texts], np.int64)

    def let_go(self, numbers: Ints) -> None:
        """End one use of each number."""
        for number, count in zip(*np.unique(numbers, return_counts=True), strict=True):
            self._uses[number] -= int(count)
            if not self._uses[number] and number != EMPTY:
                del self._number[self._texts[number]]
                self._texts[number] = ""
                self._free.append(int(number))

    def texts(self, numbers: Ints) -> list[str]:
        """The text of every number."""
        return [self._texts[number] for number in numbers.tolist()]

    def _numbered(self, text: str) -> int:
        known = self._number.get(text)
        if known is not None:
            return known
        if self._free:
            number = self._free.pop()
            self._texts[number] = text
        else:
            number = len(self._texts)
            self._texts.append(text)
            self._uses.append(0)
        self._number[text] = number
        return number
