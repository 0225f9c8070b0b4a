"""Reads the trace of Microsoft's Philly clusters (ATC'19) in the form of one table.

Columns: timestamp (`2017-10-09 07:01:55`), duration in seconds, num_gpus, gpu_time
(duration x num_gpus), cluster: the virtual cluster that the job was submitted to.
The file may be gzipped.
"""

import csv
import gzip
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from atoll.core.model.errors import FieldViolation, InvalidInput

COLUMNS: Final = ("timestamp", "duration", "num_gpus", "cluster")


@dataclass(frozen=True, slots=True)
class PhillyJob:
    """A job of the trace."""

    submitted_s: float
    """From the first submit of the trace."""
    run_s: float
    gpus: int
    cluster: str
    """The virtual cluster."""


def read_philly(path: Path) -> list[PhillyJob]:
    """The jobs in the order of their submits; InvalidInput names what is missing or wrong."""
    try:
        jobs = list(_jobs(path))
    except OSError as error:
        raise _wrong(path, str(error)) from error
    if not jobs:
        raise _wrong(path, "there is no job in it")
    jobs.sort(key=lambda job: job.submitted_s)
    first = jobs[0].submitted_s
    return [PhillyJob(job.submitted_s - first, job.run_s, job.gpus, job.cluster) for job in jobs]


def _jobs(path: Path) -> Iterator[PhillyJob]:
    with _opened(path) as file:
        rows = csv.DictReader(file)
        missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
        if missing:
            raise _wrong(path, f"it has no column {', '.join(missing)}")
        for line, row in enumerate(rows, 2):
            try:
                yield _job(row)
            except (TypeError, ValueError) as error:
                raise _wrong(path, f"line {line}: {error}") from error


def _job(row: Mapping[str, str]) -> PhillyJob:
    at = datetime.fromisoformat(row["timestamp"]).replace(tzinfo=UTC).timestamp()
    job = PhillyJob(at, float(row["duration"]), int(float(row["num_gpus"])), row["cluster"])
    if job.gpus < 1 or not job.run_s > 0 or not job.cluster:
        raise ValueError("a job needs a GPU, a duration and a cluster")
    return job


def _opened(path: Path) -> io.TextIOBase:
    if path.suffix == ".gz":
        return io.TextIOWrapper(gzip.open(path), encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def _wrong(path: Path, why: str) -> InvalidInput:
    return InvalidInput((FieldViolation("trace", f"{path.name}: {why}"),))
