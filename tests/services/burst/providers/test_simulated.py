"""The cloud that is only thought of: boots, traces, notices, failures, and a state in a file."""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from atoll.adapters.memory.clock import ManualClock
from atoll.burst.providers.ec2_offers import Ec2Type
from atoll.burst.providers.registry import BadProvider, Site, UnknownProvider, make_provider
from atoll.burst.providers.simcloud import State
from atoll.burst.providers.simulated import SimulatedProvider, SimulatedSettings
from atoll.burst.providers.sky_offers import SkyType
from atoll.burst.providers.steps import steps
from atoll.core.model.burst import Market, Offer
from atoll.ports.provider import NoCapacity, Phase, ProviderRefused, ProviderUnavailable
from tests.services.burst.providers.orders import DEPLOYMENT, order


def provider(clock: ManualClock, state: State | None = None, **given: Any) -> SimulatedProvider:
    settings = SimulatedSettings.model_validate(given)
    return SimulatedProvider("simulated", settings, clock, state=state)


async def offer_of(cloud: SimulatedProvider, market: Market, zone: str = "sim-a") -> Offer:
    offers = await cloud.offers()
    return next(o for o in offers if o.market is market and o.zone == zone)


async def phase(cloud: SimulatedProvider, token: str) -> Phase:
    (seen,) = await cloud.describe([token])
    return seen.phase


async def test_a_machine_boots_runs_ends_and_is_gone() -> None:
    clock = ManualClock()
    cloud = provider(clock, boot_s=60, end_s=5)
    seen = await cloud.create(order("t", await offer_of(cloud, Market.ON_DEMAND)))
    assert (seen.phase, seen.created_at) == (Phase.PENDING, clock.now())
    await clock.advance(60)
    assert await phase(cloud, "t") is Phase.RUNNING
    await cloud.terminate(seen.provider_id)
    assert await phase(cloud, "t") is Phase.ENDING
    await clock.advance(5)
    assert await phase(cloud, "t") is Phase.GONE
    assert not await cloud.list_tagged()


async def test_an_instance_may_be_several_machines() -> None:
    clock = ManualClock()
    types = {"pair": {"kind": "H100", "devices": 8, "nodes": 2}}
    cloud = provider(clock, types=types, zones={"sim-a": {"on_demand": 1}}, boot_s=60)
    offer = await offer_of(cloud, Market.ON_DEMAND)
    assert (offer.nodes, offer.units, offer.most) == (2, 16, 1)
    await cloud.create(order("one", offer))
    with pytest.raises(NoCapacity):
        await cloud.create(order("two", offer))


async def test_prices_follow_their_steps() -> None:
    clock = ManualClock()
    types = {"big": {"on_demand": 3.06, "spot": 1.0, "kind": "V100", "devices": 1}}
    zones = {"a": {"region": "east", "spot_price": [[0, 0.9731], [600, 2]]}}
    cloud = provider(clock, types=types, zones=zones)
    spot = await offer_of(cloud, Market.SPOT, "a")
    assert (spot.price, spot.region, spot.kind, spot.devices) == (973_100, "east", "V100", 1)
    assert (await offer_of(cloud, Market.ON_DEMAND, "a")).price == 3_060_000
    await clock.advance(600)
    assert (await offer_of(cloud, Market.SPOT, "a")).price == 2_000_000


async def test_the_youngest_spot_machines_are_taken_back_after_a_notice() -> None:
    clock = ManualClock()
    zones = {"a": {"spot": [[0, 2], [1000, 1], [2000, 0], [3000, 5]]}}
    cloud = provider(clock, zones=zones, notice_s=120, end_s=0)
    spot = await offer_of(cloud, Market.SPOT, "a")
    begun = clock.now()
    await cloud.create(order("old", spot))
    await cloud.create(order("young", spot))
    assert spot.most == 2
    with pytest.raises(NoCapacity):
        await cloud.create(order("third", spot))
    await cloud.create(order("paid", await offer_of(cloud, Market.ON_DEMAND, "a")))
    await clock.advance(2500)
    seen = {s.token: s for s in await cloud.describe(["old", "young", "paid"])}
    assert seen["young"].interrupted_at == begun + 1120
    assert seen["old"].interrupted_at == begun + 2120
    assert seen["paid"].interrupted_at == 0
    assert [s.phase for s in seen.values()] == [Phase.GONE, Phase.GONE, Phase.RUNNING]
    await clock.advance(1000)
    assert (await offer_of(cloud, Market.SPOT, "a")).available


async def test_what_never_boots_stays_pending_until_it_is_ended() -> None:
    clock = ManualClock()
    cloud = provider(clock, zones={"a": {"boots": False}, "b": {}}, never_up=0.0)
    await cloud.create(order("dead", await offer_of(cloud, Market.SPOT, "a")))
    await cloud.create(order("live", await offer_of(cloud, Market.SPOT, "b")))
    await clock.advance(100_000)
    assert await phase(cloud, "dead") is Phase.PENDING
    assert await phase(cloud, "live") is Phase.RUNNING


async def test_the_same_seed_gives_the_same_failures() -> None:
    async def fates(seed: int) -> list[Phase]:
        clock = ManualClock()
        cloud = provider(clock, never_up=0.5, seed=seed)
        spot = await offer_of(cloud, Market.SPOT)
        tokens = [f"t{n}" for n in range(20)]
        for token in tokens:
            await cloud.create(order(token, spot))
        await clock.advance(1000)
        return [await phase(cloud, token) for token in tokens]

    assert await fates(1) == await fates(1)
    assert await fates(1) != await fates(2)
    assert set(await fates(1)) == {Phase.PENDING, Phase.RUNNING}


