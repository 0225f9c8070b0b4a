"""Which decisions are news: rents and drains always, refusals when their reason is a new one."""

from collections.abc import Sequence
from dataclasses import replace

from atoll.core.engine.burst.broker.forecast_rents import PoolRent, PoolShort
from atoll.core.engine.burst.broker.ground import Drain, Ground
from atoll.core.engine.burst.broker.job_rents import JobRents
from atoll.core.engine.burst.broker.memory import Memory
from atoll.core.engine.burst.broker.words import (
    drain_decision,
    none_decision,
    pool_decision,
    pool_why,
    rent_decisions,
    rent_why,
    short_decision,
)
from atoll.core.model.burst_wants import BurstDecision

MOST_NEWS = 200
"""Refusals that are told in one decision; the others are told in the next ones."""


def news(
    ground: Ground,
    found: JobRents,
    pools: Sequence[PoolRent],
    *,
    shorts: Sequence[PoolShort],
    drains: Sequence[Drain],
    memory: Memory,
) -> tuple[tuple[BurstDecision, ...], Memory]:
    """What is to be kept, in the order of rents, drains, refusals; and what was said by now."""
    told: list[BurstDecision] = []
    for load in found.loads:
        if found.gains is not None:
            told += rent_decisions(ground, found, load, why=rent_why(found.gains, load))
    for rent in pools:
        told += [pool_decision(ground, rent, pool_why(rent))] * rent.count
    by_id = {each.id: each for each in ground.instances}
    told += [drain_decision(ground, each, by_id[each.instance]) for each in drains]
    none, memory = _refusals(ground, found, shorts, memory=memory)
    return (*told, *none), memory


def _refusals(
    ground: Ground, found: JobRents, shorts: Sequence[PoolShort], *, memory: Memory
) -> tuple[list[BurstDecision], Memory]:
    said, said_of = ground.memory.said, ground.memory.said_of
    new = [each for each in found.refused if said.get(each.want.job) != each.bar][:MOST_NEWS]
    told = [none_decision(ground, found, each) for each in new]
    told += [short_decision(ground, each) for each in shorts if said_of.get(each.pool) != each.code]
    fresh = {each.want.job for each in new}
    kept = {
        each.want.job: str(each.bar)
        for each in found.refused
        if each.want.job in said or each.want.job in fresh
    }
    pools = {each.pool: each.code for each in shorts}
    return told, replace(memory, said=kept, said_of=pools)
