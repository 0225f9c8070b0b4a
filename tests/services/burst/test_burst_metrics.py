"""What the service measures."""

from prometheus_client import REGISTRY

from atoll.burst import telemetry
from atoll.burst.usecases.by_hand import Request
from atoll.ports.provider import ProviderUnavailable
from tests.services.burst.worlds import SMALL, World, ready


def value(name: str, **labels: str) -> float:
    found = REGISTRY.get_sample_value(f"atoll_burst_{name}", labels)
    return 0.0 if found is None else found


async def test_instances_money_and_providers_are_measured() -> None:
    world = World()
    await world.allow(per_hour=4)
    leader = await world.lead()
    telemetry.leads()
    boots = value("boot_seconds_count", provider="cloud")
    errors = value("provider_errors_total", provider="cloud")
    await world.use.by_hand.request(Request(2, offer=SMALL), principal="ann")
    await leader.live()
    await world.clock.advance(60)
    await world.join(await world.row(1))
    telemetry.happened([each for lives in leader.lives.values() for each in await lives.look()])
    assert value("boot_seconds_count", provider="cloud") == boots + 1
    now = world.clock.now()
    telemetry.standing(await world.store.burst.live_instances(), now=now)
    assert (value("instances", state="READY"), value("instances", state="BOOTING")) == (1, 1)
    spend = await world.use.looker.spend(None, from_at=0.0, step_s=0.0)
    telemetry.money([spend.now])
    assert value("rate_dollars", queue="") == 2
    assert value("budget_left_dollars", queue="", bound="per_hour") == 2
    world.clouds["cloud"].mischief.errors.append(ProviderUnavailable("away"))
    await leader.live()
    for desk in leader.term.desks.values():
        telemetry.provider(desk)
        telemetry.provider(desk)
    assert value("provider_errors_total", provider="cloud") == errors + 1
    assert value("provider_reachable_info", provider="cloud") == 0
    telemetry.stands_by()
    assert (value("leading_info"), value("rate_dollars", queue="")) == (0, 0)


async def test_an_end_that_nobody_confirms_is_measured() -> None:
    world = World()
    await world.allow()
    leader = await world.lead()
    await world.use.by_hand.request(Request(1, offer=SMALL), principal="ann")
    await ready(world, leader)
    await world.use.by_hand.release([], every=True, now=True)
    world.clouds["cloud"].mischief.errors += [ProviderUnavailable("away")] * 100
    await leader.live()
    for _ in range(20):
        await leader.live(60)
    telemetry.standing(await world.store.burst.live_instances(), now=world.clock.now())
    assert value("ending_seconds") > 600
    telemetry.stands_by()
