"""Logs of parallel machines as columns, whatever their format."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.sim.readers.table import wrong

FIELD: Final = "workload"
"""What a fault of a log is told of."""
MOST_PROCESSORS: Final = 1 << 30
UNLIMITED_S: Final = 30 * 86_400.0
"""The request of all jobs of a log in which none has one."""

Row = tuple[float, float, float, float, float, float, float]
"""Job, submit, run, processors, request, user, and a published wait or NaN."""


@dataclass(frozen=True, slots=True, eq=False)
class ParallelLog:
    """J jobs in the order of their submits; times in seconds."""

    job: NDArray[np.int64]
    submit: NDArray[np.float64]
    run: NDArray[np.float64]
    """At most the request: a job that runs longer is stopped."""
    processors: NDArray[np.int64]
    request: NDArray[np.float64]
    """Of a job that asked for no time, the longest that any asked for."""
    user: NDArray[np.int64]
    published_wait: NDArray[np.float64]
    """By EASY backfilling; NaN where the log has none."""

    def without_first(self, percent: float) -> "ParallelLog":
        """The log without the first jobs."""
        first = int(len(self.job) * percent / 100)
        return self.chosen(np.arange(first, len(self.job)))

    def chosen(self, which: NDArray[np.int64]) -> "ParallelLog":
        """Some of the jobs."""
        columns = {name: getattr(self, name)[which] for name in self.__slots__}
        return ParallelLog(**columns)


def log_of(path: Path, rows: Sequence[Row]) -> ParallelLog:
    """Rows as columns, by submit, else as they come; raises InvalidInput when there is none."""
    if not rows:
        raise wrong(FIELD, f"{path.name}: there is no job in it")
    job, submit, run, processors, request, user, wait = np.array(rows, np.float64).T
    # Nobody may know beforehand how long a job runs, not even by what it did not ask for.
    longest = float(request.max()) if request.max() > 0 else UNLIMITED_S
    asked = np.where(request > 0, request, longest)
    order = np.argsort(submit, kind="stable")
    return ParallelLog(
        job=job.astype(np.int64),
        submit=submit,
        run=np.clip(run, 0.0, asked),
        processors=processors.astype(np.int64),
        request=asked,
        user=user.astype(np.int64),
        published_wait=wait,
    ).chosen(order)


def job_of(row: Row) -> Row | None:
    """The row; None for a job that never ran: its run time or its processors are not known.

    Raises ValueError when there is no such job.
    """
    run, processors = row[2:4]
    if run < 0 or processors < 1:
        return None
    if not processors.is_integer() or processors > MOST_PROCESSORS:
        raise ValueError(f"{processors:g} is no number of processors")
    return row
