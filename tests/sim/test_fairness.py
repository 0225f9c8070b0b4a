"""Virtual clusters by themselves and together, on a trace made in the test."""

import json
from pathlib import Path

import numpy as np
import pytest

from atoll.core.model.errors import InvalidInput
from atoll.core.policies.registry import policies
from atoll.sim.commands.fairness import fairness
from atoll.sim.fairness import Outcome, Part, parts_of, quotas, run_private, run_shared
from atoll.sim.readers.philly import PhillyJob, read_philly

HEAD = "timestamp,duration,num_gpus,gpu_time,cluster\n"
FAIR = policies(order="fair_share")


def nothing(ended: int) -> None:
    assert ended >= 0


def trace(folder: Path, *rows: str) -> Path:
    path = folder / "philly.csv"
    path.write_text(HEAD + "".join(row + "\n" for row in rows))
    return path


def random_jobs(count: int, seed: int = 1) -> list[PhillyJob]:
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 1, 1, 2, 4, 8, 12], count)
    at = np.sort(rng.uniform(0, 30_000, count))
    runs = rng.exponential(4000, count) + 60
    names = rng.choice(["a", "b", "c"], count)
    rows = zip(at.tolist(), runs.tolist(), sizes.tolist(), names.tolist(), strict=True)
    return [PhillyJob(round(t, 1), round(run, 1), size, name) for t, run, size, name in rows]


def shared(jobs: list[PhillyJob], nodes: int, *, checkpoint_s: float = 3600.0) -> Outcome:
    return run_shared(
        parts_of(jobs), jobs, FAIR, nodes=nodes, checkpoint_s=checkpoint_s, tick=nothing
    )


def test_the_reader_sorts_by_submit_and_counts_from_the_first(tmp_path: Path) -> None:
    path = trace(
        tmp_path,
        "2017-10-09 07:01:55,66.0,1,66.0,x",
        "2017-10-09 07:00:55,60.5,16,968.0,y",
    )
    assert read_philly(path) == [PhillyJob(0.0, 60.5, 16, "y"), PhillyJob(60.0, 66.0, 1, "x")]


@pytest.mark.parametrize("row", ["yesterday,1,1,1,x", "2017-10-09 07:00:55,1,0,1,x"])
def test_the_reader_names_the_line_that_is_wrong(tmp_path: Path, row: str) -> None:
    with pytest.raises(InvalidInput, match=r"line 2"):
        read_philly(trace(tmp_path, row))


def test_a_private_cluster_has_a_fifth_more_than_the_mean_and_holds_its_largest_job() -> None:
    jobs = [PhillyJob(0.0, 100.0, 8, "a"), PhillyJob(0.0, 1.0, 12, "b")]
    parts = parts_of(jobs)
    assert [(p.name, p.nodes, p.largest) for p in parts] == [("a", 2, 8), ("b", 2, 12)]
    assert parts[1].mean_gpus == pytest.approx(0.12)


def test_quotas_are_in_proportion_and_hold_the_largest_jobs() -> None:
    parts = [
        Part("a", 1, 1.0, largest=1, nodes=6),
        Part("b", 1, 1.0, largest=16, nodes=2),
        Part("c", 1, 1.0, largest=1, nodes=2),
    ]
    assert quotas(parts, 80) == {"a": 4800, "b": 1600, "c": 1600}
    # At half the nodes b keeps its 16; the others share 24 as 6 to 2.
    assert quotas(parts, 40) == {"a": 1800, "b": 1600, "c": 600}
    with pytest.raises(InvalidInput):
        quotas(parts, 16)


def test_a_job_of_twelve_takes_a_whole_node_and_four_of_another() -> None:
    jobs = [
        PhillyJob(0.0, 100.0, 12, "a"),
        PhillyJob(1.0, 100.0, 4, "a"),
        PhillyJob(2.0, 100.0, 4, "a"),
    ]
    part = parts_of(jobs)[0]
    assert part.nodes == 3
    two = Part("a", 3, part.mean_gpus, 12, nodes=2)
    found = run_private(two, jobs, FAIR, checkpoint_s=0, tick=nothing)
    assert found.waits["a"] == [0.0, 0.0, pytest.approx(98.0)]


