"""Reads logs of the Parallel Workloads Archive in the form of one table.

Columns: job_id, submit_s, run_s, procs, req_time_s, user, and easy_wait_s where a
published run of EASY backfilling is known. The file may be gzipped.
"""

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from atoll.sim.readers.parallel import ParallelLog, Row, log_of, opened, wrong

COLUMNS: Final = ("job_id", "submit_s", "run_s", "procs", "req_time_s", "user")
WAIT: Final = "easy_wait_s"


def read_pwa(path: Path) -> ParallelLog:
    """The jobs by submit; InvalidInput names what is missing or wrong."""
    try:
        return log_of(path, list(_rows(path)))
    except OSError as error:
        raise wrong(path, str(error)) from error


def _rows(path: Path) -> Iterator[Row]:
    with opened(path) as file:
        rows = csv.reader(file)
        names = next(rows, [])
        missing = [name for name in COLUMNS if name not in names]
        if missing:
            raise wrong(path, f"it has no column {', '.join(missing)}")
        at = [names.index(name) for name in COLUMNS]
        wait = names.index(WAIT) if WAIT in names else None
        for line, row in enumerate(rows, 2):
            try:
                yield _row([float(row[i]) for i in at], math.nan if wait is None else row[wait])
            except (IndexError, ValueError) as error:
                raise wrong(path, f"line {line}: {error}") from error


def _row(values: list[float], wait: float | str) -> Row:
    job, submit, run, processors, request, user = values
    if processors < 1 or run < 0:
        raise ValueError("a job needs a processor, and a run time that is not negative")
    return job, submit, run, processors, request, user, float(wait)