async def test_refusals_throttling_and_lost_answers() -> None:
    clock = ManualClock()
    cloud = provider(clock, quota=1)
    spot = await offer_of(cloud, Market.SPOT)
    cloud.mischief.errors.append(ProviderUnavailable("slow down"))
    with pytest.raises(ProviderUnavailable):
        await cloud.create(order("a", spot))
    assert not await cloud.describe(["a"])
    cloud.mischief.lost_answers = 1
    with pytest.raises(ProviderUnavailable):
        await cloud.create(order("a", spot))
    assert len(await cloud.list_tagged()) == 1
    assert (await cloud.create(order("a", spot))).token == "a"
    with pytest.raises(ProviderRefused, match="quota"):
        await cloud.create(order("b", spot))


async def test_throttling_by_share_and_answers_lost_by_share() -> None:
    clock = ManualClock()
    with pytest.raises(ProviderUnavailable):
        await provider(clock, throttled=1.0).offers()
    losing = provider(clock, lost_answers=1.0)
    spot = await offer_of(losing, Market.SPOT)
    with pytest.raises(ProviderUnavailable):
        await losing.create(order("a", spot))
    assert (await losing.create(order("a", spot))).token == "a"


async def test_the_cloud_outlives_its_broker_as_an_object_and_as_a_file(tmp_path: Path) -> None:
    clock, state = ManualClock(), State()
    first = provider(clock, state)
    made = await first.create(order("t", await offer_of(first, Market.SPOT)))
    assert await provider(clock, state).list_tagged() == (made,)
    kept: dict[str, Any] = {"file": str(tmp_path / "deep" / "cloud.json")}
    one, other = provider(clock, **kept), provider(clock, **kept)
    made = await one.create(order("t", await offer_of(one, Market.SPOT)))
    assert await other.create(order("t", await offer_of(other, Market.SPOT))) == made
    await other.terminate(made.provider_id)
    await clock.advance(100)
    assert await phase(one, "t") is Phase.GONE


async def test_a_clock_that_goes_back_undoes_nothing() -> None:
    clock = ManualClock()
    cloud = provider(clock, zones={"a": {"spot": [[0, 1], [100, 0]]}})
    await cloud.create(order("t", await offer_of(cloud, Market.SPOT, "a")))
    await clock.advance(150)
    (before,) = await cloud.describe(["t"])
    clock.jump(-140)
    (after,) = await cloud.describe(["t"])
    assert before.interrupted_at == after.interrupted_at > 0


def test_steps_read_numbers_lists_windows_and_events(tmp_path: Path) -> None:
    assert steps(3).at(1e9) == 3
    assert [steps([[0, 1], [10, 2]]).at(t) for t in (-5, 9.9, 10)] == [1, 1, 2]
    windows = tmp_path / "w.jsonl.gz"
    rows: list[Mapping[str, object]] = [
        {"zone": "x", "window": 0, "gap_s": 600, "unavailable": "11"},
        {"zone": "y", "window": 2, "gap_s": 600, "unavailable": "010"},
    ]
    windows.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    read = steps(str(windows), zone="y", window=2)
    assert [read.at(t) > 0 for t in (0, 600, 1200)] == [True, False, True]
    with pytest.raises(ValueError, match="no window"):
        steps(str(windows), zone="z")
    events = tmp_path / "e.csv"
    events.write_text("0,add,n1\n0,add,n2\n5000,remove,n1\n")
    assert [steps(str(events)).at(t) for t in (0, 5)] == [2, 1]
    prices = tmp_path / "p.csv"
    prices.write_text("0,0.5\n60,0.75\n")
    assert steps(str(prices)).at(61) == 0.75


@pytest.mark.parametrize("given", [True, None, [], "no-such-file.csv"])
def test_what_are_no_steps_is_refused(given: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        steps(given)


def test_the_registry_says_what_is_wrong(tmp_path: Path) -> None:
    site = Site(ManualClock(), DEPLOYMENT, tmp_path)
    assert make_provider("here", {"type": "simulated", "boot_s": 1}, site).name == "here"
    with pytest.raises(UnknownProvider, match=r"there are: .*simulated"):
        make_provider("nowhere", {}, site)
    with pytest.raises(BadProvider, match=r"simulated.boot_s"):
        make_provider("simulated", {"boot_s": -1}, site)
    with pytest.raises(BadProvider, match=r"simulated.zones.*neither a number"):
        make_provider("simulated", {"zones": {"a": {"spot": {}}}}, site)
    with pytest.raises(BadProvider, match=r"simulated.types.t.nodes"):
        make_provider("simulated", {"types": {"t": {"nodes": 0}}}, site)


@pytest.mark.parametrize("kind", [Ec2Type, SkyType])
def test_whose_agents_know_one_machine_only_rents_machines_one_by_one(
    kind: type[Ec2Type] | type[SkyType],
) -> None:
    usual = {"infras": ["aws/us-east-1"], "cpu": 4, "memory_gib": 16} if kind is SkyType else {}
    with pytest.raises(ValidationError, match="an instance of this provider is one machine"):
        kind.model_validate(usual | {"nodes": 2})
    assert kind.model_validate(usual | {"nodes": 1}).nodes == 1
