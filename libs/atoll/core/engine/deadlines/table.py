"""The jobs of a book as rows of arrays that grow."""

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.deadlines.fill_kernels import MOST_STEPS, NONE, Rows, rows_of
from atoll.core.engine.deadlines.terms import FOR_EVER, HOLD_PER_COST, DeadlineJob


class Table:
    """Rows by job, and jobs by row."""

    def __init__(self, jobs: int = 64, sizes: int = 8) -> None:
        self.rows = rows_of(jobs, sizes)
        self._row: dict[int, int] = {}
        self._job: dict[int, DeadlineJob] = {}
        self._free = list(range(jobs - 1, -1, -1))

    def __contains__(self, job: int) -> bool:
        return job in self._row

    def row(self, job: int) -> int:
        """The row of a job."""
        return self._row[job]

    def job(self, row: int) -> DeadlineJob:
        """The job of a row."""
        return self._job[row]

    def add(self, job: DeadlineJob, now: int) -> int:
        """A row for the job, which holds nothing yet."""
        if not self._free or len(job.sizes) > self.rows.size.shape[1]:
            self._enlarge(len(job.sizes))
        row = self._free.pop()
        self._row[job.id], self._job[row] = row, job
        _write(self.rows, row, job, now=now)
        return row

    def remove(self, job: int) -> None:
        """Free the job's row."""
        row = self._row.pop(job)
        del self._job[row]
        self._free.append(row)

    def by_deadline(self) -> NDArray[np.int64]:
        """All rows in the order of their deadlines, ties by id."""
        rows = self.rows
        return np.array(
            sorted(self._job, key=lambda row: (int(rows.deadline[row]), self._job[row].id)),
            np.int64,
        )

    @property
    def most_steps(self) -> int:
        """Bound of the breakpoints that all plans together can make in a profile."""
        return 2 * (MOST_STEPS + 1) * len(self.rows.deadline)

    def _enlarge(self, sizes: int) -> None:
        old = self.rows
        jobs = old.deadline.shape[0]
        more = 2 * jobs if not self._free else jobs
        self.rows = rows_of(more, max(sizes, old.size.shape[1]))
        for before, after in zip(old, self.rows, strict=True):
            after[tuple(slice(0, n) for n in before.shape)] = before
        self._free = list(range(more - 1, jobs - 1, -1)) + self._free


def _write(rows: Rows, row: int, job: DeadlineJob, *, now: int) -> None:
    rows.deadline[row] = job.deadline
    rows.sizes[row] = len(job.sizes)
    for i, (devices, rate) in enumerate(job.sizes):
        rows.size[row, i], rows.rate[row, i] = devices, rate
    rows.cost[row] = job.cost
    rows.hold[row] = FOR_EVER if job.rigid else HOLD_PER_COST * job.cost
    rows.left[row], rows.seen[row] = job.work, now
    rows.at[row], rows.idle[row], rows.lock[row] = NONE, 0, job.begin
    rows.steps[row], rows.end[row] = 0, 0
