"""Reading traces, making jobs of them, and finding devices with two owners."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.cli.replay import checks, openb
from atoll.cli.replay.arrivals import Arrival, Pace, due, pace_of, prepare
from atoll.cli.replay.result import latency
from atoll.client.spec import parse_spec, to_proto
from atoll.client.views import JobInfo
from atoll.core.model.errors import InvalidInput
from atoll.core.model.ids import NodeId
from atoll.core.model.lifecycle import JobState
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.resources import DeviceGrant
from tools.make_openb import write

POD_HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli"
TIMES = "gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
NODE = openb.TraceNode("n0", 64_000, 1 << 36, 8, "T4")
POD = openb.TracePod(
    "p0", cpu_milli=4_000, memory_bytes=1 << 30, devices=1, milli=1000, kinds=(), created_s=100.0,
    ran_s=50.0,
)  # fmt: skip


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "list.csv"
    path.write_text(text)
    return path


def test_a_list_is_read_plain_or_gzipped(tmp_path: Path) -> None:
    text = "sn,cpu_milli,memory_mib,gpu,model\na,1000,1024,2,P100\nb,2000,2048,0,\n"
    plain = written(tmp_path, text)
    packed = tmp_path / "list.csv.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert openb.read_nodes(plain) == openb.read_nodes(packed)
    assert openb.read_nodes(plain)[0] == openb.TraceNode("a", 1000, 1 << 30, 2, "P100")


def test_pods_come_in_the_order_of_their_creation(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        f"{POD_HEAD},{TIMES}\nlate,1,1,1,460,P100|T4,LS,Running,90,200,100\n"
        "early,1,1,0,0,,BE,Pending,10,30,\n",
    )
    early, late = openb.read_pods(path)
    assert (early.name, early.devices, early.ran_s) == ("early", 0, 20.0)
    assert (late.kinds, late.milli, late.created_s, late.ran_s) == (
        ("P100", "T4"),
        460,
        90.0,
        100.0,
    )


def test_a_list_without_times_is_read(tmp_path: Path) -> None:
    (pod,) = openb.read_pods(written(tmp_path, f"{POD_HEAD}\np,1,1,2,1000\n"))
    assert (pod.created_s, pod.ran_s, pod.kinds) == (0.0, 0.0, ())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,b\n1,2\n", "has no column name, cpu_milli"),
        (f"{POD_HEAD}\np,x,1,0,0\n", "line 2: invalid literal"),
        (f"{POD_HEAD}\np,1,1,0,0\np,1,1,1,1500\n", "line 3: 1 devices with 1500"),
        (f"{POD_HEAD}\np,1,1,1,0\n", "line 2: 1 devices with 0"),
        (f"{POD_HEAD}\np,1\n", "line 2:"),
    ],
)
def test_a_wrong_list_is_told_by_its_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        openb.read_pods(written(tmp_path, text))


def prepared(*pods: openb.TracePod) -> list[Arrival]:
    ready = prepare(pods, [NODE], Pace(10.0, 100.0), run="r", queue="q", pin=("cluster", "c"))
    return list(ready.arrivals)


@pytest.mark.parametrize(
    ("devices", "milli", "count", "blocks"),
    [(1, 1000, 1, 100), (4, 1000, 4, 100), (1, 460, 1, 46), (1, 461, 1, 47), (1, 999, 1, 100)],
)
def test_thousandths_of_a_gpu_become_blocks_rounded_up(
    devices: int, milli: int, count: int, blocks: int
) -> None:
    (arrival,) = prepared(replace(POD, devices=devices, milli=milli))
    device = to_proto(arrival.spec, now=0.0).groups[0].shapes[0].device
    assert (device.kind, device.count, device.blocks) == ("", count, blocks)


def test_rounding_and_what_fits_no_node_are_told() -> None:
    pods = [replace(POD, milli=461), replace(POD, name="huge", devices=9, milli=1000)]
    ready = prepare(pods, [NODE], Pace(1.0, 0.0), run="r", queue="q", pin=None)
    assert (ready.rounded_up, ready.too_large, len(ready.arrivals)) == (1, ("huge",), 1)


def test_kinds_become_alternatives() -> None:
    (arrival,) = prepared(replace(POD, kinds=("P100", "T4"), milli=500))
    shapes = to_proto(arrival.spec, now=0.0).groups[0].shapes
    assert [(shape.device.kind, shape.device.blocks) for shape in shapes] == [
        ("P100", 50),
        ("T4", 50),
    ]


def test_time_runs_at_the_given_speed() -> None:
    first, second = prepared(POD, replace(POD, name="p1", created_s=160.0, ran_s=0.001))
    assert (first.at_s, second.at_s) == (0.0, 6.0)
    seconds = [arrival.spec.envs["ATOLL_SIM_SECONDS"] for arrival in (first, second)]
    assert seconds == ["5.000", "0.010"]


def test_without_a_speed_all_jobs_come_within_the_span() -> None:
    pods = [POD, replace(POD, created_s=700.0)]
    assert pace_of(pods, None, span_s=60.0) == Pace(10.0, 100.0)
    assert pace_of([POD], None, span_s=60.0) == Pace(1.0, 100.0)


def test_jobs_are_sent_when_they_are_due() -> None:
    spec = parse_spec({"run": "x"})
    arrivals = [Arrival(float(n), spec) for n in range(5)]
    assert len(due(arrivals, first=0, now_s=2.5, most=10)) == 3
    assert len(due(arrivals, first=2, now_s=2.5, most=10)) == 1
    assert len(due(arrivals, first=0, now_s=9.0, most=2)) == 2
    assert due(arrivals, first=3, now_s=2.5, most=2) == []


def test_the_same_seed_makes_the_same_lists(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, nodes=9, pods=50, seed=7)
    assert openb.read_pods(tmp_path / "a/pods.csv") == openb.read_pods(tmp_path / "b/pods.csv")
    assert len(openb.read_nodes(tmp_path / "a/nodes.csv")) == 9


def job(job_id: int, *grants: DeviceGrant, placed: float, ended: float) -> JobInfo:
    task = TaskPlacement(0, 0, NodeId(1), "n0", 1, 1, grants)
    return JobInfo(
        id=job_id, name="x", queue="q", state=JobState.SUCCEEDED, attempt=f"{job_id}.1",
        tasks=(task,), placed_at=placed, ended_at=ended,
    )  # fmt: skip


def test_a_device_may_change_hands_at_one_moment() -> None:
    whole = DeviceGrant(0, 100)
    jobs = [job(1, whole, placed=1.0, ended=2.0), job(2, whole, placed=2.0, ended=3.0)]
    usage, faults = checks.check_jobs(jobs)
    assert (faults, usage.peak_blocks) == ([], 100)


def test_shares_that_fit_are_no_fault_and_make_the_peak() -> None:
    jobs = [job(n, DeviceGrant(0, 30), placed=float(n), ended=9.0) for n in (1, 2, 3)]
    usage, faults = checks.check_jobs(jobs)
    assert (faults, usage.peak_blocks) == ([], 90)


@pytest.mark.parametrize(
    ("grants", "told"),
    [
        ((DeviceGrant(0, 60), DeviceGrant(0, 60)), "held to 120%"),
        (
            (DeviceGrant(0, slice_mask=3), DeviceGrant(0, slice_mask=6)),
            "slices of device 0 of n0 are held twice",
        ),
        ((DeviceGrant(0, 10), DeviceGrant(0, slice_mask=1)), "in shares and in slices"),
    ],
)
def test_two_owners_are_found(grants: tuple[DeviceGrant, ...], told: str) -> None:
    jobs = [job(n, grant, placed=float(n), ended=9.0) for n, grant in enumerate(grants, start=1)]
    _, (fault,) = checks.check_jobs(jobs)
    assert told in fault
    assert fault.endswith("by 1.1, 2.1")


def test_slices_beside_each_other_are_no_fault() -> None:
    jobs = [job(n, DeviceGrant(0, slice_mask=1 << n), placed=float(n), ended=9.0) for n in (1, 2)]
    assert checks.check_jobs(jobs)[1] == []


def test_a_run_of_no_length_gives_its_device_back() -> None:
    jobs = [
        job(1, DeviceGrant(0, 100), placed=1.0, ended=1.0),
        job(2, DeviceGrant(0, 100), placed=2.0, ended=3.0),
    ]
    assert checks.check_jobs(jobs)[1] == []


def entry(kind: str, attempt: int, at: float, blocks: int = 100) -> str:
    tasks = [{"rank": 0, "node": "n0", "devices": [[0, blocks, 0, ""]]}]
    return json.dumps({"t": kind, "attempt": attempt, "at": at, "tasks": tasks}) + "\n"


def test_a_ledger_in_any_order_is_put_in_time(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_text(entry("start", 1, 1.0) + entry("start", 2, 5.0) + entry("stop", 1, 3.0))
    assert checks.check_ledger(path) == []
    path.write_text(entry("start", 1, 1.0) + entry("start", 2, 2.0) + entry("stop", 1, 3.0))
    assert checks.check_ledger(path) == ["at 2.000: device 0 of n0 is held to 200% by 1, 2"]


def test_what_the_cluster_itself_saw_counts(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    seen = {"t": "violation", "attempt": 5, "with": [4], "what": "OVERCOMMIT", "at": 1, "node": "n"}
    path.write_text(json.dumps(seen) + "\n" + '{"t": "start", "att')
    assert checks.check_ledger(path) == ["the cluster saw OVERCOMMIT on n: 5 with 4"]


@pytest.mark.parametrize("line", ["{}\n", "[]\n", "nonsense\n", '{"t": "start", "at": 1}\n'])
def test_what_is_no_ledger_is_told(tmp_path: Path, line: str) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_text(line)
    with pytest.raises(InvalidInput, match="line 1 is no entry"):
        checks.check_ledger(path)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_percentiles_are_values_in_order(values: list[float]) -> None:
    found = latency(values)
    assert found is not None
    assert found.p50 <= found.p95 <= found.p99 <= round(max(values), 1)
    assert found.p50 >= round(min(values), 1)
    assert latency([]) is None


spans = st.lists(
    st.tuples(st.integers(0, 2), st.integers(1, 100), st.integers(1, 20), st.integers(1, 9)),
    max_size=12,
)


@given(spans)
def test_the_sweep_agrees_with_looking_at_every_moment(given_spans: list[tuple[int, ...]]) -> None:
    jobs = [
        job(n, DeviceGrant(index, blocks), placed=float(start), ended=float(start + length))
        for n, (index, blocks, start, length) in enumerate(given_spans, start=1)
    ]
    worst = max((held(given_spans, i, at) for i in range(3) for at in range(30)), default=0)
    assert bool(checks.check_jobs(jobs)[1]) is (worst > 100)


def held(given_spans: list[tuple[int, ...]], index: int, at: int) -> int:
    return sum(
        blocks
        for device, blocks, start, length in given_spans
        if device == index and start <= at < start + length
    )
