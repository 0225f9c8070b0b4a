"""Reads logs of the Parallel Workloads Archive in the form of one table.

Columns: job_id, submit_s, run_s, procs, req_time_s, user, and easy_wait_s where a
published run of EASY backfilling is known. -1 and nothing mean unknown. The file may be gzipped.
"""

import math
from pathlib import Path
from typing import Final

from atoll.sim.readers import parallel
from atoll.sim.readers.parallel import FIELD, ParallelLog, job_of, log_of
from atoll.sim.readers.table import Row, read_table

COLUMNS: Final = ("job_id", "submit_s", "run_s", "procs", "req_time_s", "user")
WAIT: Final = "easy_wait_s"


def read_pwa(path: Path) -> ParallelLog:
    """The jobs by submit; those that never ran are left out. InvalidInput names what is wrong."""
    rows = read_table(path, COLUMNS, field=FIELD, parse=_row)
    return log_of(path, [row for row in rows if row is not None])


def _row(row: Row) -> parallel.Row | None:
    job, submit, run, processors = (row.number(name) for name in COLUMNS[:4])
    wait = row.number(WAIT) if row.or_empty(WAIT) else math.nan
    request, user = (_or_unknown(row, name) for name in COLUMNS[4:])
    return job_of((job, submit, run, processors, request, user, wait))


def _or_unknown(row: Row, column: str) -> float:
    return row.number(column) if row.or_empty(column) else -1.0
