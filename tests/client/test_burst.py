"""Rented capacity through both clients: what is asked, and how the answers are read."""

from dataclasses import replace
from decimal import Decimal

import pytest

from atoll.api.burst.v1 import burst_pb2 as pb
from atoll.client.burst_reading import dollars, micros
from atoll.client.burst_views import BudgetInfo, PolicyInfo
from atoll.client.config import ClientConfig
from atoll.client.sync import Client
from atoll.core.model.burst import InstanceState, Market
from atoll.core.model.errors import ErrorCode, Exhausted, NotFound, Unavailable
from tests.client.both import Both
from tests.client.world import World

SPOT = pb.Offer(
    key="ec2/eu-1a/g5.12xlarge/spot", provider="ec2", region="eu-1", zone="eu-1a",
    instance_type="g5.12xlarge", market=pb.MARKET_SPOT, cpu_milli=48_000, memory_bytes=192 << 30,
    kind="A10G", devices=4, price=2_100_001, lead_s=180, available=True,
)  # fmt: skip


@pytest.fixture(autouse=True)
def on_offer(world: World) -> None:
    world.burst.offers = [SPOT]


def test_offers_have_exact_prices(both: Both) -> None:
    (offer,) = both.do(both.client.burst.offers("A10G", queue="nlp"))
    assert (offer.market, offer.price_per_hour) == (Market.SPOT, Decimal("2.100001"))
    assert offer.price_per_device_hour == Decimal("0.52500025")
    assert both.do(both.client.burst.offers("H100")) == []


def test_a_policy_is_changed_by_the_fields_that_are_named(both: Both, world: World) -> None:
    given = PolicyInfo(
        "nlp", allowed=True, budget=BudgetInfo(per_hour=Decimal(20)), most_price=Decimal("4.5"),
        regions=("eu-1",), markets=(Market.SPOT,), hour_of_delay=Decimal("0.25"),
    )  # fmt: skip
    fields = ["allowed", "budget.per_hour", "most_price", "regions", "markets", "hour_of_delay"]
    first = both.do(both.client.burst.set_policy(given, fields))
    assert first == replace(given, etag=1)
    assert not world.burst.policies["nlp"].budget.HasField("per_month")
    changed = replace(first, allowed=False, regions=(), budget=BudgetInfo(), providers=("x",))
    paths = ["allowed", "regions", "budget.per_hour"]
    second = both.do(both.client.burst.set_policy(changed, paths))
    assert second == replace(given, allowed=False, regions=(), budget=BudgetInfo(), etag=2)
    assert both.do(both.client.burst.policy("nlp")) == second
    assert both.do(both.client.burst.policies()) == [second]
    with pytest.raises(NotFound):
        both.do(both.client.burst.policy("other"))


def test_a_request_whose_reply_is_lost_rents_once(both: Both, world: World) -> None:
    world.lost_replies["RequestCapacity"] = 2
    rented = both.do(both.client.burst.request(SPOT.key, count=2, queue="nlp", keep_s=60))
    assert [each.id for each in rented] == [1, 2]
    assert (world.calls["RequestCapacity"], len(world.burst.instances)) == (3, 2)
    assert len({each.request_id for each in world.burst.asked}) == 1
    assert (rented[0].state, rented[0].offer.key) == (InstanceState.REQUESTED, SPOT.key)
    again = both.do(both.client.burst.request(SPOT.key, request_id="mine"))
    assert both.do(both.client.burst.request(SPOT.key, request_id="mine")) == again


def test_no_change_with_an_etag_is_made_twice(both: Both, world: World) -> None:
    down = Unavailable("down", code=ErrorCode.UNAVAILABLE)
    world.failures["SetBurstPolicy"] = [down, down]
    with pytest.raises(Unavailable):
        both.do(both.client.burst.set_policy(PolicyInfo(etag=7), ["killed"]))
    assert world.calls["SetBurstPolicy"] == 1
    both.do(both.client.burst.set_policy(PolicyInfo(killed=True), ["killed"]))
    assert world.calls["SetBurstPolicy"] == 3


