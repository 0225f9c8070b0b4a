"""Reads the Standard Workload Format: 18 numbers per line, `;` before comments, -1 for unknown.

Chapin, Cirne, Feitelson et al., "Benchmarks and Standards for the Evaluation of
Parallel Job Schedulers", JSSPP'99. The file may be gzipped.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from atoll.sim.readers.parallel import FIELD, ParallelLog, Row, job_of, log_of
from atoll.sim.readers.table import number, read_lines, wrong

NAMES: Final = (
    "job", "submit", "wait", "run", "processors", "cpu", "memory", "wanted_processors",
    "requested_time", "requested_memory", "status", "user", "group", "executable", "queue",
    "partition", "preceding_job", "think_time",
)  # fmt: skip
PARTIAL: Final = (2, 3, 4)
"""Status of a line about a part of a job's run: another one tells of the whole job."""
CANCELLED: Final = 5


def read_swf(path: Path) -> ParallelLog:
    """The jobs by submit; those that never ran are left out. InvalidInput names what is wrong."""
    return log_of(path, list(_rows(path)))


def _rows(path: Path) -> Iterator[Row]:
    for line, text in read_lines(path, field=FIELD):
        words = text.split(";")[0].split()
        if not words:
            continue
        try:
            row = _row(words)
        except ValueError as error:
            raise wrong(FIELD, f"{path.name}, line {line}: {error}") from error
        if row is not None:
            yield row


def _row(words: list[str]) -> Row | None:
    if len(words) != len(NAMES):
        raise ValueError(f"{len(words)} fields, not {len(NAMES)}")
    of = {name: number(name, word) for name, word in zip(NAMES, words, strict=True)}
    processors = of["wanted_processors"] if of["wanted_processors"] > 0 else of["processors"]
    cancelled = of["status"] == CANCELLED and of["run"] <= 0
    if of["status"] in PARTIAL or cancelled or of["submit"] == -1:
        return None
    times = of["submit"], of["run"]
    return job_of((of["job"], *times, processors, of["requested_time"], of["user"], math.nan))
