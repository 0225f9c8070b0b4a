"""Plans, shares, priorities and waits on the command line."""

import json

import pytest

from atoll.api.common.v1 import common_pb2 as common
from atoll.api.placement.v1 import placement_pb2 as pb
from atoll.core.model.errors import ErrorCode, Unavailable
from tests.cli.conftest import Atoll
from tests.client.world import World


@pytest.fixture
def fitting(world: World) -> World:
    task = common.TaskPlacement(rank=0, node="n1", node_id=1)
    task.devices.add(index=3, blocks=100)
    task.devices.add(index=4, blocks=25)
    world.plan = pb.PlanJobResponse(
        summary="it would start now on cluster here", fits_now=True, cluster="here", tasks=[task],
        jobs_ahead=1, as_of=1.0,
    )  # fmt: skip
    return world


@pytest.fixture
def waiting(world: World) -> World:
    reason = common.Reason(code="DEVICES_SHORT", message="no node has 8 free", needed=8)
    holder = pb.Holder(
        attempt="7.1", queue="a", cluster="here", amount=400, unit="blocks", nodes=1, stopping=True
    )
    world.plan = pb.PlanJobResponse(
        summary="it would wait: no node has 8 free",
        victims=[pb.Victim(attempt="9.2", queue="b", cluster="here", priority=-5, grace_s=30)],
        reasons=[reason],
        holders=[holder],
        eta=pb.Eta(p50_at=1e9, p90_at=2e9, cause="job 7 ends"),
        as_of=1.0,
    )
    return world


def test_a_plan_shows_the_place(atoll: Atoll, fitting: World) -> None:
    done = atoll("plan", "--gpus", "H100:8", "--", "python", "train.py")
    assert (done.code, done.out.splitlines()[:5]) == (
        0,
        [
            "it would start now on cluster here",
            "",
            "  RANK  NODE  DEVICES",
            "     0  n1    3:1 4:0.25",
            "",
        ],
    )
    assert "1 job is before it." in done.out
    (spec,) = fitting.planned
    assert (spec.name, spec.groups[0].run) == ("python", "python train.py")
    assert fitting.jobs == {}
    assert atoll("plan", "-o", "name", "--", "x").out == "here\n"


def test_a_plan_shows_victims_blockers_holders_and_a_forecast(atoll: Atoll, waiting: World) -> None:
    done = atoll("plan", "--", "x")
    assert done.code == 0
    for line in (
        "it would wait: no node has 8 free",
        "  9.2  b  here  priority -5  30s grace",
        "1. DEVICES_SHORT",
        "  7.1  a  here  4 devices  being stopped",
        "  job 7 ends",
    ):
        assert line in done.out.splitlines()
    assert "Starts about 2001-09-09 01:46 UTC" in done.out
    found = json.loads(atoll("plan", "-o", "json", "--", "x").out)
    assert found["victims"][0]["attempt"] == "9.2"
    assert found["eta"]["p50_at"] == "2001-09-09T01:46:40.000+00:00"


def places(now: float) -> list[pb.Candidate]:
    return [
        pb.Candidate(
            offer="aws/eu-1a/p5/spot", start_at=now + 361, finish_at=now + 3961,
            delay_cost=2_000_000, price=3_100_000, total=5_100_000, allowed=True,
            why="on spot in 6 min at $3.10/h",
        ),
        pb.Candidate(
            cluster="here", start_at=now + 11_405, finish_at=now + 15_005, delay_cost=9_250_000,
            total=9_250_000, allowed=True, why="local in 3 h 10 min",
        ),
        pb.Candidate(
            cluster="there", start_at=now, total=1, why="not now: the cluster is cordoned"
        ),
    ]  # fmt: skip


TABLE = [
    "Where it could run:",
    "  PLACE                STARTS      ENDS   COST  TOTAL  WHY",
    "  aws/eu-1a/p5/spot     in 6m   in 1h6m  $3.10  $5.10  on spot in 6 min at $3.10/h",
    "  here               in 3h10m  in 4h10m  $0.00  $9.25  local in 3 h 10 min",
    "  there                     -         -      -      -  not now: the cluster is cordoned",
]


def test_places_where_a_job_could_run_are_listed_the_best_first(
    atoll: Atoll, world: World, now: float
) -> None:
    world.plan = pb.PlanJobResponse(summary="it would wait", candidates=places(now))
    world.explanations[1] = pb.ExplainJobResponse(
        state=common.JOB_STATE_QUEUED, summary="it waits", candidates=places(now)
    )
    for words in (("plan", "--", "x"), ("explain", "1")):
        lines = atoll(*words).out.splitlines()
        at = lines.index(TABLE[0])
        assert lines[at : at + 5] == TABLE
        first, *_, last = json.loads(atoll(*words[:1], "-o", "json", *words[1:]).out)["candidates"]
        assert (first["price"], first["total"], first["allowed"]) == (3.1, 5.1, True)
        assert first["start_at"].startswith("20")
        assert (last["finish_at"], last["allowed"]) == (None, False)


