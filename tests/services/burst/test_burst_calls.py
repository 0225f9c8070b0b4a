"""The service as programs call it, over the real wire."""

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from atoll.api.burst.v1 import burst_pb2 as pb
from atoll.api.burst.v1 import burst_pb2_grpc
from atoll.core.model.errors import ErrorCode
from atoll.runtime.rpc.server import GrpcServer
from atoll.runtime.settings import ServiceSettings
from atoll.wire.errors import error_of_call
from tests.services.burst.worlds import DOLLAR, SMALL, Leader, World, ready

HOUR = 3600.0


class Called:
    """A world, its leader, and a stub that calls the service."""

    def __init__(self, world: World, leader: Leader, stub: Any) -> None:
        self.world = world
        self.leader = leader
        self.stub = stub


@pytest.fixture
async def called() -> AsyncIterator[Called]:
    """A server over a world in which all may rent for $5 an hour."""
    world = World()
    await world.allow(per_hour=5, hour_of_delay=10 * DOLLAR)
    leader = await world.lead()
    server = GrpcServer(
        ServiceSettings(drain_s=0), world.service.services(), clock=world.clock, ids=world.ids
    )
    await server.start()
    async with grpc.aio.insecure_channel(server.address) as channel:
        yield Called(world, leader, burst_pb2_grpc.BurstServiceStub(channel))
    await server.drain()


async def refusal(call: object) -> tuple[ErrorCode, str, list[str]]:
    """Code, message and fields of a refused call."""
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call  # type: ignore[misc]
    error = failed.value
    told = error_of_call(error.code().value[0], error.details() or "", error.trailing_metadata())
    assert told is not None
    return told.code, told.message, [each.field for each in told.violations]


async def test_an_instance_by_hand_is_shown_listed_explained_and_released(called: Called) -> None:
    stub, world = called.stub, called.world
    offers = await stub.ListOffers(pb.ListOffersRequest(kind="H100"))
    assert [each.instance_type for each in offers.offers] == ["big", "big", "small", "small"]
    ask = pb.RequestCapacityRequest(offer=SMALL, count=1, request_id="A", why="a course")
    made = await stub.RequestCapacity(ask)
    assert await stub.RequestCapacity(ask) == made
    (row,) = made.instances
    assert (row.id, row.cluster, row.offer.key) == (1, "burst-1", SMALL)
    assert "for anonymous: a course" in row.why
    await ready(world, called.leader)
    status = await stub.GetBurstStatus(pb.GetBurstStatusRequest())
    assert (status.leader, dict(status.instances)) == ("here:1", {"READY": 1})
    assert (status.spend.rate, status.spend.budget.per_hour) == (DOLLAR, 5 * DOLLAR)
    assert status.last.action == "rent"
    told = await stub.ExplainBurst(pb.ExplainBurstRequest(instance_id=1))
    assert told.summary.startswith("Instance 1: rented cloud/a/small/on_demand at $1.00/h by hand")
    gone = await stub.ReleaseCapacity(pb.ReleaseCapacityRequest(all=True, now=True))
    assert gone.instances[0].state == pb.INSTANCE_STATE_DRAINING
    await world.clock.advance(HOUR)
    await called.leader.live()
    await called.leader.live(30)
    assert (await stub.ListInstances(pb.ListInstancesRequest())).instances == []
    await stub.RequestCapacity(pb.RequestCapacityRequest(kind="H100", count=2))
    page = await stub.ListInstances(pb.ListInstancesRequest(all=True, page_size=1))
    rest = await stub.ListInstances(
        pb.ListInstancesRequest(all=True, page_size=1, page_token=page.next_page_token)
    )
    assert [each.instances[0].id for each in (page, rest)] == [2, 1]
    assert (rest.instances[0].cause, rest.next_page_token) == ("BY_HAND", "")


