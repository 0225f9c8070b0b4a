"""Files that are not as they should be: what is wrong is told by line and column."""

import gzip
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atoll.core.model.errors import InvalidInput
from atoll.sim.commands.backfill import backfill
from atoll.sim.commands.deadlines import deadlines
from atoll.sim.commands.fairness import fairness
from atoll.sim.commands.pack import pack
from atoll.sim.commands.reservations import reservations
from atoll.sim.readers.elasticflow import read_cluster
from atoll.sim.readers.openb import Pod, TraceNode, read_nodes, read_pods
from atoll.sim.readers.parallel import UNLIMITED_S, ParallelLog
from atoll.sim.readers.philly import read_philly
from atoll.sim.readers.pwa import read_pwa
from atoll.sim.readers.swf import read_swf

NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
LOG = "job_id,submit_s,run_s,procs,req_time_s,user\n"
PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster\n"
JOBS = "job_id,submission_time,num_iteration,model_name,deadline,batch_size\n"

WRONG = [
    (read_nodes, NODES + "a,1,1,8,T4\na,1,1,8,T4\n", r"line 3: sn is a"),
    (read_nodes, NODES + "a,1,1,-8,T4\n", r"line 2: gpu is -8"),
    (read_nodes, NODES + "a,1,1,8,\n", r"line 2: model is empty"),
    (read_nodes, NODES + "a,1,1,0,\n", r"no node in it has a GPU"),
    (read_pods, PODS + "p,1,1,1,500\np,1\n", r"line 3: num_gpu is empty"),
    (read_pods, PODS + "p,1.5,1,1,500\n", r"line 2: cpu_milli is 1.5, not a whole number"),
    (read_pods, PODS + "p,1,99999999999999999999,1,500\n", r"line 2: memory_mib is 9"),
    (read_pods, PODS + "p,1,1,one,500\n", r"line 2: num_gpu is 'one', not a number"),
    (read_pods, PODS + "p,1,1,-1,500\n", r"line 2: num_gpu is -1"),
    (read_pods, PODS + "p,1,1,0,0\n", r"no pod in it asks for a GPU"),
    (read_pods, PODS, r"holds nothing"),
    (read_pods, "", r"it has no column name"),
    (read_pwa, LOG + "1,nan,1,2,20,1\n", r"line 2: submit_s is nan"),
    (read_pwa, LOG + "1,0,inf,2,20,1\n", r"line 2: run_s is inf"),
    (read_pwa, LOG + "1,0,1,1.5,20,1\n", r"line 2: 1.5 is no number of processors"),
    (read_pwa, LOG + "1,0,1,1,5,ann\n", r"line 2: user is 'ann', not a number"),
    (read_swf, "; a log\n1 2 3\n", r"line 2: 3 fields, not 18"),
    (read_swf, "1 0 -1 ten" + " 1" * 14, r"line 1: run is 'ten'"),
    (read_philly, PHILLY + "2017-13-09 07:01:55,1,1,1,x\n", r"line 2: timestamp is '2017-13"),
    (read_philly, PHILLY + "2017-10-09 07:01:55,5,inf,1,x\n", r"line 2: num_gpus is inf"),
    (read_philly, PHILLY + "2017-10-09 07:01:55,5,1,1,\n", r"line 2: cluster is empty"),
    (read_philly, PHILLY, r"there is no job in it"),
]


@pytest.mark.parametrize(("read", "text", "told"), WRONG)
def test_the_line_and_the_column_are_told(
    read: Callable[[Path], object], text: str, told: str, tmp_path: Path
) -> None:
    path = tmp_path / "file.csv"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=told):
        read(path)


