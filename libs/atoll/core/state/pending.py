"""Queued jobs in columns: some 100 bytes a job, so that a million of them is no matter."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.ids import JobId
from atoll.core.model.plan import PendingJob
from atoll.core.state.columns import copy_leading
from atoll.core.state.id_map_kernels import drop, find, put

Ints = NDArray[np.int64]
MOST_PREEMPTIONS: Final = 32_767
"""More are not told apart."""


class Columns(NamedTuple):
    """One entry per slot; a free slot has job 0."""

    job: NDArray[np.int64]
    revision: NDArray[np.int64]
    submitted_at: NDArray[np.float64]
    begin_at: NDArray[np.float64]
    attempts: NDArray[np.int32]
    group: NDArray[np.int32]
    """Number of the job's class."""
    waits: NDArray[np.int32]
    """Dependencies that have not succeeded yet."""
    deadline_at: NDArray[np.float64]
    guaranteed: NDArray[np.bool_]
    preemptions: NDArray[np.int16]
    trace: NDArray[np.object_]


class PendingTable:
    """Slots of pending jobs, found by id."""

    def __init__(self) -> None:
        self.columns = _columns(1024)
        self.count = 0
        self._keys = np.zeros(4096, np.int64)
        self._slots = np.zeros(4096, np.int32)
        self._free = np.arange(1024, dtype=np.int32)[::-1].copy()

    def find(self, ids: Iterable[JobId] | Ints) -> Ints:
        """Slots by id, -1 for those that are not here."""
        wanted = ids if isinstance(ids, np.ndarray) else np.fromiter(ids, np.int64)
        return find(self._keys, self._slots, wanted)

    def add(self, jobs: Sequence[PendingJob], *, groups: Ints, waits: Ints) -> Ints:
        """Enter distinct jobs that are not here yet; their slots."""
        self._reserve(len(jobs))
        size = len(jobs)
        left = len(self._columns_free()) - size
        slots = self._columns_free()[left:].astype(np.int64)
        self.count += size
        columns = self.columns
        columns.job[slots] = np.fromiter((job.id for job in jobs), np.int64, size)
        columns.revision[slots] = np.fromiter((job.revision for job in jobs), np.int64, size)
        columns.submitted_at[slots] = [job.submitted_at for job in jobs]
        columns.begin_at[slots] = [job.begin_at for job in jobs]
        columns.attempts[slots] = [job.attempts for job in jobs]
        columns.group[slots] = groups
        columns.waits[slots] = waits
        columns.deadline_at[slots] = [job.deadline_at for job in jobs]
        columns.guaranteed[slots] = [job.guaranteed for job in jobs]
        columns.preemptions[slots] = [min(job.preemptions, MOST_PREEMPTIONS) for job in jobs]
        columns.trace[slots] = _shared([job.trace for job in jobs])
        put(self._keys, self._slots, columns.job[slots], slots)
        return slots

    def remove(self, slots: Ints) -> None:
        """Free distinct slots."""
        drop(self._keys, self._slots, self.columns.job[slots])
        self.columns.job[slots] = 0
        self.columns.trace[slots] = None
        free = len(self._columns_free())
        self.count -= len(slots)
        self._free[free : free + len(slots)] = slots

    def _columns_free(self) -> NDArray[np.int32]:
        return self._free[: len(self.columns.job) - self.count]

    def _reserve(self, more: int) -> None:
        have = len(self.columns.job)
        if self.count + more > have:
            self._grow(max(have * 2, self.count + more))
        if (self.count + more) * 2 > len(self._keys):
            places = 1 << ((self.count + more) * 2).bit_length()
            live = np.flatnonzero(self.columns.job)
            self._keys, self._slots = np.zeros(places, np.int64), np.zeros(places, np.int32)
            put(self._keys, self._slots, self.columns.job[live], live)

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
        revision=np.zeros(size, np.int64),
        submitted_at=np.zeros(size, np.float64),
        begin_at=np.zeros(size, np.float64),
        attempts=np.zeros(size, np.int32),
        group=np.zeros(size, np.int32),
        waits=np.zeros(size, np.int32),
        deadline_at=np.zeros(size, np.float64),
        guaranteed=np.zeros(size, np.bool_),
        preemptions=np.zeros(size, np.int16),
        trace=np.full(size, None, object),
    )


def _shared(traces: list[str]) -> NDArray[np.object_]:
    # Jobs of one submit have equal traces; keeping one object saves 100 bytes a job.
    kept: dict[str, str] = {}
    result: NDArray[Any] = np.empty(len(traces), object)
    result[:] = [kept.setdefault(trace, trace) for trace in traces]
    return result
