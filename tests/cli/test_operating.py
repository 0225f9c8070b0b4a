"""Queues, clusters, nodes, explanations and settings on the command line."""

import json
from pathlib import Path

import pytest
import yaml

from atoll.api.common.v1 import common_pb2
from atoll.api.placement.v1 import placement_pb2
from atoll.api.submission.v1 import submission_pb2 as pb
from tests.cli.conftest import Atoll
from tests.client.fake import Server
from tests.client.world import World


@pytest.fixture
def furnished(world: World) -> World:
    world.clusters.append(
        pb.Cluster(
            name="here", backend="simulated", state="ACTIVE", nodes=2, nodes_up=1,
            devices={"H100": 8}, free_blocks={"H100": 750}, cpu_milli=64_000,
            free_cpu_milli=60_500, memory_bytes=1 << 37, free_memory_bytes=1 << 36,
        )
    )  # fmt: skip
    node = pb.Node(cluster="here", id=1, cordoned=True, cordon_reason="fans", used_cpu_milli=3_500)
    node.inventory.name, node.inventory.cpu_milli, node.inventory.up = "n0", 32_000, True
    node.inventory.memory_bytes = 1 << 36
    for index in range(8):
        node.inventory.devices.add(index=index, kind="H100", healthy=True)
    node.device_use.add(index=0, blocks=50, attempt="1.1")
    world.nodes.append(node)
    return world


def test_queues_are_created_changed_listed_and_deleted(atoll: Atoll, world: World) -> None:
    assert (
        atoll("queue", "create", "team.a", "--device-limit", "2.5").out == "queue team.a created\n"
    )
    assert world.queues["team.a"].device_limit_blocks == 250
    assert atoll("queue", "set", "team.a", "--max-queued", "7").code == 0
    assert (world.queues["team.a"].max_queued_jobs, world.queues["team.a"].device_limit_blocks) == (
        7, 250,
    )  # fmt: skip
    assert atoll("queue", "ls", "-o", "name").out == "team.a\n"
    assert json.loads(atoll("queue", "get", "team.a", "-o", "json").out)["max_queued_jobs"] == 7
    assert "2.5" in atoll("queue", "ls").out
    assert atoll("queue", "delete", "team.a").code == 0
    assert atoll("queue", "get", "team.a").code == 102
    assert atoll("queue", "set", "team.a").code == 2
    assert atoll("queue", "create", "x", "--device-limit", "0.333").code == 2


def test_shares_of_queues_are_given_in_devices(atoll: Atoll, world: World) -> None:
    world.notes = ["no cluster has B300 now; there are H100"]
    made = atoll(
        "queue", "create", "org", "--weight", "2", "--deserved", "H100=8", "--deserved",
        "B300=0.5", "--limit", "H100=16", "--no-preempts",
    )  # fmt: skip
    assert made.out == "queue org created\n"
    assert made.err == "note: no cluster has B300 now; there are H100\n"
    queue = world.queues["org"]
    assert (queue.weight, queue.preempts) == (2.0, False)
    assert dict(queue.deserved_blocks) == {"H100": 800, "B300": 50}
    assert dict(queue.kind_limit_blocks) == {"H100": 1600}
    assert atoll("queue", "set", "org", "--deserved", "B300=0").code == 0
    assert (dict(queue.deserved_blocks), queue.weight) == ({"H100": 800}, 2.0)
    row = atoll("queue", "ls").out.splitlines()[1]
    assert row.split()[7:10] == ["2", "H100=8", "H100=16"]
    shown = json.loads(atoll("queue", "get", "org", "-o", "json").out)
    assert (shown["deserved_blocks"], shown["preempts"]) == ({"H100": 800}, False)


@pytest.mark.parametrize("words", ["H100", "H100=x", "=8", "H100=-1", "H100=0.333", "H100=nan"])
def test_amounts_by_kind_that_make_no_sense_are_refused(atoll: Atoll, words: str) -> None:
    for option in ("--deserved", "--limit"):
        assert atoll("queue", "create", "x", option, words).code == 2


def test_clusters_are_listed(atoll: Atoll, furnished: World) -> None:
    head, row = atoll("clusters").out.splitlines()
    assert head.split()[:4] == ["CLUSTER", "BACKEND", "STATE", "NODES"]
    assert row.split()[:6] == ["here", "simulated", "ACTIVE", "1/2", "60.5/64", "64GiB/128GiB"]
    assert "H100:7.5/8" in row
    assert atoll("clusters", "ls", "-o", "name").out == "here\n"
    assert yaml.safe_load(atoll("clusters", "ls", "-o", "yaml").out)[0]["last_seen"] is None


def test_a_rented_cluster_that_has_not_joined_is_listed(atoll: Atoll, world: World) -> None:
    world.clusters.append(pb.Cluster(name="burst-7", state="BOOTING", nodes=1, nodes_up=1))
    _, row = atoll("clusters").out.splitlines()
    assert row.split()[:3] == ["burst-7", "BOOTING", "1/1"]


def test_a_cluster_is_given_up_only_by_who_says_that_it_is_fenced(
    atoll: Atoll, world: World
) -> None:
    refused = atoll("clusters", "forget", "old")
    assert (refused.code, "--i-have-fenced-it" in refused.err) == (2, True)
    assert world.forgotten == []
    done = atoll("clusters", "forget", "old", "--i-have-fenced-it")
    assert done.out == "old is forgotten: 2 attempts lost, 1 decision void\n"
    assert world.forgotten == ["old"]


