"""Rented capacity on the command line: what is asked, and how it is printed."""

import json

import pytest
import yaml

from atoll.api.burst.v1 import burst_pb2 as pb
from atoll.core.model.errors import ErrorCode, FailedPrecondition
from tests.cli.conftest import Atoll
from tests.client.world import World

OFFERS = """\
OFFER                         HAS       CPUS  MEMORY     $/H  $/DEVICE-H  MARKET     REGION  STARTS IN  TO BE HAD
ec2/eu-1a/g5.12xlarge/spot    4 x A10G    48  192GiB   $2.10      $0.525  spot       eu-1           3m  yes
process/here/small/on_demand  2 CPUs       2    1GiB  $0.004      $0.004  on demand  here           0s  not lately
"""  # noqa: E501 - as it is printed
SET = (
    "queue nlp: may rent; $20.00 an hour, $3,000.00 a month; in eu-1; from ec2; spot only; "
    "at most $4.00 per device-hour\n"
)


@pytest.fixture(autouse=True)
def on_offer(world: World) -> None:
    world.burst.offers = [
        pb.Offer(
            key="ec2/eu-1a/g5.12xlarge/spot", provider="ec2", region="eu-1", zone="eu-1a",
            instance_type="g5.12xlarge", market=pb.MARKET_SPOT, cpu_milli=48_000,
            memory_bytes=192 << 30, kind="A10G", devices=4, price=2_100_000, lead_s=180,
            available=True,
        ),
        pb.Offer(
            key="process/here/small/on_demand", provider="process", region="here", zone="here",
            instance_type="small", market=pb.MARKET_ON_DEMAND, cpu_milli=2_000,
            memory_bytes=1 << 30, price=4_000,
        ),
    ]  # fmt: skip


def test_offers_are_told_by_their_price_for_a_device(atoll: Atoll, world: World) -> None:
    done = atoll("burst", "offers", "--queue", "nlp")
    assert done.out == OFFERS
    assert world.burst.asked[-1].queue == "nlp"
    assert atoll("burst", "offers", "--kind", "A10G", "-o", "name").out.split() == [
        "ec2/eu-1a/g5.12xlarge/spot"
    ]
    (shown,) = json.loads(atoll("burst", "offers", "--kind", "A10G", "-o", "json").out)
    assert (shown["price_per_hour"], shown["market"]) == (2.1, "spot")
    nothing = atoll("burst", "offers", "--kind", "H100")
    assert (nothing.code, nothing.out) == (0, "")
    assert "nothing is on offer" in nothing.err


def test_a_policy_is_set_and_shown(atoll: Atoll, world: World) -> None:
    done = atoll(
        "burst", "policy", "set", "nlp", "--allow", "--per-hour", "20", "--per-month", "$3,000",
        "--region", "eu-1", "--provider", "ec2", "--most-price", "4", "--market", "spot",
        "--hour-of-delay", "2",
    )  # fmt: skip
    assert (done.code, done.out) == (0, SET)
    policy = world.burst.policies["nlp"]
    assert (policy.budget.per_hour, policy.budget.per_month) == (20_000_000, 3_000_000_000)
    assert (policy.most_price, policy.hour_of_delay) == (4_000_000, 2_000_000)
    head, row = atoll("burst", "policy", "show").out.splitlines()
    assert head.startswith("QUEUE  MAY RENT  PER HOUR")
    assert row.split() == [
        "nlp", "yes", "$20.00", "$3,000.00", "eu-1", "ec2", "spot", "$4.00", "$2.00",
    ]  # fmt: skip
    shown = yaml.safe_load(atoll("burst", "policy", "show", "nlp", "-o", "yaml").out)
    assert (shown["budget"], shown["markets"]) == ({"per_hour": 20.0, "per_month": 3e3}, ["spot"])
    assert atoll("burst", "policy", "show", "other").code == 102