def test_instances_come_in_pages_and_are_released(both: Both, world: World) -> None:
    both.do(both.client.burst.request(SPOT.key, count=5))
    world.burst.instances[3].state = pb.INSTANCE_STATE_TERMINATED
    live = [each.id for each in both.each(both.client.burst.instances(page_size=2))]
    assert live == [5, 4, 2, 1]
    assert len(list(both.each(both.client.burst.instances(all=True)))) == 5
    (gone,) = both.do(both.client.burst.release([4], now=True))
    assert (gone.state, gone.cause) == (InstanceState.DRAINING, "BY_HAND")
    asked = world.burst.asked[-1]
    assert (list(asked.ids), asked.all, asked.now) == ([4], False, True)
    assert len(both.do(both.client.burst.release(all=True))) == 5


def test_a_refusal_is_what_the_service_says(both: Both, world: World) -> None:
    world.failures["RequestCapacity"] = [
        Exhausted("$20.00 an hour are all bound", code=ErrorCode.BUDGET_SHORT)
    ]
    with pytest.raises(Exhausted, match="all bound"):
        both.do(both.client.burst.request(SPOT.key))


def test_where_it_stands_is_read(both: Both, world: World) -> None:
    world.burst.status = pb.GetBurstStatusResponse(
        leader="a:1", instances={"READY": 2}, next_at=9.0,
        policy=pb.BurstPolicy(allowed=True, budget=pb.Budget(per_month=0)),
        spend=pb.Spend(hour=1_500_000, month=2_000_000, rate=3_000_001),
        providers=[pb.ProviderStatus(name="ec2", reachable=True, seen_at=5.0)],
    )  # fmt: skip
    found = both.do(both.client.burst.status())
    assert (found.last, found.instances, found.providers[0].name) == (None, {"READY": 2}, "ec2")
    assert found.policy.budget == BudgetInfo(None, Decimal(0))
    assert found.policy.most_price is None
    assert (found.spend.hour, found.spend.rate_per_hour) == (Decimal("1.5"), Decimal("3.000001"))


def test_forecasts_spending_and_reasons_are_read(both: Both, world: World) -> None:
    world.burst.series = [
        pb.Series(
            kind="A10G", from_at=1000, step_s=60, actual=[1, 2, 3], capacity=[4, 4],
            quantiles=[
                pb.Quantile(level=0.5, values=[2, 3]), pb.Quantile(level=0.05, values=[1, 1])
            ],
        )
    ]  # fmt: skip
    world.burst.spend = pb.GetSpendResponse(
        queues=[pb.Spend(queue="nlp", month=5)], from_at=3600, step_s=3600, spent=[0, 250_000]
    )
    world.burst.explanation = pb.ExplainBurstResponse(
        summary="it was cheaper", decisions=[pb.Decision(action="rent", terms={"b": 2, "a": 1})]
    )
    (series,) = both.do(both.client.burst.forecast(horizon_s=3600, past_s=180))
    assert [each.level for each in series.quantiles] == [0.05, 0.5]
    assert (series.now_at, series.capacity) == (1120.0, (4.0, 4.0))
    spend = both.do(both.client.burst.spend("nlp", step_s=3600))
    assert spend.spent == (Decimal(0), Decimal("0.25"))
    assert spend.queues[0].month == Decimal("0.000005")
    told = both.do(both.client.burst.explain(7, most=3))
    assert (told.summary, list(told.decisions[0].terms)) == ("it was cheaper", ["a", "b"])
    assert (world.burst.asked[-1].job_id, world.burst.asked[-1].most) == (7, 3)


def test_without_an_address_the_setting_is_named(config: ClientConfig) -> None:
    with (
        Client(config=replace(config, burst=())) as client,
        pytest.raises(Unavailable, match="ATOLL_BURST"),
    ):
        client.burst.status()


def test_no_micro_dollar_is_lost_on_the_way() -> None:
    for amount in (0, 1, 999_999, 12_500_000, 10**13 + 1):
        assert micros(dollars(amount)) == amount
