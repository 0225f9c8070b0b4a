"""What is rented for jobs that wait, within what policies and budgets leave."""

from dataclasses import replace

from atoll.burst.usecases.by_hand import Request
from atoll.burst.usecases.standing import Standing
from atoll.core.engine.burst.broker.decide import decide
from atoll.core.model.burst import (
    EndCause,
    Instance,
    InstanceId,
    InstanceState,
    Market,
    Offer,
)
from atoll.core.model.ids import ClusterName, JobId
from atoll.ports.store.burst import Capacity
from atoll.ports.store.demand import DemandRow
from tests.services.burst.worlds import DOLLAR, NLP, SMALL, World, ready


async def test_a_job_that_would_wait_long_gets_an_instance_that_is_then_ended() -> None:
    world = World()
    await world.allow(per_hour=2, hour_of_delay=10 * DOLLAR)
    await world.want(7)
    leader = await world.lead()
    assert await leader.decide() == ["rent"]
    assert await leader.decide() == []
    row = await ready(world, leader)
    assert (row.jobs, row.queue) == ((7,), NLP)
    told = await world.use.explainer.job(JobId(7))
    assert told.decisions[0].instances == (row.id,)
    assert "$1.00/h" in told.summary
    # The job has been and gone: nothing runs there, and nobody wants it.
    await world.want()
    assert (await world.use.explainer.job(JobId(7))).summary.endswith("Instance 1 is READY.")
    await world.clock.advance(4 * 3600)
    assert await leader.decide() == ["drain"]
    assert (await world.row()).cause is EndCause.IDLE
    assert await leader.live() == ["terminate"]
    assert await leader.live(30) == ["ended"]
    told = await world.use.explainer.instance(row.id)
    assert "TERMINATED (IDLE)" in told.summary


async def test_nothing_is_rented_beyond_the_budget_and_it_is_said_why() -> None:
    world = World()
    await world.allow(per_hour=1.5, hour_of_delay=10 * DOLLAR)
    await world.want(1, 2, asks=(), work_s=36_000.0)
    await world.want(1, 2)
    leader = await world.lead()
    await leader.decide()
    rows = await world.store.burst.live_instances()
    assert sum(row.offer.price for row in rows) <= 1.5 * DOLLAR
    budget = (await world.store.burst.budgets())[0]
    assert budget.rate == sum(row.offer.price for row in rows)


async def test_a_job_that_would_start_late_is_rented_for_though_its_delay_is_cheap() -> None:
    soon, late = 300.0, 1200.0
    for start_s, given, rented in ((soon, {}, []), (late, {}, ["rent"]), (late, {"late_s": 0}, [])):
        world = World(**given)
        await world.allow(per_hour=2, hour_of_delay=DOLLAR // 100)
        at = world.clock.now() + start_s
        await world.want(7, local_p50_at=at, local_p90_at=at)
        assert await (await world.lead()).decide() == rented


async def test_what_was_taken_meanwhile_is_not_rented() -> None:
    world = World()
    await world.allow(per_hour=1, hour_of_delay=10 * DOLLAR)
    await world.want(7)
    leader = await world.lead()
    ground = await leader.decider.ground()
    await world.use.by_hand.request(Request(1, offer=SMALL), principal="ann")
    (late,) = await leader.decider.carry_out(decide(ground))
    assert late.what == "short"
    told = await world.use.explainer.job(JobId(7))
    assert "the budget of all queues is $1.00 an hour, $0.00 of it is left" in told.summary


async def test_the_kill_switch_drains_all_and_rents_nothing() -> None:
    world = World()
    await world.allow(hour_of_delay=10 * DOLLAR)
    leader = await world.lead()
    await world.want(7)
    await leader.decide()
    await ready(world, leader)
    await world.allow(hour_of_delay=10 * DOLLAR, killed=True)
    await world.want(7, 8)
    assert await leader.decide() == ["drain"]
    row = await world.row()
    assert (row.state, row.cause) == (InstanceState.DRAINING, EndCause.POLICY)
    assert await leader.live() == ["terminate"]
    assert await leader.live(30) == ["ended"]
    assert await leader.decide() == []


async def test_a_budget_lowered_below_what_runs_drains_what_is_above_it() -> None:
    world = World()
    await world.allow(per_hour=3)
    leader = await world.lead()
    await world.use.by_hand.request(Request(3, offer=SMALL, keep_s=86_400), principal="ann")
    assert await leader.live() == ["booting"] * 3
    await world.allow(per_hour=1)
    assert await leader.decide() == ["drain", "drain"]
    await leader.live()
    await leader.live(90)
    (budget,) = await world.store.burst.budgets()
    assert budget.rate == DOLLAR


async def test_a_new_leader_goes_on_with_what_the_old_one_knew() -> None:
    world = World()
    await world.allow(hour_of_delay=10 * DOLLAR)
    await world.want(7, 8, asks=())
    leader = await world.lead()
    await leader.decide()
    leader.term.was_idle("cloud/small/on_demand", 12.0)
    await leader.term.keep()
    other = await world.lead()
    assert other.term.memory == leader.term.memory
    assert other.term.idle_s == {"cloud/small/on_demand": (12.0,)}
    said = (await world.use.explainer.last(10)).decisions
    await other.decide()
    assert (await world.use.explainer.last(10)).decisions == said


def test_what_is_idle_at_home_is_what_nobody_runs_on_or_waits_for() -> None:
    here, there = ClusterName("north"), ClusterName("burst-1")
    capacities = [
        Capacity(here, "H100", 8, rented=False),
        Capacity(here, "A100", 4, rented=False),
        Capacity(here, "", 3, rented=False),
        Capacity(there, "H100", 1, rented=True),
    ]
    offer = Offer("cloud", "a", "a", "small", Market.SPOT, 1, 1)
    rows = [Instance(InstanceId(1), "t", offer, InstanceState.READY, 0.0, cluster=there)]
    runs = DemandRow(JobId(1), NLP, "H100", 2.5, 1.0, 2.0, cluster=here)
    away = replace(runs, job=JobId(2), cluster=there, devices=1.0)
    waits = DemandRow(JobId(3), NLP, "A100", 1.0, 1.0, 0.0)
    standing = Standing()
    for each in (runs, away, waits):
        standing.enter(each, now=5.0)
    assert standing.spare(capacities, rows) == {"H100": 5}
    # Nobody waits who waits for others, or for a time, until that has come.
    standing.leave(waits)
    later = replace(waits, begin_at=9.0)
    standing.enter(later, now=5.0)
    assert standing.spare(capacities, rows) == {"H100": 5, "A100": 4}
    standing.pass_time(9.0)
    assert standing.spare(capacities, rows) == {"H100": 5}
    standing.leave(later)
    standing.enter(replace(later, waits=True), now=9.0)
    assert standing.spare(capacities, rows) == {"H100": 5, "A100": 4}


async def test_offers_take_as_long_as_they_took() -> None:
    world = World()
    await world.allow()
    leader = await world.lead()
    for number in (1, 2, 3):
        await world.use.by_hand.request(Request(1, offer=SMALL), principal="ann")
        assert "booting" in await leader.live()
        await world.clock.advance(100)
        await world.join(await world.row(number))
        await leader.live()
    (before,) = [each for each in await world.store.burst.offers() if each.key == SMALL]
    await leader.offers()
    (after,) = [each for each in await world.store.burst.offers() if each.key == SMALL]
    assert after == replace(before, lead_s=100.0)
