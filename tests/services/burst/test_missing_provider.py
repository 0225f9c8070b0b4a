"""A provider that was taken out of the settings while instances of it are left."""

from prometheus_client import REGISTRY

from atoll.burst import telemetry
from atoll.burst.loops import Candidate
from atoll.burst.usecases.by_hand import Request
from atoll.burst.usecases.desk import Desk
from atoll.burst.usecases.lives import Lives
from atoll.burst.usecases.missing import healths, missing
from atoll.burst.usecases.nobody import Nobody
from atoll.burst.usecases.upkeep import drop_offers
from atoll.core.model.burst import InstanceId, InstanceState
from tests.services.burst.worlds import SMALL, World, ready


async def left_over() -> World:
    """Instance 1 of `cloud` is to end, and `cloud` is gone from the settings."""
    world = World("cloud", "other")
    await world.allow()
    leader = await world.lead()
    await world.use.by_hand.request(Request(1, offer=SMALL), principal="ann")
    await ready(world, leader)
    await world.use.by_hand.release([], every=True, now=True)
    del world.clouds["cloud"]
    return world


async def tell(candidate: Candidate, world: World) -> None:
    term = (await world.lead()).term
    await candidate._tell(term)


async def test_status_and_explain_name_it_and_say_what_to_do() -> None:
    world = await left_over()
    leader = await world.lead()
    strangers = Lives(leader.term, Desk(Nobody(), world.clock), lambda name: name != "other")
    for _ in range(5):
        await world.clock.advance(600)
        await strangers.look()
    row = await world.row()
    assert row.state is InstanceState.TERMINATING
    await tell(world.another().candidate, world)
    found = {each.name: each for each in (await world.use.looker.standing()).providers}
    assert not found["cloud"].reachable
    message = found["cloud"].message
    assert "not among the settings any more, so instance 1 cannot be ended" in message
    assert "set cloud up again under this name" in message
    assert "not among the settings" not in found["other"].message
    told = await world.use.explainer.instance(InstanceId(1))
    assert "TERMINATING" in told.summary
    assert "Provider cloud does not answer: it is not among the settings" in told.summary
    name, labels = "atoll_burst_missing_provider_instances", {"provider": "cloud"}
    assert REGISTRY.get_sample_value(name, labels) == 1
    telemetry.stands_by()
    assert REGISTRY.get_sample_value(name, labels) is None


async def test_it_ends_once_the_provider_is_back() -> None:
    world = await left_over()
    cloud = world.another()  # without it
    await tell(cloud.candidate, world)
    world.clouds["cloud"] = world.provider("cloud")
    leader = await world.lead()
    await leader.live()
    await leader.live(30)
    assert (await world.row()).state is InstanceState.TERMINATED
    await tell(world.another().candidate, world)
    assert "cloud" not in {
        each.name for each in (await world.use.looker.standing()).providers if not each.reachable
    }
    telemetry.stands_by()


async def test_nothing_is_rented_of_what_it_offered() -> None:
    world = await left_over()
    offered = {each.provider for each in await world.store.burst.offers()}
    leader = await world.lead()
    assert await drop_offers(leader.term) == ["cloud"]
    assert {each.provider for each in await world.store.burst.offers()} == offered - {"cloud"}
    assert await drop_offers(leader.term) == []


async def test_many_instances_are_not_all_named() -> None:
    world = World()
    await world.allow()
    await world.lead()
    await world.use.by_hand.request(Request(12, offer=SMALL), principal="ann")
    rows = await world.store.burst.live_instances()
    assert missing(rows, {"cloud"}) == {}
    (health,) = healths(missing(rows, ()))
    assert "instances 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more cannot" in health.message