@pytest.mark.parametrize(
    ("jobs", "table", "told"),
    [
        (JOBS, "64,1\n", r"there is no job in it"),
        (JOBS + "a,0,1,toy,9,64\na,0,1,toy,9,64\n", "64,1\n", r"line 3: job_id is a"),
        (JOBS + "a,0,1,bert,9,64\n", "64,1\n", r"line 2: there is no throughput of model_name b"),
        (JOBS + "a,0,1,toy,9,8\n", "64,1\n", r"line 2: .* at batch_size 8"),
        (JOBS + "a,0,nan,toy,9,64\n", "64,1\n", r"line 2: num_iteration is nan"),
        (JOBS + "a,0,1e30,toy,9,64\n", "64,1\n", r"line 2: num_iteration is 1e30"),
        (JOBS + "a,0,1,toy\n", "64,1\n", r"line 2: batch_size is empty"),
        (JOBS + "a,0,1,toy,9,64\n", "64,-1\n", r"toy\.csv, line 2: 1 is -1"),
        ("job_id\na\n", "64,1\n", r"it has no column submission_time"),
    ],
)
def test_the_line_of_a_trace_with_deadlines_is_told(
    jobs: str, table: str, told: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match=told):
        read_cluster(traces(tmp_path, jobs, table), 1)


def traces(folder: Path, jobs: str, table: str = "64,1\n") -> Path:
    (folder / "throughputs").mkdir()
    (folder / "throughputs" / "toy.csv").write_text("global_batch_size,1\n" + table)
    with tarfile.open(folder / "elasticflow-traces.tar.gz", "w:gz") as tar:
        entry = tarfile.TarInfo("cluster01.csv")
        entry.size = len(jobs)
        tar.addfile(entry, io.BytesIO(jobs.encode()))
    return folder


@pytest.mark.parametrize("read", [read_pods, read_nodes, read_pwa, read_swf, read_philly])
@pytest.mark.parametrize("how", ["cut", "corrupt", "missing", "folder"])
def test_a_file_that_cannot_be_read_is_told(
    read: Callable[[Path], object], how: str, tmp_path: Path
) -> None:
    path = tmp_path / "file.csv.gz"
    packed = gzip.compress(b"job_id,submit_s,run_s,procs,req_time_s,user\n" * 50)
    match how:
        case "cut":
            path.write_bytes(packed[:-9])
        case "corrupt":
            path.write_bytes(packed[:12] + b"\xff" * 20 + packed[32:])
        case "folder":
            path.mkdir()
        case _:
            pass
    with pytest.raises(InvalidInput, match=r"cannot read .*file\.csv\.gz"):
        read(path)


def test_tables_are_read_however_a_program_wrote_them(tmp_path: Path) -> None:
    path = tmp_path / "pods.txt"
    text = f"\ufeff{PODS}p,1000.0,2.0,1.0,460.0\n\nq,0,0,0,\n".replace("\n", "\r\n")
    for data in (text.encode(), gzip.compress(text.encode())):
        path.write_bytes(data)
        assert read_pods(path) == [Pod("p", 1000, 2, 1, 460), Pod("q", 0, 0, 0, 0)]
    path.write_text(NODES + "a,1000,2,0,\nb,1000,2,2,T4\n")
    assert read_nodes(path) == [TraceNode("a", 1000, 2, 0, ""), TraceNode("b", 1000, 2, 2, "T4")]


def swf(number: int, submit: int, run: int, **given: int) -> str:
    of = {"used": 2, "wanted": 2, "request": 20, "status": 1} | given
    return (
        f"{number} {submit} -1 {run} {of['used']} -1 -1 {of['wanted']} {of['request']} -1"
        f" {of['status']} 3 -1 -1 -1 -1 -1 -1\n"
    )


def read_bytes_as_swf(folder: Path, data: bytes) -> ParallelLog:
    path = folder / "log.swf"
    path.write_bytes(data)
    return read_swf(path)


def test_a_log_in_the_standard_format_has_its_unknown_fields(tmp_path: Path) -> None:
    lines = (
        swf(7, 50, 10, wanted=-1),  # what it used is what it wanted
        swf(
            1, 0, 10, request=-1
        ),  # nobody said how long: no longer than the longest that is asked for
        swf(2, 1, -1, status=5),
        swf(3, 1, 0, status=5, used=-1),  # cancelled before it began
        swf(4, 2, 4, status=5),  # cancelled while it ran
        swf(5, 3, 5, status=2),
        swf(5, -1, 6, status=3),
        swf(5, 3, 11, status=0),  # the whole of the two before
        swf(6, -1, 5),
        swf(8, 60, 500, request=40),
        swf(9, 61, 0),
    )
    text = "; Note: Université\n;\n" + "".join(lines) + "; the end\n"
    log = read_bytes_as_swf(tmp_path, text.encode("latin-1"))
    assert log.job.tolist() == [1, 4, 5, 7, 8, 9]
    assert log.run.tolist() == [10, 4, 11, 10, 40, 0]
    assert log.request.tolist() == [40, 20, 20, 20, 40, 20]
    assert log.processors.tolist() == [2] * 6


