"""One decision of the broker: what to rent, what to drain, and why, by a ground alone.

Jobs that wait use what is there or on its way; for the others an instance is rented where that
saves more than it costs. What is foreseen asks for more; what has long been idle, what a policy
forbids and what no budget bears is drained.
"""

from dataclasses import replace

from atoll.core.engine.burst.broker.back_to_spot import back_to_spot
from atoll.core.engine.burst.broker.courses import courses_after, with_courses
from atoll.core.engine.burst.broker.cover import covered
from atoll.core.engine.burst.broker.forecast_rents import Held, PoolRent, forecast_rents
from atoll.core.engine.burst.broker.ground import Deeds, Ground, Rent, Room
from atoll.core.engine.burst.broker.home import home
from atoll.core.engine.burst.broker.idle_drains import Idle, idle_drains
from atoll.core.engine.burst.broker.job_rents import JobRents, job_rents, tries_after
from atoll.core.engine.burst.broker.memory import Memory, Pool, Turn
from atoll.core.engine.burst.broker.need import belongs, pays_for
from atoll.core.engine.burst.broker.over import above_budget, against_policy
from atoll.core.engine.burst.broker.prompt import followed
from atoll.core.engine.burst.broker.rooms import Purse, Rooms
from atoll.core.engine.burst.broker.said import news
from atoll.core.engine.burst.broker.stock import Stock
from atoll.core.engine.burst.broker.words import job_terms, pool_terms, pool_why, rent_why
from atoll.core.engine.burst.broker.zones import looked
from atoll.core.engine.choice.worth import HOUR_S
from atoll.core.model.burst import Instance, InstanceState, chain_of


def decide(ground: Ground) -> Deeds:
    """What is to be done now. The same ground gives the same deeds."""
    ground = with_courses(_with_prompt(ground))
    zones, looked_at = looked(ground)
    over = against_policy(ground)
    over += above_budget(ground, [each.instance for each in over])
    gone = {each.instance for each in over}
    stays = tuple(each for each in ground.instances if each.id not in gone)
    left = replace(ground, instances=stays)
    has = covered(left)
    purse, stock = Purse(_with_reserve(ground)), Stock(ground)
    wants = [each for each in ground.wants if each.job not in has]
    found = job_rents(ground, wants, purse=purse, stock=stock, zones=zones)
    planned = _planned(found)
    pools, shorts = forecast_rents(left, planned, purse=purse, stock=stock)
    idle = idle_drains(left, planned, taken=set(has.values()), gone=gone)
    ending = (*idle.drains, *home(left))
    moved = back_to_spot(left, zones, besides={each.instance for each in ending})
    drains = (*over, *ending, *moved)
    memory = Memory(
        turns=_turns(ground, pools, idle),
        tries=tries_after(ground, found),
        zones=zones,
        looked_at=looked_at,
        prompt=ground.memory.prompt,
        courses=courses_after(ground, found),
    )
    rents = (*_for_jobs(found), *_for_pools(pools))
    decisions, memory = news(ground, found, pools, shorts=shorts, drains=drains, memory=memory)
    return Deeds(rents, drains, decisions, memory)


def _with_prompt(ground: Ground) -> Ground:
    """With what has become of the jobs that are to start in time."""
    options, memory = ground.options, ground.memory
    if not options.late_s:
        return ground
    prompt = followed(
        memory.prompt,
        ground.wants,
        came=ground.came,
        now=ground.now,
        late_s=options.late_s,
        share=options.late_share,
    )
    return replace(ground, memory=replace(memory, prompt=prompt))


def _with_reserve(ground: Ground) -> Rooms:
    """What runs is expected to go on for a while: that part of the month is not rented for."""
    rooms = dict(ground.budgets)
    for each in ground.instances:
        ahead = round(each.offer.price * _goes_on_s(each, ground) / HOUR_S)
        for queue in chain_of(each.queue):
            room = rooms.get(queue)
            if room is not None and room.month_left is not None:
                rooms[queue] = Room(room.rate_left, room.month_left - ahead)
    return rooms


def _goes_on_s(instance: Instance, ground: Ground) -> float:
    """For how long it is paid until it is told to end."""
    match instance.state:
        case InstanceState.TERMINATING:
            return 0.0
        case InstanceState.DRAINING:
            return max(0.0, instance.drain_by - ground.now)
        case _:
            return ground.options.commitment_s


def _planned(found: JobRents) -> Held:
    """Devices that are rented for jobs, by kind and payer."""
    held: Held = {}
    for load in found.loads:
        offer, queue = found.offer_of(load), found.wants_of(load)[0].queue
        held[offer.kind, queue] = held.get((offer.kind, queue), 0) + offer.units
    return held


def _for_jobs(found: JobRents) -> list[Rent]:
    gains = found.gains
    if gains is None:
        return []
    return [
        Rent(
            found.offer_of(load),
            gains.wants[load.wants[0]].queue,
            tuple(want.job for want in found.wants_of(load)),
            round(load.cost),
            rent_why(gains, load),
            job_terms(gains, load, load.wants[0]),
        )
        for load in found.loads
    ]


def _for_pools(pools: list[PoolRent]) -> list[Rent]:
    return [
        Rent(each.offer, each.need.pool.queue, (), each.ahead, pool_why(each), pool_terms(each))
        for each in pools
        for _ in range(each.count)
    ]


def _turns(ground: Ground, pools: list[PoolRent], idle: Idle) -> dict[Pool, Turn]:
    """When pools that are foreseen last grew, shrank, and wanted what they had."""
    ended = {each.instance for each in idle.drains}
    shrunk = [each for each in ground.instances if each.id in ended]
    grown = {each.need.pool for each in pools}
    turns = {}
    for pool in (Pool(each.kind, each.queue) for each in ground.outlooks):
        before = ground.memory.turns.get(pool, Turn())
        rents = any(each.kind == pool.kind and pays_for(pool.queue, each.queue) for each in grown)
        drains = any(belongs(each, pool) for each in shrunk)
        now = (rents, drains, pool in idle.wanted)
        turns[pool] = Turn(
            *(ground.now if new else at for new, at in zip(now, before, strict=True))
        )
    return turns
