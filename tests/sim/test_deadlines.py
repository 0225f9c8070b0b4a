"""`atoll sim deadlines` on a trace that is made here, and on the public one where it is at hand."""

import csv
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from atoll.core.model.errors import InvalidInput
from atoll.sim.commands.deadlines import deadlines
from atoll.sim.readers.elasticflow import TraceJob, read_cluster

COST = 10
RATES = {1: 2.0, 2: 3.6, 4: 6.0, 8: 6.0}
JOBS = [
    # id, submitted, iterations, deadline: what it is there for
    ("loose", 0, 400, 900),
    ("tight", 5, 600, 5 + 120),
    ("impossible", 7, 6_000, 7 + 100),
    ("late", 200, 1_000, 200 + 400),
]


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """A folder in the format of the public one, with one cluster and one model."""
    folder = tmp_path / "elasticflow"
    (folder / "throughputs").mkdir(parents=True)
    head, row = ",".join(map(str, RATES)), ",".join(map(str, RATES.values()))
    table = f"global_batch_size,{head},16\n64,{row},\n"
    (folder / "throughputs" / "toy.csv").write_text(table)
    write_archive(folder, JOBS)
    return tmp_path


def write_archive(folder: Path, jobs: list[tuple[str, int, int, int]]) -> None:
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow((
        "job_id", "submission_time", "num_iteration", "model_name", "deadline", "batch_size",
        "num_gpu", "duration",
    ))  # fmt: skip
    for name, submitted, iterations, deadline in jobs:
        rows.writerow((name, submitted, iterations, "toy", deadline, 64, 1, iterations / 2))
    data = text.getvalue().encode()
    with tarfile.open(folder / "elasticflow-traces.tar.gz", "w:gz") as tar:
        entry = tarfile.TarInfo("cluster01.csv")
        entry.size = len(data)
        tar.addfile(entry, io.BytesIO(data))


def told(capsys: pytest.CaptureFixture[str], **options: Any) -> dict[str, Any]:
    assert deadlines(cluster=1, rescale_cost=COST, **options) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


def test_the_reader_gives_jobs_with_the_table_of_their_model(traces: Path) -> None:
    jobs = read_cluster(traces, 1)
    assert [job.id for job in jobs] == ["loose", "tight", "impossible", "late"]
    assert jobs[0] == TraceJob("loose", 0, 900, 400.0, tuple(RATES.items()))
    assert read_cluster(traces / "elasticflow", 1) == jobs


def test_what_is_missing_or_wrong_is_named(traces: Path) -> None:
    with pytest.raises(InvalidInput, match=r"cluster02\.csv"):
        read_cluster(traces, 2)
    write_archive(traces / "elasticflow", [("x", 0, 1, 2)])
    (traces / "elasticflow" / "throughputs" / "toy.csv").write_text("global_batch_size,1\n64,a\n")
    with pytest.raises(InvalidInput, match=r"toy\.csv, line 2"):
        read_cluster(traces, 1)


def test_the_ratio_is_over_all_jobs_and_no_promise_is_broken(
    traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = told(capsys, traces=traces, nodes=1)
    assert found["jobs"] == 4
    assert found["met_ratio"] == 0.75
    assert found["guarantees_broken"] == 0
    assert (found["guaranteed"], found["likely"], found["cannot"]) == (3, 0, 1)


def test_the_stretches_that_are_written_do_the_work_in_time(
    traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    found = told(capsys, traces=traces, nodes=1, out=out)
    check(out, read_cluster(traces, 1), devices=8, met=round(found["met_ratio"] * 4))


def test_two_runs_are_the_same(
    traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    assert told(capsys, traces=traces, nodes=1, out=files[0]) == told(
        capsys, traces=traces, nodes=1, out=files[1]
    )
    assert files[0].read_bytes() == files[1].read_bytes()


def test_elasticflow_does_not_know_what_changes_cost(
    traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = told(capsys, traces=traces, nodes=1, policy="elasticflow")
    assert found["jobs"] == 4
    assert found["met_ratio"] <= 0.75


def test_the_smallest_public_cluster_is_above_what_elasticflow_published(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = os.environ.get("ATOLL_TRACES")
    if not folder:
        return  # the public traces are not part of the product
    out = tmp_path / "out.csv"
    assert deadlines(cluster=10, out=out) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["met_ratio"] > 0.981
    assert found["guarantees_broken"] == 0
    jobs = read_cluster(Path(folder), 10)
    check(out, jobs, devices=256, met=round(found["met_ratio"] * 260), cost=30)


def check(path: Path, jobs: list[TraceJob], *, devices: int, met: int, cost: int = COST) -> None:
    """That stretches hold no more devices than there are and do all the work they claim."""
    with path.open(newline="") as file:
        rows = [
            (r["job_id"], int(r["start_s"]), int(r["end_s"]), int(r["gpus"]))
            for r in csv.DictReader(file)
        ]
    for _, start, _, _ in rows:
        assert sum(gpus for _, a, b, gpus in rows if a <= start < b) <= devices
    in_time = 0
    for job in jobs:
        mine = [(a, b, gpus) for name, a, b, gpus in rows if name == job.id]
        rate = dict(job.throughput)
        done = sum(max(0, b - a - cost) * rate[gpus] for a, b, gpus in mine)
        if mine:
            assert mine[0][0] >= job.submitted_s
            assert done >= job.iterations - 1e-6
            in_time += mine[-1][1] <= job.deadline_s
    assert in_time == met
