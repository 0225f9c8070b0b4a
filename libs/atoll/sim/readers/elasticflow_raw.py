"""Reads the raw traces behind ElasticFlow's: jobs of ten clusters over two months.

`raw-traces.tar.gz` holds `clusterNN.csv` with job_id, submission_time, duration, num_gpu. Times
are whole seconds from the start of the trace; a job starts when it is submitted.
"""

import csv
import io
import tarfile
from pathlib import Path
from typing import Final, NamedTuple

from atoll.core.model.errors import FieldViolation, InvalidInput

ARCHIVE: Final = "raw-traces.tar.gz"


class RawJob(NamedTuple):
    """A job of a raw trace."""

    submitted_s: float
    run_s: float
    gpus: int


def read_raw(folder: Path) -> dict[str, list[RawJob]]:
    """The jobs of each cluster by its name, by submission; InvalidInput says what is wrong.

    `folder` is that of the traces, or the one in it that is named `elasticflow`.
    """
    inside = folder / "elasticflow"
    archive = (inside if inside.is_dir() else folder) / ARCHIVE
    try:
        with tarfile.open(archive) as tar:
            names = sorted(name for name in tar.getnames() if name.endswith(".csv"))
            return {Path(name).stem: _jobs(tar, name) for name in names}
    except (OSError, tarfile.TarError) as error:
        raise _wrong(f"cannot read {archive}: {error}") from error


def _jobs(tar: tarfile.TarFile, name: str) -> list[RawJob]:
    file = tar.extractfile(name)
    rows = csv.DictReader(io.StringIO(file.read().decode() if file else ""))
    try:
        found = [
            RawJob(float(row["submission_time"]), float(row["duration"]), int(row["num_gpu"]))
            for row in rows
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise _wrong(f"{name}, line {rows.line_num}: {error!r}") from error
    if not found:
        raise _wrong(f"{name} has no jobs")
    return sorted(found)


def _wrong(message: str) -> InvalidInput:
    return InvalidInput((FieldViolation("traces", message),))
