"""Reads the ElasticFlow traces (ASPLOS'23): jobs of ten clusters, and throughput tables.

`elasticflow-traces.tar.gz` holds `clusterNN.csv` with job_id, submission_time, num_iteration,
model_name, deadline, batch_size, num_gpu, duration; `throughputs/MODEL.csv` holds a row per
global_batch_size with iterations per second at 1, 2, 4 … devices. The trace's num_iteration is
its duration x the throughput at num_gpu. Times are whole seconds from the start of the trace.
"""

import csv
import io
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from atoll.core.model.errors import FieldViolation, InvalidInput

ARCHIVE: Final = "elasticflow-traces.tar.gz"
DEVICES_PER_NODE: Final = 8
NODES: Final = {1: 64, 2: 64, 3: 64, 4: 128, 5: 64, 6: 64, 7: 128, 8: 128, 9: 128, 10: 32}
"""Nodes of each cluster in the published simulation."""
_COLUMNS: Final = ("job_id", "submission_time", "num_iteration", "model_name", "deadline")

T = TypeVar("T")
Row = Mapping[str, str]
Throughput = tuple[tuple[int, float], ...]
"""(devices, iterations per second) by rising devices."""


@dataclass(frozen=True, slots=True)
class TraceJob:
    """A job of the trace."""

    id: str
    submitted_s: int
    deadline_s: int
    iterations: float
    throughput: Throughput


def read_cluster(folder: Path, number: int) -> list[TraceJob]:
    """The jobs of a cluster, by submission; InvalidInput names what is missing or wrong.

    `folder` is that of the traces, or the one in it that is named `elasticflow`.
    """
    inside = folder / "elasticflow"
    place = inside if inside.is_dir() else folder
    tables = _read_tables(place / "throughputs")
    jobs = list(_jobs(place / ARCHIVE, f"cluster{number:02}.csv", tables))
    return sorted(jobs, key=lambda job: (job.submitted_s, job.id))


def _read_tables(folder: Path) -> dict[tuple[str, int], Throughput]:
    tables = {}
    for path in sorted(folder.glob("*.csv")):
        with path.open(newline="") as file:
            for line, row in enumerate(csv.DictReader(file), 2):
                batch, throughput = _parsed(path.name, line, row, parse=_table_row)
                tables[path.stem, batch] = throughput
    if not tables:
        raise _wrong("traces", f"no throughput tables in {folder}")
    return tables


def _table_row(row: Row) -> tuple[int, Throughput]:
    pairs = [(int(k), float(v)) for k, v in row.items() if k != "global_batch_size" and v]
    return int(row["global_batch_size"]), tuple(sorted(pairs))


def _jobs(
    archive: Path, name: str, tables: Mapping[tuple[str, int], Throughput]
) -> Iterator[TraceJob]:
    for line, row in enumerate(csv.DictReader(io.StringIO(_member(archive, name))), 2):
        absent = [column for column in _COLUMNS if not row.get(column)]
        if absent:
            raise _wrong("traces", f"{name}, line {line}: no {absent[0]}")
        yield _parsed(name, line, row, parse=lambda row: _job(row, tables))


def _member(archive: Path, name: str) -> str:
    try:
        with tarfile.open(archive) as tar:
            file = tar.extractfile(name)
            return file.read().decode() if file else ""
    except KeyError:
        raise _wrong("cluster", f"{archive} has no {name}") from None
    except (OSError, tarfile.TarError) as error:
        raise _wrong("traces", f"cannot read {archive}: {error}") from error


def _job(row: Row, tables: Mapping[tuple[str, int], Throughput]) -> TraceJob:
    return TraceJob(
        id=row["job_id"],
        submitted_s=int(row["submission_time"]),
        deadline_s=int(row["deadline"]),
        iterations=float(row["num_iteration"]),
        throughput=tables[row["model_name"], int(row["batch_size"])],
    )


def _parsed(name: str, line: int, row: Row, *, parse: Callable[[Row], T]) -> T:
    try:
        return parse(row)
    except (KeyError, ValueError) as error:
        raise _wrong("traces", f"{name}, line {line}: {error}") from error


def _wrong(field: str, message: str) -> InvalidInput:
    return InvalidInput((FieldViolation(field, message),))
