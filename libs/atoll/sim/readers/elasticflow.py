"""Reads the ElasticFlow traces (ASPLOS'23): jobs of ten clusters, and throughput tables.

`elasticflow-traces.tar.gz` holds `clusterNN.csv` with job_id, submission_time, num_iteration,
model_name, deadline, batch_size, num_gpu, duration; `throughputs/MODEL.csv` holds a row per
global_batch_size with iterations per second at 1, 2, 4 … devices. The trace's num_iteration is
its duration x the throughput at num_gpu. Times are whole seconds from the start of the trace.
"""

import csv
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from atoll.sim.readers.table import Row, read_text, rows_of, text_of, wrong

ARCHIVE: Final = "elasticflow-traces.tar.gz"
DEVICES_PER_NODE: Final = 8
NODES: Final = {1: 64, 2: 64, 3: 64, 4: 128, 5: 64, 6: 64, 7: 128, 8: 128, 9: 128, 10: 32}
"""Nodes of each cluster in the published simulation."""
BATCH: Final = "global_batch_size"
FIELD: Final = "traces"
MOST_S: Final = 1e10
_COLUMNS: Final = (
    "job_id", "submission_time", "num_iteration", "model_name", "deadline", "batch_size",
)  # fmt: skip

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
    jobs = _jobs(place / ARCHIVE, f"cluster{number:02}.csv", tables)
    return sorted(jobs, key=lambda job: (job.submitted_s, job.id))


def _read_tables(folder: Path) -> dict[tuple[str, int], Throughput]:
    tables = {}
    for path in sorted(folder.glob("*.csv")):
        for batch, throughput in _read_table(path):
            tables[path.stem, batch] = throughput
    if not tables:
        raise wrong(FIELD, f"no throughput tables in {folder}")
    return tables


def _read_table(path: Path) -> list[tuple[int, Throughput]]:
    text = read_text(path, field=FIELD)
    sizes = [name for name in next(csv.reader([text.split("\n")[0]]), []) if name != BATCH]
    odd = [name for name in sizes if not (name.isdecimal() and int(name))]
    if odd:
        raise wrong(FIELD, f"{path.name}: {odd[0][:40]!r} is no number of devices")

    def parse(row: Row) -> tuple[int, Throughput]:
        pairs = [(int(k), row.number(k, least=0)) for k in sizes if row.or_empty(k)]
        return row.whole(BATCH, least=1), tuple(sorted(pairs))

    return rows_of(path.name, text, columns=(BATCH,), field=FIELD, parse=parse)


def _jobs(archive: Path, name: str, tables: Mapping[tuple[str, int], Throughput]) -> list[TraceJob]:
    known: set[str] = set()

    def parse(row: Row) -> TraceJob:
        job = _job(row, tables)
        if job.id in known:
            raise ValueError(f"job_id is {job.id}, as of a job before")
        known.add(job.id)
        return job

    jobs = rows_of(name, _member(archive, name), columns=_COLUMNS, field=FIELD, parse=parse)
    if not jobs:
        raise wrong(FIELD, f"{name}: there is no job in it")
    return jobs


def _member(archive: Path, name: str) -> str:
    try:
        with tarfile.open(archive) as tar:
            file = tar.extractfile(name)
            return text_of(file.read()) if file else ""
    except KeyError:
        raise wrong("cluster", f"{archive} has no {name}") from None
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise wrong(FIELD, f"cannot read {archive}: {error}") from error


def _job(row: Row, tables: Mapping[tuple[str, int], Throughput]) -> TraceJob:
    model, batch = row.text("model_name"), row.whole("batch_size")
    if (model, batch) not in tables:
        raise ValueError(f"there is no throughput of model_name {model} at batch_size {batch}")
    return TraceJob(
        id=row.text("job_id"),
        submitted_s=row.whole("submission_time", most=MOST_S),
        deadline_s=row.whole("deadline", most=MOST_S),
        iterations=row.number("num_iteration", least=0),
        throughput=tables[model, batch],
    )