async def test_spend_comes_by_queue_and_by_hour(called: Called) -> None:
    world = called.world
    await called.stub.RequestCapacity(pb.RequestCapacityRequest(offer=SMALL, count=1, queue="nlp"))
    await called.leader.live()
    begun = world.clock.now()
    await world.clock.advance(2 * HOUR)
    assert await called.leader.upkeep.count_spend() == 2 * DOLLAR
    assert await called.leader.upkeep.count_spend() == 0
    told = await called.stub.GetSpend(pb.GetSpendRequest(from_at=begun, queue="nlp"))
    assert sum(told.spent) == 2 * DOLLAR
    assert told.step_s == HOUR
    assert told.from_at == begun // HOUR * HOUR
    assert [(each.queue, each.rate) for each in told.queues] == [("nlp", DOLLAR)]
    code, _, fields = await refusal(called.stub.GetSpend(pb.GetSpendRequest(step_s=60)))
    assert (code, fields) == (ErrorCode.INVALID_FIELD, ["step_s"])


async def test_policies_are_changed_by_mask(called: Called) -> None:
    stub = called.stub
    policy = pb.BurstPolicy(queue="nlp", allowed=True, regions=["eu-1"])
    made = await stub.SetBurstPolicy(pb.SetBurstPolicyRequest(policy=policy))
    assert (made.policy.etag, list(made.policy.markets)) == (1, [1, 2])
    bound = pb.BurstPolicy(queue="nlp", budget=pb.Budget(per_month=9), etag=1)
    mask = FieldMask(paths=["budget.per_month"])
    made = await stub.SetBurstPolicy(pb.SetBurstPolicyRequest(policy=bound, update_mask=mask))
    assert made.policy.regions == ["eu-1"]
    assert (made.policy.budget.HasField("per_hour"), made.policy.budget.per_month) == (False, 9)
    stale = stub.SetBurstPolicy(pb.SetBurstPolicyRequest(policy=bound, update_mask=mask))
    assert (await refusal(stale))[0] is ErrorCode.ETAG_MISMATCH
    read = await stub.GetBurstPolicy(pb.GetBurstPolicyRequest(queue="nlp"))
    assert read.policy == made.policy
    all_of_them = await stub.ListBurstPolicies(pb.ListBurstPoliciesRequest())
    assert [each.queue for each in all_of_them.policies] == ["", "nlp"]
    assert (await stub.ListOffers(pb.ListOffersRequest(queue="nlp"))).offers == []


async def test_wrong_input_names_its_field(called: Called) -> None:
    stub = called.stub
    for call, field in (
        (stub.RequestCapacity(pb.RequestCapacityRequest(offer=SMALL)), "count"),
        (stub.RequestCapacity(pb.RequestCapacityRequest(count=1)), "offer"),
        (stub.RequestCapacity(pb.RequestCapacityRequest(count=1, kind="V1")), "kind"),
        (stub.SetBurstPolicy(pb.SetBurstPolicyRequest()), "policy"),
        (stub.ListInstances(pb.ListInstancesRequest(page_token="x")), "page_token"),
        (stub.ExplainBurst(pb.ExplainBurstRequest(job_id=1, instance_id=1)), "instance_id"),
        (stub.GetForecast(pb.GetForecastRequest(past_s=-1)), "past_s"),
        (stub.ReleaseCapacity(pb.ReleaseCapacityRequest()), "ids"),
    ):
        assert (await refusal(call))[2] == [field]
    missing = stub.ExplainBurst(pb.ExplainBurstRequest(instance_id=9))
    assert (await refusal(missing))[0] is ErrorCode.INSTANCE_NOT_FOUND
    dear = stub.RequestCapacity(pb.RequestCapacityRequest(offer=SMALL, count=6))
    code, message, _ = await refusal(dear)
    assert (code, "$5.00 an hour" in message) == (ErrorCode.BUDGET_SHORT, True)


async def test_a_job_that_waits_is_told_what_it_could_have(called: Called) -> None:
    await called.world.want(7)
    told = await called.stub.ExplainBurst(pb.ExplainBurstRequest(job_id=7))
    assert "Without renting it starts in 10 h" in told.summary
    assert "on demand in 1 min at $1.00/h, allowed by queue policy" in told.summary
    told = await called.stub.ExplainBurst(pb.ExplainBurstRequest(job_id=8))
    assert "does not wait for rented capacity" in told.summary
    await called.leader.decide()
    told = await called.stub.ExplainBurst(pb.ExplainBurstRequest())
    assert [each.job_id for each in told.decisions] == [7]
    assert told.decisions[0].terms
