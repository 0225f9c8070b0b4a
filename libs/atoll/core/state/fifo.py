"""The jobs of one class in order of (submitted_at, id), eight bytes a job.

Most jobs come last and are appended. The others (rolled back, or late by a
clock's difference) wait in a short list until it pays to merge them. A job
that left is found missing when its turn comes.
"""

import numpy as np
from numpy.typing import NDArray

from atoll.core.state.pending import PendingTable

Ints = NDArray[np.int64]
MERGE_AT = 4096
SLOW_GROWTH = 1 << 12
"""Beyond so many ids the room grows by an eighth and no longer twofold."""


class Fifo:
    """Ids of jobs; ids that are no longer of this class may be among them."""

    def __init__(self) -> None:
        self._ids = np.zeros(4, np.int64)
        self._head = 0
        self._end = 0
        self._late: list[int] = []
        self._last = (-np.inf, 0)

    @property
    def empty(self) -> bool:
        """True when nothing is in it, not even what has left meanwhile."""
        return self._head == self._end and not self._late

    def push(self, job: int, submitted_at: float) -> None:
        """Enter a job at its place; one that is here already may be entered again."""
        if (submitted_at, job) < self._last:
            self._late.append(job)
            return
        self._last = (submitted_at, job)
        if self._end == len(self._ids):
            self._make_room()
        self._ids[self._end] = job
        self._end += 1

    def window(self, size: int) -> tuple[Ints, int, bool]:
        """Ids among which the first jobs are, how many of them came in order, more behind."""
        more = self._end - self._head > size
        main = self._ids[self._head : min(self._end, self._head + size)]
        ids = np.concatenate([main, np.array(self._late, np.int64)]) if self._late else main
        return ids, len(main), more

    def sampled(self, most: int) -> tuple[Ints, Ints, int]:
        """Up to `most` ids, evenly over all, with their places; and how many ids there are."""
        size = self._end - self._head
        places = np.unique(np.linspace(0, max(0, size - 1), min(most, size)).astype(np.int64))
        return self._ids[self._head + places], places, size

    def skip(self, count: int) -> None:
        """Forget the first `count` ids of the window: they have left."""
        self._head = min(self._end, self._head + count)

    def tidy(self, table: PendingTable, group: int, live: int) -> None:
        """Drop what left and merge what came late, once there is much of either."""
        size = self._end - self._head
        if len(self._late) < min(MERGE_AT, live + 64) and size <= 2 * live + 64:
            return
        ids = np.concatenate([self._ids[self._head : self._end], np.array(self._late, np.int64)])
        slots = table.find(ids)
        slots = slots[(slots >= 0) & (table.columns.group[slots] == group)]
        job, submitted = table.columns.job[slots], table.columns.submitted_at[slots]
        order = np.lexsort((job, submitted))
        job = job[order]
        job = job[np.diff(job, prepend=0) != 0]
        self._ids = job if len(job) else np.zeros(4, np.int64)
        self._head, self._end, self._late = 0, len(job), []

    def _make_room(self) -> None:
        size = self._end - self._head
        more = size // 8 if size >= SLOW_GROWTH else size
        kept = np.zeros(max(4, size + more), np.int64)
        kept[:size] = self._ids[self._head : self._end]
        self._ids, self._head, self._end = kept, 0, size
