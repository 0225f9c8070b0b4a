"""Packing of openb lists: what arrives, what is written, and that it holds by itself."""

import csv
import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atoll.core.model.errors import InvalidInput
from atoll.sim.commands.pack import SCORES, Policy, pack
from atoll.sim.pack import arrivals, capacity_milli
from atoll.sim.readers.openb import Pod, read_nodes, read_pods

NODES = """sn,cpu_milli,memory_mib,gpu,model
n0,32000,65536,2,P100
n1,96000,262144,8,G2
n2,64000,131072,4,T4
n3,16000,32768,1,T4
"""
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos
p0,4000,8192,1,1000,,LS
p1,3000,4096,1,810,,LS
p2,8000,8192,1,470,,LS
p3,4000,8192,1,160,T4,LS
p4,12000,16384,2,1000,,LS
p5,8000,30517,0,0,,BE
p6,6000,8192,1,320,P100|T4,LS
"""


@pytest.fixture
def lists(tmp_path: Path) -> tuple[Path, Path]:
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv.gz"
    nodes.write_text(NODES)
    pods.write_bytes(gzip.compress(PODS.encode()))
    return nodes, pods


@pytest.fixture
def run(
    lists: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> Callable[..., dict[str, Any]]:
    def once(**settings: Any) -> dict[str, Any]:
        assert pack(nodes=lists[0], pods=lists[1], **settings) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
        return found

    return once


def test_a_list_that_is_long_enough_is_shuffled_and_cut_after_the_pod_that_reaches_the_goal() -> (
    None
):
    pods = [Pod(f"p{n}", 1000, 1024, 1, 500) for n in range(10)]
    arrived = arrivals(pods, capacity_milli=2000, percent=130, seed=7)
    order = np.random.default_rng(7).permutation(10)
    assert [pod.name for pod in arrived] == [f"p{n}" for n in order[:6]]


def test_a_list_that_is_too_short_is_filled_up_and_shuffled_again() -> None:
    pods = [Pod(f"p{n}", 1000, 1024, 1, 500) for n in range(4)]
    arrived = arrivals(pods, capacity_milli=4000, percent=130, seed=7)
    rng = np.random.default_rng(7)
    drawn = [*rng.permutation(4)]
    while len(drawn) * 500 < 5200:
        drawn.append(rng.integers(4))
    assert [pod.name for pod in arrived] == [
        f"p{drawn[place]}" for place in rng.permutation(len(drawn))
    ]


@pytest.mark.parametrize("policy", list(SCORES))
def test_what_is_written_fits_and_adds_up(
    policy: Policy, lists: tuple[Path, Path], run: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    found = run(policy=policy, seed=42, out=out)
    nodes = {node.name: node for node in read_nodes(lists[0])}
    pods = {pod.name: pod for pod in read_pods(lists[1])}
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["arrival"]) for row in rows] == list(range(found["arrived"][0]))
    cpu: Counter[str] = Counter()
    memory: Counter[str] = Counter()
    devices: defaultdict[tuple[str, int], int] = defaultdict(int)
    for row in rows:
        pod, held = pods[row["pod"]], row["node"]
        shares = [tuple(map(int, part.split(":"))) for part in row["devices"].split(";") if part]
        if not held:
            assert not shares
            continue
        assert [milli for _, milli in shares] == [pod.gpu_milli] * pod.gpus
        assert len({index for index, _ in shares}) == pod.gpus
        assert not pod.models or nodes[held].model in pod.models
        cpu[held] += pod.cpu_milli
        memory[held] += pod.memory_mib
        for index, milli in shares:
            assert 0 <= index < nodes[held].gpus
            devices[held, index] += milli
    assert all(cpu[name] <= node.cpu_milli for name, node in nodes.items())
    assert all(memory[name] <= node.memory_mib for name, node in nodes.items())
    assert max(devices.values()) <= 1000
    share = 100 * sum(devices.values()) / capacity_milli(list(nodes.values()))
    assert found["allocated_pct"] == pytest.approx(share, abs=1e-3)
    assert found["placed"] == [sum(bool(row["node"]) for row in rows)]
    assert found["placements_per_s"] > 0


@pytest.mark.parametrize("policy", list(SCORES))
def test_a_pod_is_dropped_only_when_no_node_holds_it(
    policy: Policy, lists: tuple[Path, Path], run: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    run(policy=policy, seed=3, out=out)
    pods = {pod.name: pod for pod in read_pods(lists[1])}
    free: dict[str, Any] = {
        node.name: [node.cpu_milli, node.memory_mib, [1000] * node.gpus, node.model]
        for node in read_nodes(lists[0])
    }
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert any(not row["node"] for row in rows)
    for row in rows:
        pod = pods[row["pod"]]
        if not row["node"]:
            assert not any(_holds(pod, *left) for left in free.values())
            continue
        left = free[row["node"]]
        left[0] -= pod.cpu_milli
        left[1] -= pod.memory_mib
        for part in filter(None, row["devices"].split(";")):
            index, milli = map(int, part.split(":"))
            left[2][index] -= milli


def _holds(pod: Pod, cpu: int, memory: int, devices: list[int], model: str) -> bool:
    roomy = cpu >= pod.cpu_milli and memory >= pod.memory_mib
    enough = sum(free >= pod.gpu_milli for free in devices) >= pod.gpus
    return roomy and enough and (not pod.models or model in pod.models)


def test_seeds_are_reported_singly_and_repeat(run: Callable[..., dict[str, Any]]) -> None:
    found = run(seeds="42-44", policy="random")
    assert found["seeds"] == [42, 44]
    singly = [run(seed=seed, policy="random")["allocated_pct"] for seed in (42, 43, 44)]
    assert found["per_seed"] == singly
    assert found["allocated_pct"] == pytest.approx(sum(singly) / 3, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("pods", "name,cpu_milli\np0,1\n", "num_gpu"),
        ("pods", PODS + "bad,1,1,1,465,,LS\n", "line 9: gpu_milli is 465"),
        ("pods", PODS + "bad,1,1,2,500,,LS\n", "line 9: gpu_milli is 500: several GPUs"),
        ("pods", PODS + "bad,x,1,2,1000,,LS\n", "line 9"),
        ("nodes", "sn,cpu_milli,memory_mib,gpu,model\n", "holds nothing"),
    ],
)
def test_a_wrong_file_is_told_by_line(
    name: str, text: str, said: str, tmp_path: Path, lists: tuple[Path, Path]
) -> None:
    wrong = tmp_path / "wrong.csv"
    wrong.write_text(text)
    files = {"nodes": lists[0], "pods": lists[1]} | {name: wrong}
    with pytest.raises(InvalidInput, match=said):
        pack(nodes=files["nodes"], pods=files["pods"])


@pytest.mark.parametrize("seeds", ["42", "5-1", "a-b"])
def test_seeds_are_a_range(seeds: str, lists: tuple[Path, Path]) -> None:
    with pytest.raises(InvalidInput, match="42-51"):
        pack(nodes=lists[0], pods=lists[1], seeds=seeds)
