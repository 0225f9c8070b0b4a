"""What few queued jobs have: a later begin, a deadline, evictions. The others share number 0."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.plan import PendingJob
from atoll.core.state.columns import copy_leading

Ints = NDArray[np.int64]
NOTHING: Final = 0
MOST_PREEMPTIONS: Final = 32_767
"""More are not told apart."""


class Facts(NamedTuple):
    """By number."""

    begin_at: NDArray[np.float64]
    deadline_at: NDArray[np.float64]
    guaranteed: NDArray[np.bool_]
    preemptions: NDArray[np.int16]


class RareFacts:
    """Facts of jobs that have any."""

    def __init__(self) -> None:
        self.facts = _facts(16)
        self._free = list(range(15, NOTHING, -1))

    def add(self, jobs: Sequence[PendingJob]) -> Ints:
        """A number for each job, NOTHING for those that have none of it."""
        numbers = np.zeros(len(jobs), np.int64)
        for at, job in enumerate(jobs):
            if job.begin_at or job.deadline_at or job.guaranteed or job.preemptions:
                numbers[at] = self._new(job)
        return numbers

    def remove(self, numbers: Ints) -> None:
        """Give numbers back."""
        self._free.extend(numbers[numbers != NOTHING].tolist())

    def _new(self, job: PendingJob) -> int:
        if not self._free:
            self._grow()
        number, facts = self._free.pop(), self.facts
        facts.begin_at[number], facts.deadline_at[number] = job.begin_at, job.deadline_at
        facts.guaranteed[number] = job.guaranteed
        facts.preemptions[number] = min(job.preemptions, MOST_PREEMPTIONS)
        return number

    def _grow(self) -> None:
        have = len(self.facts.begin_at)
        grown = _facts(2 * have)
        copy_leading(self.facts, grown)
        self.facts = grown
        self._free.extend(range(2 * have - 1, have - 1, -1))


def _facts(size: int) -> Facts:
    return Facts(
        np.zeros(size, np.float64),
        np.zeros(size, np.float64),
        np.zeros(size, np.bool_),
        np.zeros(size, np.int16),
    )
