"""Offers, instances, policies and decisions come back as they went."""

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
    decision_from_proto,
    decision_to_proto,
    instance_from_proto,
    instance_to_proto,
    offer_from_proto,
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
    offer = replace(OFFER, market=market, available=False)
    proto = offer_to_proto(offer)
    assert (proto.key, offer_from_proto(proto)) == (offer.key, offer)


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
    assert instance_from_proto(proto) == replace(row, token="")
    assert instance_from_proto(instance_to_proto(replace(row, queue=None))).queue is None
    proto.cause = "OF_A_LATER_VERSION"
    assert instance_from_proto(proto).cause is EndCause.NONE


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
    assert decision_from_proto(decision_to_proto(decision)) == decision
