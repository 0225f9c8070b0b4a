"""Writes a record as Parquet, and its report as JSON, for whoever wants to look closer."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from atoll.core.model.ids import attempt_name
from atoll.sim.record import Record

JOBS: Final = pa.schema([
    ("job", pa.int64()), ("name", pa.string()), ("queue", pa.string()), ("state", pa.string()),
    ("tasks", pa.int32()), ("units", pa.int64()), ("submitted_s", pa.float64()),
    ("started_s", pa.float64()), ("ended_s", pa.float64()), ("run_s", pa.float64()),
    ("evictions", pa.int32()), ("rescales", pa.int32()),
])  # fmt: skip
RUNS: Final = pa.schema([
    ("job", pa.int64()), ("attempt", pa.string()), ("cluster", pa.string()),
    ("begun_s", pa.float64()), ("ended_s", pa.float64()), ("units", pa.int64()),
    ("how", pa.string()), ("useful_s", pa.float64()), ("restart_s", pa.float64()),
    ("lost_s", pa.float64()),
])  # fmt: skip
SAMPLES: Final = pa.schema([
    ("at_s", pa.float64()), ("capacity", pa.int64()), ("held", pa.int64()),
    ("fragmentation", pa.float64()), ("queued", pa.int32()), ("running", pa.int32()),
])  # fmt: skip


def write(record: Record, numbers: Mapping[str, Any], folder: Path) -> list[Path]:
    """jobs.parquet, runs.parquet, samples.parquet and report.json; the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = {
        "jobs": pa.Table.from_pylist(_jobs(record), JOBS),
        "runs": pa.Table.from_pylist(_runs(record), RUNS),
        "samples": pa.Table.from_pylist(_samples(record), SAMPLES),
    }
    written = []
    for name, table in tables.items():
        written.append(folder / f"{name}.parquet")
        pq.write_table(table, written[-1])
    told = folder / "report.json"
    told.write_text(json.dumps(numbers, indent=2) + "\n")
    return [*written, told]


def _jobs(record: Record) -> list[dict[str, Any]]:
    return [
        {
            "job": job.id,
            "name": job.work.spec.name,
            "queue": job.work.spec.queue,
            "state": job.state,
            "tasks": job.tasks,
            "units": job.units,
            "submitted_s": job.submitted,
            "started_s": job.started,
            "ended_s": job.ended,
            "run_s": job.work.run_s,
            "evictions": job.evictions,
            "rescales": job.rescales,
        }
        for job in record.jobs.values()
    ]


def _runs(record: Record) -> list[dict[str, Any]]:
    return [
        {
            "job": stretch.job,
            "attempt": attempt_name(stretch.attempt),
            "cluster": stretch.cluster,
            "begun_s": stretch.begun,
            "ended_s": stretch.ended,
            "units": stretch.units,
            "how": stretch.how,
            "useful_s": stretch.useful_s,
            "restart_s": stretch.restart_s,
            "lost_s": stretch.lost_s if stretch.ended is not None else 0.0,
        }
        for stretch in record.stretches
    ]


def _samples(record: Record) -> list[dict[str, Any]]:
    return [
        {
            "at_s": sample.at,
            "capacity": sample.capacity,
            "held": sample.held,
            "fragmentation": sample.fragmentation,
            "queued": sample.queued,
            "running": sample.running,
        }
        for sample in record.samples
    ]
