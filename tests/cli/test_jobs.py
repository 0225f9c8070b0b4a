"""Waiting for jobs, their output, lists and changes, and the exit codes of all that."""

import json

import pytest
import yaml

from atoll.api.common.v1 import common_pb2
from tests.cli.conftest import Atoll
from tests.client.story import later
from tests.client.world import World


@pytest.mark.parametrize(
    ("states", "code"),
    [
        (["SUCCEEDED", "SUCCEEDED"], 0),
        (["SUCCEEDED", "FAILED"], 100),
        (["CANCELLED", "SUCCEEDED"], 103),
        (["CANCELLED", "FAILED"], 100),
    ],
)
def test_wait_ends_with_the_worst_of_its_jobs(
    atoll: Atoll, world: World, states: list[str], code: int
) -> None:
    for n, state in enumerate(states, start=1):
        world.add(common_pb2.JobSpec(name="x"))
        world.move(n, state)
    assert atoll("wait", "1", "2").code == code


def test_wait_ends_when_the_job_does(atoll: Atoll, world: World) -> None:
    world.add(common_pb2.JobSpec(name="x"))
    later(lambda: world.place(1), lambda: world.start(1), lambda: world.end(1))
    done = atoll("wait", "1")
    assert (done.code, done.err) == (0, "job 1 succeeded\n")


def test_wait_tells_a_pending_job_from_a_running_one_at_its_timeout(
    atoll: Atoll, world: World
) -> None:
    world.add(common_pb2.JobSpec(name="x"))
    assert atoll("wait", "1", "--timeout", "0.2").code == 7
    world.place(1)
    world.start(1)
    done = atoll("wait", "1", "--timeout", "0.2")
    assert (done.code, done.err) == (101, "not ended in time: 1 is RUNNING\n")


def test_wait_for_no_job_is_not_found(atoll: Atoll) -> None:
    assert atoll("wait", "99").code == 102


@pytest.mark.parametrize(
    ("end", "code"), [("SUCCEEDED", 0), ("FAILED", 100), ("CANCELLED", 103), ("RUNNING", 101)]
)
def test_logs_end_with_the_state_of_the_job(
    atoll: Atoll, world: World, end: str, code: int
) -> None:
    world.add(common_pb2.JobSpec(name="x"))
    world.place(1)
    world.write(1, b"text\n")
    world.move(1, end)
    done = atoll("logs", "1")
    assert (done.code, done.out) == (code, "text\n")


def test_logs_follow_a_job_that_has_not_started(atoll: Atoll, world: World) -> None:
    world.add(common_pb2.JobSpec(name="x"))
    later(
        lambda: world.place(1),
        lambda: world.start(1),
        lambda: world.write(1, b"late\n"),
        lambda: world.end(1),
    )
    done = atoll("logs", "-f", "1")
    assert (done.code, done.out) == (0, "late\n")


def test_logs_of_a_job_without_output_are_refused(atoll: Atoll, world: World) -> None:
    world.add(common_pb2.JobSpec(name="x"))
    done = atoll("logs", "1")
    assert (done.code, done.out, "`atoll logs -f 1` waits" in done.err) == (101, "", True)
    assert atoll("logs", "99").code == 102


def test_jobs_are_listed_as_programs_want_them(atoll: Atoll, world: World) -> None:
    world.add(common_pb2.JobSpec(name="one", queue="default", labels={"k": "v"}))
    world.add(common_pb2.JobSpec(name="two", queue="default"))
    world.end(2, exit_code=3)
    assert atoll("ls", "-o", "name").out == "2\n1\n"
    listed = json.loads(atoll("ls", "-o", "json").out)
    assert [job["name"] for job in listed] == ["two", "one"]
    assert listed[0]["exit_code"] == 3
    assert listed[0]["submitted_at"] == "1970-01-01T00:00:01.000+00:00"
    assert listed[0]["placed_at"] is None
    rows = [json.loads(line) for line in atoll("ls", "-o", "jsonl").out.splitlines()]
    assert rows == listed == yaml.safe_load(atoll("ls", "-o", "yaml").out)
    table = atoll("ls").out.splitlines()
    assert table[0].split() == [
        "JOB",
        "NAME",
        "QUEUE",
        "STATE",
        "NEEDS",
        "CLUSTER",
        "AGE",
        "RAN",
        "WHY",
    ]
    assert "FAILED (3)" in table[1]
    assert "\x1b" not in "".join(table), "no colours off a terminal"
    assert [line == line.rstrip() for line in table] == [True] * 3
    assert atoll("ls", "--state", "failed", "-o", "name").out == "2\n"
    assert atoll("ls", "--label", "k=v", "-o", "name").out == "1\n"


def test_a_long_list_says_that_it_is_cut(atoll: Atoll, world: World) -> None:
    for _ in range(5):
        world.add(common_pb2.JobSpec(name="x"))
    done = atoll("ls", "--limit", "2")
    assert (len(done.out.splitlines()), done.err) == (3, "the newest 2; --limit 0 shows all\n")
    assert len(atoll("ls", "--limit", "0").out.splitlines()) == 6


def test_one_job_is_shown_in_full(atoll: Atoll, world: World) -> None:
    atoll("submit", "--gpus", "H100:0.5", "--", "x")
    world.place(1)
    world.jobs[1].tasks[0].devices.add(index=3, blocks=50)
    shown = atoll("get", "1").out
    assert "rank 0     node-0 (device 3 50%)" in shown
    assert "needs      H100:0.5" in shown
    job = json.loads(atoll("get", "1", "-o", "json").out)
    assert job["spec"]["groups"][0]["shapes"][0]["device"] == {
        "kind": "H100", "count": 1, "blocks": 50,
    }  # fmt: skip
    assert len(json.loads(atoll("get", "1", "1", "-o", "json").out)) == 2
    assert atoll("get", "9").code == 102


def test_jobs_are_changed(atoll: Atoll, world: World) -> None:
    for _ in range(2):
        world.add(common_pb2.JobSpec(name="x"))
    assert atoll("hold", "1").out == "job 1 held\n"
    assert atoll("release", "1").out == "job 1 queued\n"
    assert atoll("set-priority", "1", "-5").out == "job 1 has priority -5\n"
    world.place(2)
    world.start(2)
    assert atoll("cancel", "1", "2").out == (
        "job 1 cancelled (USER_CANCEL)\njob 2 is being cancelled\n"
    )
    refused = atoll("hold", "2")
    assert (refused.code, "WRONG_STATE" in refused.err) == (4, True)