def test_what_can_never_run_ends_with_6(atoll: Atoll, world: World) -> None:
    world.plan = pb.PlanJobResponse(summary="it can never run: too wide", never_fits=True)
    done = atoll("plan", "--", "x")
    assert (done.code, done.out.splitlines()[0]) == (6, "it can never run: too wide")
    assert atoll("plan").code == 2
    assert atoll("plan", "--cpus", "no", "--", "x").code == 3


@pytest.fixture
def shared(world: World) -> World:
    kinds = [
        pb.KindShare(kind="A100", held=50, deserved=400, capacity=800),
        pb.KindShare(kind="H100", held=800, deserved=600, borrowed=200, capacity=1600),
    ]
    world.shares = [
        pb.QueueShare(
            queue="org", weight=2, kinds=kinds, dominant_share=0.5, past_share=0.125,
            cpu_milli=1500, memory_bytes=1 << 30,
        ),
        pb.QueueShare(queue="other", weight=1),
    ]  # fmt: skip
    return world


def test_shares_have_a_row_for_each_kind(atoll: Atoll, shared: World) -> None:
    head, *rows = [line.split() for line in atoll("share").out.splitlines()]
    assert head == [
        "QUEUE", "WEIGHT", "KIND", "USED", "DESERVED", "BORROWED", "OF", "SHARE", "PAST",
    ]  # fmt: skip
    assert rows == [
        ["org", "2", "A100", "0.5", "4", "-", "8", "50.0%", "12.5%"],
        ["org", "2", "H100", "8", "6", "2", "16", "50.0%", "12.5%"],
        ["other", "1", "-", "-", "-", "-", "-", "0.0%", "0.0%"],
    ]
    assert len(atoll("share", "org").out.splitlines()) == 3
    assert atoll("share", "-o", "name").out == "org\nother\n"
    assert json.loads(atoll("share", "-o", "json").out)[0]["kinds"][1]["borrowed"] == 200


def test_factors_are_shown_in_their_order(atoll: Atoll, world: World) -> None:
    factors = [
        pb.PriorityFactor(name="below_deserved", value=1, queue="org"),
        pb.PriorityFactor(name="age", value=3600, unit="s"),
    ]
    world.priorities[1] = pb.GetPriorityResponse(
        state=common.JOB_STATE_QUEUED, order="fair_share", factors=factors, jobs_ahead=2
    )
    lines = atoll("prio", "1").out.splitlines()
    assert lines[0] == "job 1: QUEUED"
    assert [line.split() for line in lines[2:4]] == [
        ["1", "below_deserved", "1", "org"],
        ["2", "age", "3,600s", "the", "job"],
    ]
    assert "2 jobs would be before it" in lines[4]
    assert atoll("prio", "1", "-o", "name").out == "below_deserved\nage\n"
    assert atoll("prio", "9").code == 102
    world.priorities[2] = pb.GetPriorityResponse(state=common.JOB_STATE_RUNNING)
    assert "only queued jobs" in atoll("prio", "2").out


def test_a_list_tells_why_jobs_wait(atoll: Atoll, world: World) -> None:
    for _ in range(2):
        world.add(common.JobSpec(name="x"))
    world.place(2)
    world.waits = [pb.Wait(job_id=1, code="QUEUE_LIMIT", message="8 of 8 are used")]
    rows = atoll("ls").out.splitlines()
    assert rows[2].split()[-1] == "QUEUE_LIMIT"
    assert "8 of 8 are used" in atoll("ls", "-o", "wide").out
    assert world.calls["ListWaits"] == 2


def test_a_list_tells_when_jobs_start(atoll: Atoll, world: World, now: float) -> None:
    for _ in range(3):
        world.add(common.JobSpec(name="x"))
    world.place(3)
    forecast = pb.Eta(p50_at=now + 7230, p90_at=now + 9030, cause="job 7 ends")
    promise = pb.Eta(p50_at=now + 605, p90_at=now + 605, promised=True, cause="reserved")
    world.waits = [pb.Wait(job_id=1, eta=forecast), pb.Wait(job_id=2, eta=promise)]
    head, *rows = [line.split() for line in atoll("ls").out.splitlines()]
    at = head.index("START") - len(head)
    assert [row[at] for row in rows] == ["-", "<10m", "~2h"]
    shown = {job["id"]: job for job in json.loads(atoll("ls", "-o", "json").out)}
    assert shown[1]["wait"]["eta"]["cause"] == "job 7 ends"
    assert shown[1]["wait"]["eta"]["p50_at"].startswith("20")
    assert "wait" not in shown[3]
    assert "~2h, with 90 % in 2h: job 7 ends" in atoll("get", "1").out
    assert json.loads(atoll("get", "2", "-o", "json").out)["wait"]["eta"]["promised"] is True


def test_a_list_does_without_a_leader(atoll: Atoll, world: World) -> None:
    world.add(common.JobSpec(name="x"))
    world.failures["ListWaits"].append(Unavailable("down", code=ErrorCode.UNAVAILABLE))
    done = atoll("ls")
    assert (done.code, done.out.splitlines()[1].split()[-1]) == (0, "-")
