"""Queued jobs in columns: less than 100 bytes a job, so that a million of them is no matter."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.ids import JobId
from atoll.core.model.plan import PendingJob
from atoll.core.state.columns import copy_leading
from atoll.core.state.id_map_kernels import EMPTY, drop, find, put
from atoll.core.state.rare_facts import NOTHING, RareFacts
from atoll.core.state.shared_texts import SharedTexts

Ints = NDArray[np.int64]
LEAST: Final = 1024
SLOW_GROWTH: Final = 1 << 16
"""Tables beyond so many slots grow by an eighth and no longer twofold."""


class Columns(NamedTuple):
    """One entry per slot; a free slot has job 0."""

    job: NDArray[np.int64]
    submitted_at: NDArray[np.float64]
    revision: NDArray[np.int32]
    attempts: NDArray[np.int32]
    group: NDArray[np.int32]
    """Number of the job's class."""
    waits: NDArray[np.int32]
    """Dependencies that have not succeeded yet."""
    rare: NDArray[np.int32]
    """Number of its rare facts."""
    trace: NDArray[np.int32]
    """Number of its trace."""


class PendingTable:
    """Slots of pending jobs, found by id."""

    def __init__(self) -> None:
        self.columns = _columns(LEAST)
        self.count = 0
        self._rare = RareFacts()
        self._traces = SharedTexts()
        self._places = np.full(4 * LEAST, EMPTY, np.int32)
        self._free = np.arange(LEAST, dtype=np.int32)[::-1].copy()

    def find(self, ids: Iterable[JobId] | Ints) -> Ints:
        """Slots by id, -1 for those that are not here."""
        wanted = ids if isinstance(ids, np.ndarray) else np.fromiter(ids, np.int64)
        return find(self._places, self.columns.job, wanted)

    def begin_at(self, slots: Ints) -> NDArray[np.float64]:
        """Wall time before which jobs do not begin."""
        begin: NDArray[np.float64] = self._rare.facts.begin_at[self.columns.rare[slots]]
        return begin

    def deadline_at(self, slots: Ints) -> NDArray[np.float64]:
        """Deadlines, 0 for none."""
        deadline: NDArray[np.float64] = self._rare.facts.deadline_at[self.columns.rare[slots]]
        return deadline

    def guaranteed(self, slots: Ints) -> NDArray[np.bool_]:
        """Whether deadlines are guaranteed."""
        guaranteed: NDArray[np.bool_] = self._rare.facts.guaranteed[self.columns.rare[slots]]
        return guaranteed

    def promised(self) -> Ints:
        """Ids of jobs whose deadline is guaranteed, in order."""
        slots = np.flatnonzero(self.columns.rare)
        return np.sort(self.columns.job[slots[self.guaranteed(slots)]])

    def preemptions(self, slots: Ints) -> NDArray[np.int16]:
        """How often jobs were stopped for others."""
        preemptions: NDArray[np.int16] = self._rare.facts.preemptions[self.columns.rare[slots]]
        return preemptions

    def traces(self, slots: Ints) -> list[str]:
        """Traces of jobs."""
        return self._traces.texts(self.columns.trace[slots].astype(np.int64))

    def add(self, jobs: Sequence[PendingJob], *, groups: Ints, waits: Ints) -> Ints:
        """Enter distinct jobs that are not here yet; their slots."""
        self._reserve(len(jobs))
        size = len(jobs)
        left = len(self._columns_free()) - size
        slots = self._columns_free()[left:].astype(np.int64)
        self.count += size
        columns = self.columns
        columns.job[slots] = np.fromiter((job.id for job in jobs), np.int64, size)
        columns.submitted_at[slots] = [job.submitted_at for job in jobs]
        columns.revision[slots] = [job.revision for job in jobs]
        columns.attempts[slots] = [job.attempts for job in jobs]
        columns.group[slots] = groups
        columns.waits[slots] = waits
        columns.rare[slots] = self._rare.add(jobs)
        columns.trace[slots] = self._traces.hold([job.trace for job in jobs])
        put(self._places, columns.job, slots)
        return slots

    def remove(self, slots: Ints) -> None:
        """Free distinct slots."""
        drop(self._places, self.columns.job, slots)
        self._rare.remove(self.columns.rare[slots].astype(np.int64))
        self._traces.let_go(self.columns.trace[slots].astype(np.int64))
        self.columns.job[slots] = 0
        self.columns.rare[slots] = NOTHING
        free = len(self._columns_free())
        self.count -= len(slots)
        self._free[free : free + len(slots)] = slots

    def _columns_free(self) -> NDArray[np.int32]:
        return self._free[: len(self.columns.job) - self.count]

    def _reserve(self, more: int) -> None:
        have = len(self.columns.job)
        if self.count + more > have:
            self._grow(max(have + have // (8 if have >= SLOW_GROWTH else 1), self.count + more))
        if (self.count + more) * 2 > len(self._places):
            size = 1 << ((self.count + more) * 2).bit_length()
            self._places = np.full(size, EMPTY, np.int32)
            put(self._places, self.columns.job, np.flatnonzero(self.columns.job))

    def _grow(self, size: int) -> None:
        have = len(self.columns.job)
        grown = _columns(size)
        copy_leading(self.columns, grown)
        free = np.empty(size, np.int32)
        kept = self._columns_free()
        free[: len(kept)] = kept
        free[len(kept) : len(kept) + size - have] = np.arange(size - 1, have - 1, -1)
        self.columns, self._free = grown, free


def _columns(size: int) -> Columns:
    return Columns(
        job=np.zeros(size, np.int64),
        submitted_at=np.zeros(size, np.float64),
        revision=np.zeros(size, np.int32),
        attempts=np.zeros(size, np.int32),
        group=np.zeros(size, np.int32),
        waits=np.zeros(size, np.int32),
        rare=np.zeros(size, np.int32),
        trace=np.zeros(size, np.int32),
    )
