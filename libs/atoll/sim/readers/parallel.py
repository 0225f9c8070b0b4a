"""Logs of parallel machines as columns, whatever their format."""

import gzip
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.errors import FieldViolation, InvalidInput

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
        raise wrong(path, "there is no job in it")
    job, submit, run, processors, request, user, wait = np.array(rows, np.float64).T
    asked = np.where(request > 0, request, np.maximum(run, 1.0))
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


def opened(path: Path) -> io.TextIOBase:
    """The text of a file that may be gzipped."""
    if path.suffix == ".gz":
        return io.TextIOWrapper(gzip.open(path), encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def wrong(path: Path, why: str) -> InvalidInput:
    """What is the matter with a file."""
    return InvalidInput((FieldViolation("workload", f"{path.name}: {why}"),))