def test_what_is_not_given_stays_and_bounds_can_be_taken_away(atoll: Atoll, world: World) -> None:
    before = pb.BurstPolicy(
        queue="nlp", allowed=True, budget=pb.Budget(per_hour=1, per_month=2), regions=["eu-1"],
        markets=[pb.MARKET_SPOT], most_price=7,
    )  # fmt: skip
    world.burst.policies["nlp"] = before
    done = atoll(
        "burst", "policy", "set", "nlp", "--per-hour", "none", "--region", "any", "--market",
        "any", "--most-price", "none", "--etag", "9",
    )  # fmt: skip
    assert done.code == 0
    asked = world.burst.asked[-1]
    assert (list(asked.update_mask.paths), asked.policy.etag) == (
        ["regions", "markets", "most_price", "budget.per_hour"],
        9,
    )
    policy = world.burst.policies["nlp"]
    assert (policy.allowed, policy.budget.per_month, policy.most_price) == (True, 2, 0)
    assert (policy.budget.HasField("per_hour"), list(policy.regions)) == (False, [])
    assert len(policy.markets) == 2


def test_the_kill_switch_is_thrown_only_if_it_is_meant(atoll: Atoll, world: World) -> None:
    unsure = atoll("burst", "policy", "set", "--all", "--kill")
    assert (unsure.code, world.burst.policies) == (2, {})
    assert "all that is rented will be drained" in unsure.err
    assert "add --yes" in unsure.err
    assert atoll("burst", "policy", "set", "--all", "--kill", "--yes").out.startswith(
        "all queues: switched off"
    )
    assert world.burst.policies[""].killed
    assert "switched off" in atoll("burst", "policy", "show", "--all").out
    assert atoll("burst", "policy", "set", "--all", "--no-kill", "-y").code == 0
    assert not world.burst.policies[""].killed


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["policy", "set", "--allow"], "whose policy"),
        (["policy", "set", "nlp", "--all", "--allow"], "whose policy"),
        (["policy", "set", "nlp"], "say what to change"),
        (["policy", "set", "nlp", "--kill"], "for all queues"),
        (["policy", "set", "nlp", "--per-hour", "-1"], "per-hour"),
        (["policy", "set", "nlp", "--per-hour", "much"], "write 12.50 or $12.50"),
        (["policy", "set", "nlp", "--most-price", "0.00000001"], "smallest step"),
        (["policy", "set", "nlp", "--region", "any", "--region", "eu-1"], "leave the others out"),
        (["request"], "--kind H100"),
        (["request", "x", "--kind", "y"], "--kind H100"),
        (["request", "x", "--keep", "long"], "--keep"),
        (["release"], "say which"),
        (["release", "1", "--all"], "say which"),
        (["release", "--all"], "add --yes"),
        (["explain", "1", "--instance", "2"], "either a job or --instance"),
        (["spend", "--step", "0"], "--step"),
        (["forecast", "--ahead", "x"], "--ahead"),
    ],
)
def test_what_makes_no_sense_is_refused(
    atoll: Atoll, world: World, words: list[str], told: str
) -> None:
    done = atoll("burst", *words)
    assert done.code == 2
    assert told in done.err
    assert (world.burst.policies, world.burst.instances) == ({}, {})


def test_capacity_is_rented_listed_and_given_back(atoll: Atoll, world: World, now: float) -> None:
    key = "ec2/eu-1a/g5.12xlarge/spot"
    done = atoll("burst", "request", key, "-n", "2", "--queue", "nlp", "--keep", "2h")
    assert done.code == 0
    assert world.burst.asked[-1].keep_s == 7200.0
    first = world.burst.instances[1]
    first.requested_at = now - 3700
    first.idle_since, first.spent, first.jobs[:] = first.requested_at + 3500, 2_158_333, [7, 9]
    first.state = pb.INSTANCE_STATE_READY
    head, _, row = atoll("burst", "instances").out.splitlines()
    assert head.split() == [
        "ID", "STATE", "HAS", "OFFER", "$/H", "SPENT", "AGE", "IDLE", "QUEUE", "FOR", "ENDS",
        "FOR",
    ]  # fmt: skip
    assert row.split() == [
        "1", "READY", "4", "x", "A10G", key, "$2.10", "$2.16", "1h", "3m", "nlp", "2", "jobs", "-",
    ]  # fmt: skip
    (_, shown) = json.loads(atoll("burst", "instances", "-o", "json").out)
    assert (shown["spent"], shown["offer"]["devices"]) == (2.158333, 4)
    assert shown["idle_since"].endswith("+00:00")
    assert shown["ended_at"] is None
    gone = atoll("burst", "release", "1", "2", "--now")
    assert gone.out.count("DRAINING") == 2
    assert gone.out.count("BY_HAND") == 2
    assert world.burst.asked[-1].now
    assert atoll("burst", "release", "--all", "--yes", "-o", "name").out == "1\n2\n"


