"""What the broker tells, and policies that come back as they went."""

from dataclasses import replace

import pytest

from atoll.api.burst.v1 import burst_pb2 as pb
from atoll.core.model.burst import (
    Budget,
    BurstPolicy,
    EndCause,
    Instance,
    InstanceId,
    InstanceState,
    Market,
    Offer,
)
from atoll.core.model.burst_wants import BurstDecision
from atoll.core.model.ids import ClusterName, JobId, QueueName
from atoll.wire.burst import (
    decision_to_proto,
    instance_to_proto,
    offer_to_proto,
    policy_from_proto,
    policy_to_proto,
)
from atoll.wire.enums import WireError

OFFER = Offer(
    "ec2", "eu-1a", "eu-1", "p5", Market.SPOT, 96_000, 1 << 40, "H100", 8, 3_100_000, 90.0
)
NLP = QueueName("nlp")


@pytest.mark.parametrize("market", Market)
def test_offers(market: Market) -> None:
    offer = replace(OFFER, market=market, available=False, nodes=2)
    assert offer_to_proto(offer) == pb.Offer(
        key=offer.key,
        provider="ec2",
        region="eu-1",
        zone="eu-1a",
        instance_type="p5",
        market=pb.Market.Value(f"MARKET_{market.name}"),
        cpu_milli=96_000,
        memory_bytes=1 << 40,
        kind="H100",
        devices=8,
        price=3_100_000,
        lead_s=90.0,
        nodes=2,
    )


@pytest.mark.parametrize("state", InstanceState)
def test_instances_without_their_token(state: InstanceState) -> None:
    row = Instance(
        InstanceId(7),
        "secret",
        OFFER,
        state,
        requested_at=1.0,
        queue=NLP,
        jobs=(JobId(3),),
        why="for job 3",
        provider_id="i-1",
        cluster=ClusterName("burst-7"),
        created_at=2.0,
        ready_at=3.0,
        ended_at=4.0,
        cause=EndCause.IDLE,
        spent=5,
    )
    proto = instance_to_proto(row)
    assert b"secret" not in proto.SerializeToString()
    assert proto == pb.Instance(
        id=7,
        offer=offer_to_proto(OFFER),
        state=pb.InstanceState.Value(f"INSTANCE_STATE_{state.name}"),
        provider_id="i-1",
        cluster="burst-7",
        queue="nlp",
        jobs=[3],
        why="for job 3",
        requested_at=1.0,
        created_at=2.0,
        ready_at=3.0,
        ended_at=4.0,
        cause="IDLE",
        spent=5,
    )
    plain = instance_to_proto(replace(row, queue=None, cause=EndCause.NONE))
    assert (plain.queue, plain.cause) == ("", "")


@pytest.mark.parametrize("budget", [Budget(), Budget(0), Budget(None, 0), Budget(1, 2)])
def test_policies(budget: Budget) -> None:
    policy = BurstPolicy(NLP, True, budget, ("eu-1",), ("ec2",), 9, (Market.SPOT,), 5, generation=3)
    assert policy_from_proto(policy_to_proto(policy)) == policy


def test_no_market_is_all_markets_and_an_unknown_one_is_refused() -> None:
    assert policy_from_proto(pb.BurstPolicy()).markets == tuple(Market)
    strange = pb.BurstPolicy()
    strange.ParseFromString(pb.BurstPolicy.FromString(b"\x3a\x01\x09").SerializeToString())
    with pytest.raises(WireError, match="market"):
        policy_from_proto(strange)


def test_decisions() -> None:
    decision = BurstDecision(
        1.0,
        "rent",
        "why",
        kind="H100",
        devices=8,
        offer=OFFER.key,
        job=JobId(3),
        terms=(("P(local start late)", 0.9), ("price", 3.1)),
        instances=(InstanceId(7),),
    )
    assert decision_to_proto(decision) == pb.Decision(
        at=1.0,
        action="rent",
        why="why",
        kind="H100",
        devices=8,
        offer=OFFER.key,
        job_id=3,
        terms={"P(local start late)": 0.9, "price": 3.1},
        instances=[7],
    )
