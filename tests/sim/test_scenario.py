"""Scenario files, and the work in them."""

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from atoll.core.model.errors import InvalidInput
from atoll.sim import scenario as scenarios
from atoll.sim.generator import generate
from atoll.sim.scenario import Synthetic, Trace
from atoll.sim.service import settings as told
from atoll.sim.traces import read_trace
from atoll.sim.workload import works_of
from tests.sim.small import cluster


@pytest.mark.parametrize("name", scenarios.shipped())
def test_what_is_shipped_can_be_run(name: str) -> None:
    given = scenarios.load(name)
    assert told.plane_settings(given.settings).placement.lost_after_s > 0
    assert all(described.nodes for described in told.clusters(given).values())
    assert len(works_of(given)) > 100


def written(folder: Path, **given: Any) -> str:
    path = folder / "given.yaml"
    whole = {"clusters": [cluster("north")], "synthetic": [{"jobs": 3}]} | given
    path.write_text(yaml.safe_dump(whole))
    return str(path)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"sead": 1}, "sead"),
        ({"length": "soon"}, "length"),
        ({"synthetic": []}, ""),
        ({"clusters": [{"name": "x"}]}, "clusters.0"),
        ({"faults": [{"what": "node-death"}]}, "faults.0"),
        ({"faults": [{"what": "earthquake", "at": [1]}]}, "faults.0.what"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        scenarios.load(written(tmp_path, **wrong))
    assert refused.value.violations[0].field == field


def test_a_name_that_is_neither_a_file_nor_shipped_is_refused() -> None:
    with pytest.raises(InvalidInput, match="demo"):
        scenarios.load("no-such-scenario")


def test_files_are_relative_to_the_scenario(tmp_path: Path) -> None:
    nodes = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,G2\nn1,96000,262144,0,\n"
    (tmp_path / "nodes.csv.gz").write_bytes(gzip.compress(nodes.encode()))
    given = scenarios.load(written(tmp_path, clusters=[{"name": "o", "file": "nodes.csv.gz"}]))
    described = told.clusters(given)["o"]
    assert [(node.name, len(node.devices)) for node in described.nodes] == [("n0", 2), ("n1", 0)]


def test_equal_seeds_make_equal_jobs() -> None:
    part = Synthetic(jobs=50, deadlines=0.5, kinds={"A": 1, "B": 1})
    one, two, other = (
        generate(part, np.random.default_rng(seed), prefix="s") for seed in (1, 1, 2)
    )
    assert one == two != other
    assert [work.at for work in one] == sorted(work.at for work in one)


def test_sizes_become_shares_devices_and_gangs() -> None:
    part = Synthetic(jobs=300, sizes={0.25: 1, 4: 1, 16: 1, 12: 1})
    works = generate(part, np.random.default_rng(3), prefix="s")
    seen = Counter[tuple[int, int, int]]()
    for work in works:
        (group,) = work.spec.groups
        device = group.shapes[0].device
        assert device is not None
        seen[group.count, device.count, device.blocks] += 1
    assert set(seen) == {(1, 1, 25), (1, 4, 100), (2, 8, 100), (2, 6, 100)}


def test_pods_of_openb_become_jobs(tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
        "creation_time,deletion_time,scheduled_time\n"
        "a,4000,1024,1,455,,LS,Running,100,400,150\n"
        "b,8000,2048,2,1000,V100M16|V100M32,LS,Running,130,140,130\n"
    )
    one, two = read_trace(Trace(format="openb", file=tmp_path / "pods.csv", speed=2.0))
    assert (one.at, one.run_s, two.at, two.run_s) == (0.0, 250.0, 15.0, 10.0)
    share = one.spec.groups[0].shapes[0].device
    assert share is not None
    assert share.blocks == 46
    kinds = [shape.device.kind for shape in two.spec.groups[0].shapes if shape.device]
    assert kinds == ["V100M16", "V100M32"]


def test_jobs_of_philly_keep_their_queues(tmp_path: Path) -> None:
    (tmp_path / "philly.csv").write_text(
        "timestamp,duration,num_gpus,gpu_time,cluster\n"
        "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"
        "2017-10-09 07:02:55,2951.0,18,53118.0,6214e9\n"
    )
    one, two = read_trace(Trace(format="philly", file=tmp_path / "philly.csv", checkpoint=3600))
    assert [work.spec.queue for work in (one, two)] == ["vc-11cb48", "vc-6214e9"]
    assert [(g.count, g.shapes[0].device.count) for g in two.spec.groups if g.shapes[0].device] == [
        (2, 8), (1, 2),
    ]  # fmt: skip
    assert two.at == 60.0
    assert two.spec.checkpoint is not None


def test_processors_of_parallel_machines_are_cpus(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(
        "job_id,submit_s,run_s,procs,req_time_s,user,easy_wait_s\n"
        "1,100,50,40,60,7,0\n"
        "2,160,10,16,20,7,3\n"
    )
    one, two = read_trace(Trace(format="pwa", file=tmp_path / "log.csv"))
    sizes = [(g.count, g.shapes[0].cpu_milli) for g in one.spec.groups]
    assert sizes == [(2, 16_000), (1, 8_000)]
    assert (one.at, one.run_s, one.spec.time_limit_s) == (0.0, 50.0, 61.0)
    assert (two.at, len(two.spec.groups)) == (60.0, 1)
