"""Which of the nodes' label sets hold certain labels, without looking at every node."""

import numpy as np
from numpy.typing import NDArray

from atoll.core.state.interning import Interner, Labels


class LabelSets:
    """Distinct label sets of nodes, with an index from a label to the sets that hold it."""

    def __init__(self) -> None:
        self.sets: Interner[Labels] = Interner()
        self._holders: dict[tuple[str, str], list[int]] = {}
        self._having: dict[str, list[int]] = {}
        """By key, whatever the value."""

    def number(self, labels: Labels) -> int:
        """The number of a label set."""
        known = len(self.sets)
        number = self.sets(labels)
        if number == known:
            for label in labels:
                self._holders.setdefault(label, []).append(number)
                self._having.setdefault(label[0], []).append(number)
        return number

    def holding(self, wanted: Labels, *, count: int) -> NDArray[np.bool_]:
        """(count) True for the first `count` sets that hold every wanted label."""
        mask = np.ones(count, np.bool_)
        for label in wanted:
            here = np.zeros(count, np.bool_)
            numbers = np.array(self._holders.get(label, ()), np.int64)
            here[numbers[numbers < count]] = True
            mask &= here
        return mask

    def having(self, unwanted: Labels, *, count: int) -> NDArray[np.bool_]:
        """(count) True for the first `count` sets that hold any of the labels.

        A label without a value stands for all values of its key.
        """
        mask = np.zeros(count, np.bool_)
        for key, value in unwanted:
            found = self._holders.get((key, value), ()) if value else self._having.get(key, ())
            numbers = np.array(found, np.int64)
            mask[numbers[numbers < count]] = True
        return mask