def test_what_is_evicted_goes_on_from_its_last_checkpoint_and_waits_for_what_it_lost() -> None:
    jobs = [
        PhillyJob(0.0, 10_000.0, 8, "a"),
        PhillyJob(10.0, 10_000.0, 8, "a"),
        PhillyJob(5000.0, 1000.0, 8, "b"),
        PhillyJob(15_000.0, 10.0, 1, "a"),
    ]
    assert [part.nodes for part in parts_of(jobs)] == [2, 1]
    hourly = shared(jobs, 2)
    assert hourly.evictions == 1
    # The second job borrowed b's node: 4990 s of it are 3600 s saved and 1390 s lost.
    assert hourly.lost_gpu_h == pytest.approx(1390 * 8 / 3600)
    assert hourly.waits["b"] == [0.0]
    assert hourly.waits["a"] == [0.0, pytest.approx(1000 + 1390), 0.0]
    never = shared(jobs, 2, checkpoint_s=0.0)
    assert never.lost_gpu_h == pytest.approx(4990 * 8 / 3600)


def test_two_runs_are_the_same_and_all_jobs_end() -> None:
    jobs = random_jobs(120)
    nodes = sum(part.nodes for part in parts_of(jobs))
    first, second = shared(jobs, nodes), shared(jobs, nodes)
    assert first == second
    assert sum(len(waits) for waits in first.waits.values()) == len(jobs)
    assert all(wait >= -1e-6 for waits in first.waits.values() for wait in waits)


def test_no_decision_knows_how_long_what_runs_will_run() -> None:
    jobs = random_jobs(60)
    nodes = sum(part.nodes for part in parts_of(jobs))
    until = 12_000.0
    early = [job for job in jobs if job.submitted_s + job.run_s <= until]
    assert early
    longer = [
        job if job in early else PhillyJob(job.submitted_s, job.run_s + 7e4, job.gpus, job.cluster)
        for job in jobs
    ]
    parts = parts_of(jobs)

    def ends(chosen: list[PhillyJob]) -> dict[str, list[float]]:
        found = run_shared(parts, chosen, FAIR, nodes=nodes, checkpoint_s=3600, tick=nothing)
        result: dict[str, list[float]] = {}
        for name, waits in found.waits.items():
            mine = [job for job in chosen if job.cluster == name]
            done = [j.submitted_s + j.run_s + w for j, w in zip(mine, waits, strict=True)]
            result[name] = [round(end, 6) for end in done if end <= until]
        return result

    assert ends(jobs) == ends(longer)


def test_the_command_prints_one_object_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        f"2017-10-09 {8 + n // 12:02}:{n % 12 * 5:02}:00,{600 + 300 * (n % 4)},{1 + n % 3},0,{name}"
        for n in range(24)
        for name in ("x", "y")
    ]
    out = tmp_path / "waits.csv"
    assert fairness(trace=trace(tmp_path, *rows), nodes_ratio=1.0, out=out) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(report["per_vc"]) == {"x", "y"}
    assert report["jobs"] == 48
    assert report["worse"] == []
    for name in ("mean_wait_s", "mean_wait_private_s", "evictions", "lost_gpu_h", "gpu_h"):
        assert report[name] >= 0
    lines = out.read_text().splitlines()
    assert len(lines) == 49
    assert sum(float(line.split(",")[1]) for line in lines[1:]) / 48 == pytest.approx(
        report["mean_wait_s"], abs=1e-3
    )


@pytest.mark.parametrize(("ratio", "hours"), [(0.0, 1.0), (1.0, -1.0)])
def test_the_command_refuses_numbers_without_a_meaning(
    tmp_path: Path, ratio: float, hours: float
) -> None:
    path = trace(tmp_path, "2017-10-09 07:01:55,66.0,1,66.0,x")
    with pytest.raises(InvalidInput):
        fairness(trace=path, nodes_ratio=ratio, checkpoint_h=hours)