def test_what_is_above_the_limits_is_not_rented(atoll: Atoll, world: World) -> None:
    world.failures["RequestCapacity"] = [
        FailedPrecondition(
            "the policy of queue nlp does not allow renting", code=ErrorCode.BURST_REFUSED
        )
    ]
    done = atoll("burst", "request", "--kind", "A10G", "--count", "8", "-q", "nlp")
    assert (done.code, done.out) == (4, "")
    assert "does not allow renting" in done.err


def test_the_status_tells_limits_spending_and_the_last_decision(
    atoll: Atoll, world: World, now: float
) -> None:
    world.burst.status = pb.GetBurstStatusResponse(
        leader="10.0.0.1:7078",
        policy=pb.BurstPolicy(allowed=True, budget=pb.Budget(per_hour=20_000_000)),
        instances={"READY": 2, "BOOTING": 1, "FAILED": 0},
        spend=pb.Spend(rate=6_300_000, hour=1_500_000, month=420_000_000),
        providers=[
            pb.ProviderStatus(name="ec2", reachable=True, seen_at=now - 5),
            pb.ProviderStatus(name="sky", message="no answer in 10 s", seen_at=now - 400),
        ],
        last=pb.Decision(at=now - 125, action="rent", why="job 7 would start too late"),
        next_at=now + 9.5,
    )
    lines = atoll("burst", "status").out.splitlines()
    assert lines[0] == "may rent; led by 10.0.0.1:7078, looks again in 9s"
    assert lines[1:] == [
        "  limits     $20.00 an hour",
        "  spending   $6.30 an hour now; $1.50 this hour, $420.00 this month",
        "  instances  1 BOOTING, 2 READY",
        "  providers  ec2 answered 5s ago",
        "             sky does not answer since 6m: no answer in 10 s",
        "  last       2m ago  rent: job 7 would start too late",
    ]
    assert atoll("burst", "status", "-o", "name").out == "BOOTING 1\nFAILED 0\nREADY 2\n"
    assert json.loads(atoll("burst", "status", "-o", "json").out)["last"]["action"] == "rent"


def test_nobody_leads_and_nothing_is_allowed(atoll: Atoll, world: World) -> None:
    first = atoll("burst", "status").out.splitlines()[0]
    assert first.startswith("may not rent, but for queues whose own policy allows it; nobody leads")
    world.burst.status.policy.killed = True
    assert atoll("burst", "status").out.startswith("switched off")


def test_decisions_are_told_with_their_terms(atoll: Atoll, world: World, now: float) -> None:
    at = now - 65
    world.burst.explanation = pb.ExplainBurstResponse(
        summary="job 7 was rented for",
        decisions=[
            pb.Decision(
                at=at, action="rent", kind="A10G", devices=4, offer="ec2/eu-1a/x/spot", job_id=7,
                why="it would start at 14:10 at the earliest, and has to by 13:00",
                terms={"P(local start late)": 0.93, "cost $": 8.4}, instances=[3, 4],
            ),
            pb.Decision(at=at, action="none", why="nothing waits"),
        ],
    )  # fmt: skip
    assert atoll("burst", "explain", "7").out.splitlines() == [
        "job 7 was rented for",
        "  1m ago  rent: 4 x A10G, ec2/eu-1a/x/spot, job 7, instances 3, 4",
        "      it would start at 14:10 at the earliest, and has to by 13:00",
        "      P(local start late) = 0.93, cost $ = 8.4",
        "  1m ago  none",
        "      nothing waits",
    ]
    assert world.burst.asked[-1].job_id == 7
    assert atoll("burst", "explain", "--instance", "3", "-o", "name").out == "rent\nnone\n"
    assert world.burst.asked[-1].instance_id == 3


def test_the_service_is_named_when_it_is_not_known(
    atoll: Atoll, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ATOLL_BURST")
    done = atoll("burst", "status")
    assert (done.code, "ATOLL_BURST" in done.err) == (5, True)


def test_completions_know_the_commands(atoll: Atoll) -> None:
    told = atoll("completion", "bash").out
    assert "hour-of-delay" in told
