"""Replays against a fake control plane, which gives out devices as it likes."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from atoll.api.submission.v1 import submission_pb2 as pb
from atoll.cli.replay.drive import Progress, Replay
from tests.cli.conftest import Atoll
from tests.client.world import World
from tools.make_openb import write

NODES, PODS, DEVICES = 6, 40, 8


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    write(tmp_path, nodes=NODES, pods=PODS, seed=3)
    return tmp_path


@pytest.fixture
def cluster(world: World) -> World:
    for n in range(NODES):
        node = pb.Node(cluster="openb", id=n)
        node.inventory.name = f"node-{n:04}"
        world.nodes.append(node)
    return world


def gives(device_of: Callable[[int], tuple[int, int]]) -> Callable[[World, int], None]:
    """Every job runs through at once, each on the (node, device) that it is given."""

    def play(world: World, job_id: int) -> None:
        node, index = device_of(job_id)
        job = world.jobs[job_id]
        job.submitted_at = float(job_id)
        world.place(job_id, "openb", f"node-{node:04}")
        job.placed_at, job.accepted_at = job_id + 0.010, job_id + 0.020
        job.tasks[0].devices.add(index=index, blocks=100)
        world.start(job_id)
        world.end(job_id)
        job.ended_at = job_id + 5.0

    return play


def each_its_own(job_id: int) -> tuple[int, int]:
    return divmod(job_id % (NODES * DEVICES), DEVICES)


def replay(atoll: Atoll, lists: Path, *more: str) -> tuple[int, dict[str, object], str]:
    done = atoll(
        "replay", "openb", "--nodes", str(lists / "nodes.csv"), "--pods", str(lists / "pods.csv"),
        "--speed", "1e9", "-o", "json", *more,
    )  # fmt: skip
    return done.code, json.loads(done.out) if done.out else {}, done.err


def test_a_replay_runs_every_job_and_finds_nothing_wrong(
    atoll: Atoll, cluster: World, lists: Path
) -> None:
    cluster.plays = gives(each_its_own)
    code, result, told = replay(atoll, lists)
    assert (code, result["jobs"], result["states"]) == (0, PODS, {"SUCCEEDED": PODS})
    assert result["overcommitted"] == []
    assert result["submit_to_placed_ms"] == {"p50": 10.0, "p95": 10.0, "p99": 10.0}
    assert result["submit_to_accepted_ms"] == {"p50": 20.0, "p95": 20.0, "p99": 20.0}
    assert result["peak_devices"] == 5.0
    assert f"{PODS} jobs on cluster openb" in told


def test_jobs_of_a_replay_are_pinned_labelled_and_know_how_long_they_run(
    atoll: Atoll, cluster: World, lists: Path
) -> None:
    cluster.plays = gives(each_its_own)
    _, result, _ = replay(atoll, lists)
    for job in cluster.jobs.values():
        (group,) = job.spec.groups
        assert job.spec.labels["replay"] == result["run"]
        assert float(group.envs["ATOLL_SIM_SECONDS"]) > 0
        assert all(shape.labels["cluster"] == "openb" for shape in group.shapes)


def test_a_device_with_two_owners_is_found_and_ends_with_1(
    atoll: Atoll, cluster: World, lists: Path
) -> None:
    cluster.plays = gives(lambda job_id: (0, job_id % 2))
    code, result, _ = replay(atoll, lists)
    assert code == 1
    faults = result["overcommitted"]
    assert isinstance(faults, list)
    assert "of node-0000 is held to 200% by" in faults[0]


def test_what_nodes_show_is_checked_too_and_told_once(
    atoll: Atoll, cluster: World, lists: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_twice(monkeypatch)
    cluster.plays = gives(each_its_own)
    for attempt in ("98.1", "99.1"):
        cluster.nodes[0].device_use.add(index=3, blocks=60, attempt=attempt)
    code, result, _ = replay(atoll, lists)
    assert (code, result["overcommitted"]) == (1, ["device 3 of node-0000 is held to 120%"])
    assert result["looks_at_nodes"] == 2


def look_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the nodes, however long the replay takes."""
    look = Replay._look

    async def twice(self: Replay, progress: Progress) -> None:
        await look(self, progress)
        await look(self, progress)

    async def never(self: Replay, progress: Progress) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Replay, "_look", twice)
    monkeypatch.setattr(Replay, "_keep_looking", never)


def test_the_ledger_of_the_cluster_is_checked_too(
    atoll: Atoll, cluster: World, lists: Path
) -> None:
    cluster.plays = gives(each_its_own)
    ledger = lists / "ledger.jsonl"
    task = {"rank": 0, "node": "n0", "devices": [[0, 60, 0, ""]]}
    starts = [{"t": "start", "attempt": a, "at": a, "tasks": [task]} for a in (1, 2)]
    ledger.write_text("".join(json.dumps(entry) + "\n" for entry in starts))
    code, result, _ = replay(atoll, lists, "--ledger", str(ledger))
    assert code == 1
    assert result["overcommitted"] == ["at 2.000: device 0 of n0 is held to 120% by 1, 2"]


def test_only_the_first_pods_are_taken(atoll: Atoll, cluster: World, lists: Path) -> None:
    cluster.plays = gives(each_its_own)
    assert replay(atoll, lists, "--limit", "7")[1]["jobs"] == 7


def test_a_person_reads_the_result(atoll: Atoll, cluster: World, lists: Path) -> None:
    cluster.plays = gives(each_its_own)
    code, _, _ = replay(atoll, lists, "--limit", "7")
    done = atoll(
        "replay", "openb", "--nodes", str(lists / "nodes.csv"), "--pods", str(lists / "pods.csv"),
        "--speed", "1e9", "--limit", "7",
    )  # fmt: skip
    assert code == done.code == 0
    assert "submit->placed   P50 10.0 ms, P95 10.0 ms, P99 10.0 ms" in done.out
    assert "over-commitment  none" in done.out


def test_a_cluster_without_the_nodes_is_refused_with_what_to_do(
    atoll: Atoll, cluster: World, lists: Path
) -> None:
    del cluster.nodes[-2:]
    code, _, told = replay(atoll, lists)
    assert code == 2
    assert "openb lacks 2 of them" in told
    assert "atoll up --clusters FILE" in told
    assert not cluster.jobs


@pytest.mark.parametrize(
    ("words", "told"),
    [(("--speed", "0"), "--speed 0: must be more than 0"), (("--pods", "no.csv"), "no.csv")],
    ids=["speed", "file"],
)
def test_wrong_use_is_told(
    atoll: Atoll, cluster: World, lists: Path, words: tuple[str, str], told: str
) -> None:
    done = atoll(
        "replay", "openb", "--nodes", str(lists / "nodes.csv"),
        *(() if "--pods" in words else ("--pods", str(lists / "pods.csv"))), *words,
    )  # fmt: skip
    assert (done.code, told in done.err) == (2, True)


def test_a_replay_that_is_over_before_the_first_look_looks_once_all_the_same(
    atoll: Atoll, cluster: World, lists: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(self: Replay, progress: Progress) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Replay, "_keep_looking", never)
    cluster.plays = gives(each_its_own)
    code, result, _ = replay(atoll, lists)
    assert (code, result["looks_at_nodes"]) == (0, 1)
