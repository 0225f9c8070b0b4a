"""Offers, instances, policies and decisions of renting, as the API shows them."""

from typing import Final

from atoll.api.burst.v1 import burst_pb2 as pb
from atoll.core.model.burst import (
    Budget,
    BurstPolicy,
    EndCause,
    Instance,
    InstanceState,
    Market,
    Offer,
)
from atoll.core.model.burst_wants import BurstDecision
from atoll.core.model.ids import QueueName
from atoll.wire.enums import inverse, known, to_numbers

_MARKETS: Final = to_numbers(Market, pb.Market, prefix="MARKET_")
_MARKETS_BACK: Final = inverse(_MARKETS)
_STATES: Final = to_numbers(InstanceState, pb.InstanceState, prefix="INSTANCE_STATE_")
_STATES_BACK: Final = inverse(_STATES)


def queue_from_proto(name: str) -> QueueName | None:
    """A queue, or all together."""
    return QueueName(name) if name else None


def offer_to_proto(offer: Offer) -> pb.Offer:
    """One kind of instance in one zone."""
    return pb.Offer(
        key=offer.key,
        provider=offer.provider,
        region=offer.region,
        zone=offer.zone,
        instance_type=offer.instance_type,
        market=_MARKETS[offer.market],
        cpu_milli=offer.cpu_milli,
        memory_bytes=offer.memory_bytes,
        kind=offer.kind,
        devices=offer.devices,
        nodes=offer.nodes,
        price=offer.price,
        lead_s=offer.lead_s,
        available=offer.available,
    )


def market_from_proto(number: pb.Market.ValueType) -> Market:
    """How an instance is paid for; raises WireError for one that this version does not know."""
    return known(_MARKETS_BACK, number, what="market")


def instance_to_proto(row: Instance) -> pb.Instance:
    """A rented machine. Its token stays here: who has it could ask for the machine."""
    return pb.Instance(
        id=row.id,
        offer=offer_to_proto(row.offer),
        state=_STATES[row.state],
        provider_id=row.provider_id,
        cluster=row.cluster,
        queue=row.queue or "",
        jobs=row.jobs,
        why=row.why,
        requested_at=row.requested_at,
        created_at=row.created_at,
        ready_at=row.ready_at,
        idle_since=row.idle_since,
        ended_at=row.ended_at,
        cause="" if row.cause is EndCause.NONE else row.cause.value,
        message=row.message,
        spent=row.spent,
    )


def budget_to_proto(budget: Budget) -> pb.Budget:
    """A bound; what is not bound is not set."""
    return pb.Budget(per_hour=budget.per_hour, per_month=budget.per_month)


def budget_from_proto(proto: pb.Budget) -> Budget:
    """The same back."""
    return Budget(
        proto.per_hour if proto.HasField("per_hour") else None,
        proto.per_month if proto.HasField("per_month") else None,
    )


def policy_to_proto(policy: BurstPolicy) -> pb.BurstPolicy:
    """What a queue, or all together, may rent."""
    return pb.BurstPolicy(
        queue=policy.queue or "",
        allowed=policy.allowed,
        budget=budget_to_proto(policy.budget),
        regions=policy.regions,
        providers=policy.providers,
        most_price=policy.most_price,
        markets=[_MARKETS[each] for each in policy.markets],
        hour_of_delay=policy.hour_of_delay,
        killed=policy.killed,
        etag=policy.generation,
    )


def policy_from_proto(proto: pb.BurstPolicy) -> BurstPolicy:
    """The same back; no market named means all of them. Raises WireError."""
    markets = tuple(market_from_proto(each) for each in proto.markets if each)
    return BurstPolicy(
        queue_from_proto(proto.queue),
        allowed=proto.allowed,
        budget=budget_from_proto(proto.budget),
        regions=tuple(proto.regions),
        providers=tuple(proto.providers),
        most_price=proto.most_price,
        markets=markets or tuple(Market),
        hour_of_delay=proto.hour_of_delay,
        killed=proto.killed,
        generation=proto.etag,
    )


def decision_to_proto(decision: BurstDecision) -> pb.Decision:
    """One decision of the broker."""
    return pb.Decision(
        at=decision.at,
        action=decision.action,
        kind=decision.kind,
        devices=decision.devices,
        offer=decision.offer,
        job_id=decision.job or 0,
        why=decision.why,
        terms=dict(decision.terms),
        instances=decision.instances,
    )