def test_nodes_and_accelerators_are_listed(atoll: Atoll, furnished: World) -> None:
    row = atoll("nodes").out.splitlines()[1]
    assert row.split() == ["here", "n0", "CORDONED", "28.5/32", "64GiB/64GiB", "H100:7.5/8"]
    assert "fans" in atoll("nodes", "-o", "wide").out
    assert atoll("nodes", "-o", "name").out == "here/n0\n"
    assert atoll("gpus").out.splitlines()[1].split() == ["here", "-", "H100", "8", "7.5"]
    assert atoll("gpus", "--nodes").out.splitlines()[1].split() == [
        "here",
        "n0",
        "H100",
        "8",
        "7.5",
    ]
    nothing = atoll("gpus", "--cluster", "elsewhere")
    assert (nothing.code, nothing.out, "no accelerators" in nothing.err) == (0, "", True)


def test_places_are_cordoned_and_uncordoned(atoll: Atoll, world: World) -> None:
    assert atoll("cordon", "here/n0", "--reason", "fans").out == "here/n0 takes no new work\n"
    atoll("cordon", "there")
    assert world.cordons == [("here", "n0", "fans"), ("there", "", "")]
    atoll("uncordon", "here/n0")
    atoll("uncordon", "there")
    assert world.cordons == []


@pytest.fixture
def explained(world: World) -> World:
    answer = placement_pb2.ExplainJobResponse(
        state=common_pb2.JOB_STATE_QUEUED, summary="Waits for 8 H100.", jobs_ahead=1, as_of=1.0
    )
    answer.reasons.add(
        code="DEVICES_SHORT", message="No node has 8 free.", cluster="here", needed=8, available=6,
        unit="devices", count=2, help="job 12 ends in 5 minutes",
    )  # fmt: skip
    answer.reasons.add(code="MEMORY_SHORT", needed=2 << 30, available=1 << 30, unit="bytes")
    answer.tallies.add(cluster="here", nodes=3, counts={"DEVICES_SHORT": 2, "NODE_SUSPECT": 1})
    answer.unread.append("queue limits")
    world.explanations[1] = answer
    return world


def test_explain_tells_every_reason_with_its_numbers(atoll: Atoll, explained: World) -> None:
    lines = atoll("explain", "1").out.splitlines()
    assert lines[:8] == [
        "job 1: QUEUED",
        "Waits for 8 H100.",
        "",
        "1. DEVICES_SHORT on here",
        "   No node has 8 free.",
        "   needs 8 devices, there are 6 devices at best, on 2 nodes",
        "   What would help: job 12 ends in 5 minutes",
        "",
    ]
    assert "   needs 2GiB, there are 1GiB at best" in lines
    assert "  here (3): 2 DEVICES_SHORT, 1 NODE_SUSPECT" in lines
    assert "1 job is before it." in lines
    assert "Could not be read: queue limits" in lines


def test_explain_for_programs(atoll: Atoll, explained: World) -> None:
    found = json.loads(atoll("explain", "1", "-o", "json").out)
    assert found["reasons"][0]["code"] == "DEVICES_SHORT"
    assert found["as_of"] == "1970-01-01T00:00:01.000+00:00"
    assert atoll("explain", "1", "-o", "name").out == "DEVICES_SHORT\nMEMORY_SHORT\n"
    assert atoll("explain", "9").code == 102


def test_config_shows_where_settings_come_from(
    atoll: Atoll, server: Server, tmp_path: Path
) -> None:
    (tmp_path / "config.yaml").write_text("client: {tenant: ours}\n")
    rows = [line.split(maxsplit=2) for line in atoll("config", "show", "--origin").out.splitlines()]
    assert ["endpoint", server.address, "environment ATOLL_ENDPOINT"] in rows
    assert ["tenant", "ours", f"file {tmp_path / 'config.yaml'}"] in rows
    assert ["tls", "auto", "default"] in rows
    (tmp_path / "config.yaml").write_text("client: {tenannt: ours}\n")
    wrong = atoll("config", "show")
    assert (wrong.code, "did you mean `tenant`?" in wrong.err) == (3, True)


def test_doctor_tells_what_is_wrong(
    atoll: Atoll, furnished: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the launcher checks of this machine is its own test's business.
    monkeypatch.setattr("atoll.cli.commands.doctor.EMBEDDED", "atoll.cli.no_such_module")
    furnished.burst.status.leader = "here:1"
    furnished.burst.status.instances["READY"] = 2
    furnished.burst.status.instances["TERMINATED"] = 5
    well = atoll("doctor")
    assert well.code == 0
    assert "ok   renting: 2 instances rented" in well.out.splitlines()
    assert "ok   clusters: here" in well.out.splitlines()
    furnished.clusters[0].state = "SILENT"
    furnished.burst.status.leader = ""
    ill = atoll("doctor")
    assert ill.code == 5
    assert "BAD  clusters: none is ACTIVE" in ill.out
    assert "BAD  renting: nobody leads" in ill.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["lss"], "ls"),
        (["ls", "--quue", "x"], "--queue"),
        (["ls", "--state", "lost"], "queued"),
        (["get"], "JOB"),
        (["get", "x"], "int"),
        (["run"], "atoll run -- hostname"),
        (["run", "hostname", "now"], "atoll run -- hostname now"),
        (["run", "--array", "3", "--", "x"], "atoll submit"),
        (["submit"], "atoll submit FILE"),
        (["submit", "x.yaml", "--", "x"], "either a file or a command"),
        (["submit", "--env", "A", "--", "x"], "KEY=VALUE"),
        (["wait", "1", "--timeout", "soon"], "2h30m"),
        (["ls", "1"], "too many words: 1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_use_ends_with_2_and_tells_what_is_right(
    atoll: Atoll, words: list[str], told: str
) -> None:
    done = atoll(*words)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert "Traceback" not in done.err
