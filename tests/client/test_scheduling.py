"""Dry runs, shares, priorities and holders through both clients."""

from atoll.api.common.v1 import common_pb2
from atoll.api.placement.v1 import placement_pb2
from atoll.core.model.lifecycle import JobState
from tests.client.both import Both
from tests.client.world import World

SPEC = {"name": "hello", "run": "echo hello"}


def test_a_plan_submits_nothing(both: Both, world: World) -> None:
    world.plan = placement_pb2.PlanJobResponse(
        summary="fits", fits_now=True, cluster="here", eta=placement_pb2.Eta(p50_at=5.0)
    )
    found = both.do(both.client.plan(SPEC))
    assert (found.summary, found.fits_now, found.cluster, found.victims) == (
        "fits", True, "here", (),
    )  # fmt: skip
    assert found.eta is not None
    assert found.eta.p50_at == 5.0
    assert [spec.name for spec in world.planned] == ["hello"]
    assert world.jobs == {}


def test_shares_priorities_and_waits_are_read(both: Both, world: World) -> None:
    kind = placement_pb2.KindShare(kind="H100", held=3)
    world.shares = [placement_pb2.QueueShare(queue="a", weight=2, kinds=[kind])]
    (share,) = both.do(both.client.shares())
    assert (share.queue, share.weight, share.kinds[0].held) == ("a", 2.0, 3)
    factor = placement_pb2.PriorityFactor(name="age", value=2.0, unit="s")
    world.priorities[1] = placement_pb2.GetPriorityResponse(
        state=common_pb2.JOB_STATE_QUEUED, order="fair_share", factors=[factor]
    )
    found = both.do(both.client.priority(1))
    assert (found.order, found.factors[0].name, found.state) == (
        "fair_share", "age", JobState.QUEUED,
    )  # fmt: skip
    world.waits = [placement_pb2.Wait(job_id=4, code="NO_ROOM", message="m")]
    assert both.do(both.client.waits([4, 5]))[4].code == "NO_ROOM"


def test_a_job_knows_when_it_starts(both: Both, world: World) -> None:
    world.add(common_pb2.JobSpec(name="x"))
    job = both.do(both.client.get(1))
    assert both.do(job.eta()) is None
    world.waits = [placement_pb2.Wait(job_id=1, eta=placement_pb2.Eta(p50_at=5.0, cluster="here"))]
    eta = both.do(job.eta())
    assert eta is not None
    assert (eta.p50_at, eta.cluster, eta.promised) == (5.0, "here", False)


def test_an_explanation_has_holders_and_holds(both: Both, world: World) -> None:
    answer = placement_pb2.ExplainJobResponse(state=common_pb2.JOB_STATE_QUEUED)
    answer.holders.add(attempt="7.1", amount=100, unit="blocks")
    answer.hold.cluster = "here"
    answer.hold.victims.append("7.1")
    world.explanations[1] = answer
    found = both.do(both.client.explain(1))
    assert (found.holders[0].attempt, found.eta) == ("7.1", None)
    assert found.hold is not None
    assert found.hold.victims == ("7.1",)
