"""Reads the Standard Workload Format: 18 numbers per line, `;` before comments, -1 for unknown.

Chapin, Cirne, Feitelson et al., "Benchmarks and Standards for the Evaluation of
Parallel Job Schedulers", JSSPP'99. The file may be gzipped.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from atoll.sim.readers.parallel import ParallelLog, Row, log_of, opened, wrong

FIELDS: Final = 18
_JOB, _SUBMIT, _RUN, _USED, _WANTED, _REQUEST, _USER = 0, 1, 3, 4, 7, 8, 11


def read_swf(path: Path) -> ParallelLog:
    """The jobs by submit; those that never ran are left out. InvalidInput names what is wrong."""
    try:
        return log_of(path, list(_rows(path)))
    except OSError as error:
        raise wrong(path, str(error)) from error


def _rows(path: Path) -> Iterator[Row]:
    with opened(path) as file:
        for line, text in enumerate(file, 1):
            words = text.split(";")[0].split()
            if not words:
                continue
            try:
                row = _row([float(word) for word in words])
            except ValueError as error:
                raise wrong(path, f"line {line}: {error}") from error
            if row is not None:
                yield row


def _row(values: list[float]) -> Row | None:
    if len(values) != FIELDS:
        raise ValueError(f"{len(values)} fields, not {FIELDS}")
    processors = values[_WANTED] if values[_WANTED] > 0 else values[_USED]
    if values[_RUN] < 0 or processors < 1:
        return None
    request, user = values[_REQUEST], values[_USER]
    return values[_JOB], values[_SUBMIT], values[_RUN], processors, request, user, math.nan
