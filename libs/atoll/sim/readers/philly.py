"""Reads the trace of Microsoft's Philly clusters (ATC'19) in the form of one table.

Columns: timestamp (`2017-10-09 07:01:55`), duration in seconds, num_gpus, gpu_time
(duration x num_gpus), cluster: the virtual cluster that the job was submitted to.
The file may be gzipped.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from atoll.sim.readers.table import Row, read_table, wrong

COLUMNS: Final = ("timestamp", "duration", "num_gpus", "cluster")
MOST_RUN_S: Final = 1e10
MOST_GPUS: Final = 100_000


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
    jobs = read_table(path, COLUMNS, field="trace", parse=_job)
    if not jobs:
        raise wrong("trace", f"{path.name}: there is no job in it")
    jobs.sort(key=lambda job: job.submitted_s)
    first = jobs[0].submitted_s
    return [PhillyJob(job.submitted_s - first, job.run_s, job.gpus, job.cluster) for job in jobs]


def _job(row: Row) -> PhillyJob:
    run_s = row.number("duration", least=0, most=MOST_RUN_S)
    if not run_s:
        raise ValueError("duration is 0")
    gpus = row.whole("num_gpus", least=1, most=MOST_GPUS)
    return PhillyJob(_seconds(row.text("timestamp")), run_s, gpus, row.text("cluster"))


def _seconds(text: str) -> float:
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"timestamp is {text[:40]!r}: {error}") from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
