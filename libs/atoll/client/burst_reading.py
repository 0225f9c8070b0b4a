"""From the messages of the burst service to the values that callers see, and back."""

from decimal import Decimal
from typing import Final

from atoll.api.burst.v1 import burst_pb2 as pb
from atoll.client.burst_views import (
    BudgetInfo,
    BurstDecisionInfo,
    BurstExplanation,
    BurstStatus,
    ForecastInfo,
    InstanceInfo,
    OfferInfo,
    PolicyInfo,
    ProviderInfo,
    QuantileInfo,
    SpendHistory,
    SpendInfo,
)
from atoll.client.reading import read
from atoll.core.model.burst import MICROS, InstanceState, Market
from atoll.wire.enums import inverse, known, to_numbers

_MARKETS: Final = to_numbers(Market, pb.Market, prefix="MARKET_")
_MARKETS_BACK: Final = inverse(_MARKETS)
_STATES_BACK: Final = inverse(to_numbers(InstanceState, pb.InstanceState, prefix="INSTANCE_STATE_"))


def dollars(micros: int) -> Decimal:
    """Micro-dollars as dollars, exactly."""
    return Decimal(micros).scaleb(-6)


def micros(amount: Decimal) -> int:
    """Dollars as micro-dollars; what is below one is cut off."""
    return int(amount * MICROS)


def status(proto: pb.GetBurstStatusResponse) -> BurstStatus:
    """Where renting stands."""
    return read(
        BurstStatus,
        proto,
        policy=policy(proto.policy),
        instances=dict(proto.instances),
        spend=spend(proto.spend),
        last=decision(proto.last) if proto.HasField("last") else None,
        providers=tuple(read(ProviderInfo, each) for each in proto.providers),
    )


def forecast(proto: pb.Series) -> ForecastInfo:
    """One series."""
    return read(
        ForecastInfo,
        proto,
        actual=tuple(proto.actual),
        quantiles=tuple(
            QuantileInfo(each.level, tuple(each.values))
            for each in sorted(proto.quantiles, key=lambda each: each.level)
        ),
        capacity=tuple(proto.capacity),
    )


def offer(proto: pb.Offer) -> OfferInfo:
    """What can be rented."""
    return read(
        OfferInfo,
        proto,
        market=known(_MARKETS_BACK, proto.market, what="market"),
        price_per_hour=dollars(proto.price),
    )


def instance(proto: pb.Instance) -> InstanceInfo:
    """What is rented."""
    return read(
        InstanceInfo,
        proto,
        offer=offer(proto.offer),
        state=known(_STATES_BACK, proto.state, what="state of an instance"),
        jobs=tuple(proto.jobs),
        spent=dollars(proto.spent),
    )


def policy(proto: pb.BurstPolicy) -> PolicyInfo:
    """What may be rented."""
    return read(
        PolicyInfo,
        proto,
        budget=_budget(proto.budget),
        regions=tuple(proto.regions),
        providers=tuple(proto.providers),
        most_price=dollars(proto.most_price) if proto.most_price else None,
        markets=tuple(known(_MARKETS_BACK, each, what="market") for each in proto.markets),
        hour_of_delay=dollars(proto.hour_of_delay),
    )


def policy_to_proto(given: PolicyInfo) -> pb.BurstPolicy:
    """What may be rented, to be sent."""
    return pb.BurstPolicy(
        queue=given.queue,
        allowed=given.allowed,
        budget=pb.Budget(
            per_hour=_given(given.budget.per_hour), per_month=_given(given.budget.per_month)
        ),
        regions=given.regions,
        providers=given.providers,
        most_price=micros(given.most_price or Decimal(0)),
        markets=[_MARKETS[each] for each in given.markets],
        hour_of_delay=micros(given.hour_of_delay),
        killed=given.killed,
        etag=given.etag,
    )


def spend(proto: pb.Spend) -> SpendInfo:
    """Spending now."""
    return SpendInfo(
        proto.queue,
        hour=dollars(proto.hour),
        month=dollars(proto.month),
        rate_per_hour=dollars(proto.rate),
        budget=_budget(proto.budget),
    )


def history(proto: pb.GetSpendResponse) -> SpendHistory:
    """Spending over time."""
    return SpendHistory(
        spend(proto.spend),
        tuple(spend(each) for each in proto.queues),
        proto.from_at,
        proto.step_s,
        tuple(dollars(each) for each in proto.spent),
    )


def explanation(proto: pb.ExplainBurstResponse) -> BurstExplanation:
    """Why."""
    return BurstExplanation(proto.summary, tuple(decision(each) for each in proto.decisions))


def decision(proto: pb.Decision) -> BurstDecisionInfo:
    """One decision."""
    return read(
        BurstDecisionInfo,
        proto,
        terms=dict(sorted(proto.terms.items())),
        instances=tuple(proto.instances),
    )


def _budget(proto: pb.Budget) -> BudgetInfo:
    return BudgetInfo(
        dollars(proto.per_hour) if proto.HasField("per_hour") else None,
        dollars(proto.per_month) if proto.HasField("per_month") else None,
    )


def _given(amount: Decimal | None) -> int | None:
    return None if amount is None else micros(amount)