def test_a_table_may_leave_out_what_is_not_known(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(LOG + "2,5,10,2,,\n1,0,7,1,-1,-1\n3,6,-1,2,5,1\n4,6,5,-1,5,1\n")
    log = read_pwa(path)
    assert (log.job.tolist(), log.request.tolist()) == ([1, 2], [UNLIMITED_S] * 2)


def test_a_request_that_is_missing_tells_nothing_of_the_run_time(tmp_path: Path) -> None:
    requests = []
    for run in (3, 9):
        lines = swf(1, 0, run, request=-1) + swf(2, 0, 4, request=12)
        requests.append(read_bytes_as_swf(tmp_path, lines.encode()).request.tolist())
    assert requests == [[12, 12]] * 2


def test_a_log_is_known_by_how_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.txt.gz"
    path.write_bytes(gzip.compress(("; Version: 2.2\n" + swf(1, 0, 10)).encode()))
    assert last(capsys, backfill(workload=path, procs=2))["jobs"] == 1


def last(capsys: pytest.CaptureFixture[str], code: int) -> dict[str, Any]:
    """The object of the last line: JSON as others read it, without NaN."""
    assert code == 0
    text = capsys.readouterr().out.splitlines()[-1]

    def refuse(word: str) -> None:
        raise AssertionError(word)

    found: dict[str, Any] = json.loads(text, parse_constant=refuse)
    return found


def test_without_forecasts_nothing_is_told_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "log.csv", tmp_path / "starts.csv"
    path.write_text(LOG + "1,0,0,1,0,1\n")
    found = last(capsys, backfill(workload=path, procs=1, out=out))
    assert [found[key] for key in found if key.startswith("eta_")] == [None] * 3
    assert out.read_bytes() == b"job_id,start_s\n1,0.0\n"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    texts = {
        "nodes": NODES + "a,9000,9000,2,T4\n",
        "pods": PODS + "p,1,1,1,500\n",
        "log": LOG + "1,0,10,1,20,1\n2,50,10,1,20,1\n",
        "still": LOG + "1,0,0,1,20,1\n2,50,0,1,20,1\n",
        "once": LOG + "1,0,9,1,20,1\n2,0,9,1,20,1\n",
        "philly": PHILLY + "2017-10-09 07:01:55,5,1,5,x\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    traces(tmp_path, JOBS + "a,0,1,toy,9,64\n")
    return {name: tmp_path / name for name in texts} | {"folder": tmp_path}


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("seed", lambda f: pack(nodes=f["nodes"], pods=f["pods"], seed=-1)),
        ("arrivals", lambda f: pack(nodes=f["nodes"], pods=f["pods"], percent=0)),
        ("out", lambda f: pack(nodes=f["nodes"], pods=f["pods"], out=f["folder"])),
        ("procs", lambda f: backfill(workload=f["log"], procs=0)),
        ("out", lambda f: backfill(workload=f["log"], procs=1, out=f["folder"] / "no" / "o")),
        ("nodes", lambda f: deadlines(cluster=1, traces=f["folder"], nodes=0)),
        ("rescale_cost", lambda f: deadlines(cluster=1, traces=f["folder"], rescale_cost=-1)),
        ("out", lambda f: deadlines(cluster=1, traces=f["folder"], out=f["folder"] / "no" / "o")),
        ("out", lambda f: fairness(trace=f["philly"], out=f["folder"])),
        ("seed", lambda f: reservations(workload=f["log"], procs=1, seed=-1)),
        ("days", lambda f: reservations(workload=f["log"], procs=1, days=float("nan"))),
        ("workload", lambda f: reservations(workload=f["still"], procs=1)),
        ("workload", lambda f: reservations(workload=f["once"], procs=1)),
    ],
)
def test_options_without_a_meaning_are_refused_before_the_work(
    field: str, call: Callable[[dict[str, Path]], int], files: dict[str, Path]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        call(files)
    assert [each.field for each in refused.value.violations] == [field]
