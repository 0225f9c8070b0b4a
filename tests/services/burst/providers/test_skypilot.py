"""SkyPilot through a stand-in for its SDK: names, launches under way, prices at most."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from atoll.adapters.memory.clock import ManualClock
from atoll.burst.providers.registry import BadProvider, Site, make_provider
from atoll.core.model.burst import Market, Offer
from atoll.ports.provider import Phase, Provider, ProviderUnavailable
from tests.services.burst.providers.orders import DEPLOYMENT, order
from tests.services.burst.providers.sky_ground import SkyGround


@pytest.fixture
async def ground(tmp_path: Path) -> AsyncIterator[SkyGround]:
    """One API server with nothing in it."""
    found = SkyGround()
    await found.begin(tmp_path)
    yield found
    await found.end()


async def spot(broker: Provider) -> Offer:
    return next(o for o in await broker.offers() if o.market is Market.SPOT)


async def test_a_launch_names_place_type_and_the_most_that_is_paid(ground: SkyGround) -> None:
    broker = ground.broker()
    offer = await spot(broker)
    assert (offer.zone, offer.region, offer.price) == ("aws:us-east-1", "us-east-1", 350_000)
    seen = await broker.create(order("t1", offer))
    (task,) = ground.sky.tasks
    assert task.name == seen.provider_id
    assert (task.resources.infra, task.resources.use_spot) == ("aws/us-east-1", True)
    assert task.resources.max_hourly_cost == 0.35
    assert task.run.startswith("sudo -n bash -c ")
    assert "burst-t1" in task.run
    assert "ab" * 32 in task.run
    assert (seen.zone, seen.phase) == ("aws:us-east-1", Phase.RUNNING)
    await broker.close()


async def test_a_launch_under_way_is_not_begun_again_and_can_be_ended(ground: SkyGround) -> None:
    ground.sky.slow = True
    first = ground.broker(settle_s=0.0)
    made = await first.create(order("t1", await spot(first)))
    assert made.phase is Phase.PENDING
    second = ground.broker(settle_s=0.0)
    again = await second.create(order("t1", await spot(second)))
    assert again == made
    assert len(ground.sky.tasks) == 1
    assert [seen.token for seen in await second.list_tagged()] == ["t1"]
    await second.terminate(made.provider_id)
    assert not await second.list_tagged()
    await first.close()
    await second.close()


async def test_only_this_deployments_are_seen(ground: SkyGround) -> None:
    ours, others = ground.broker(), ground.broker(deployment=f"{DEPLOYMENT}-2")
    made = await ours.create(order("t1", await spot(ours)))
    assert not await others.list_tagged()
    assert not await others.describe(["t1"])
    assert [seen.provider_id for seen in await ours.list_tagged()] == [made.provider_id]
    await ours.close()
    await others.close()


async def test_what_nobody_expected_is_no_refusal(ground: SkyGround) -> None:
    broker = ground.broker()
    offer = await spot(broker)
    ground.sky.fails = RuntimeError("a defect")
    with pytest.raises(ProviderUnavailable, match="a defect"):
        await broker.create(order("t1", offer))
    await broker.close()


def test_without_the_extra_it_is_said_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sky", None)
    site = Site(ManualClock(), DEPLOYMENT, tmp_path)
    with pytest.raises(BadProvider, match=r"atoll\[skypilot\]"):
        make_provider("skypilot", SkyGround().given, site)
    bad = {"g": {"infras": ["aws"], "cpu": 1, "memory_gib": 1}}
    with pytest.raises(BadProvider, match="names no region"):
        make_provider("skypilot", {"types": bad}, site)
