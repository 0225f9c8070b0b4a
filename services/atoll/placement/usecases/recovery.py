"""Begins a term from rows: the epoch first, and only then the load."""

import asyncio
from typing import Final

from atoll.core.model.ids import Epoch, ShardId
from atoll.core.policies.interfaces import Policies
from atoll.core.state.world import World
from atoll.placement.usecases.foresight import PAST_RUNS, runs_of
from atoll.placement.usecases.leader import Leader, LeaderRules
from atoll.placement.usecases.memory import LeaderMemory
from atoll.placement.usecases.rejections import RejectionBook
from atoll.placement.usecases.silence import SilenceWatch
from atoll.ports.clock import Clock
from atoll.ports.store.common import Fence
from atoll.ports.store.placement import PlacementStore

OLD_AFTER_S: Final = 60.0
"""A job that was submitted so long before the load has waited for more than a leader, or nobody can
tell: it does not count as an instance of how quick placement is."""


async def begin_term(
    store: PlacementStore,
    clock: Clock,
    epoch: Epoch,
    *,
    shard: ShardId,
    rules: LeaderRules,
    policies: Policies,
) -> Leader:
    """Commit the epoch, load, and lead. Raises StaleEpoch when a later leader was there first."""
    fence = await store.take_over(shard, epoch)
    return await resume(store, clock, fence, rules=rules, policies=policies)


async def resume(
    store: PlacementStore,
    clock: Clock,
    fence: Fence,
    *,
    rules: LeaderRules,
    policies: Policies,
) -> Leader:
    """Load everything anew under a fence that stands: every agent gets a full period of grace."""
    delta = await store.load(fence.shard)
    now = clock.monotonic()
    leader = Leader(
        store=store,
        clock=clock,
        shard=fence.shard,
        rules=rules,
        policies=policies,
        memory=LeaderMemory(World(rules.half_life_s), rules.bind_timeout_s, rules.max_lag),
        fence=fence,
        cursor=delta.cursor,
        watch=SilenceWatch(rules.silence, since=now),
        book=RejectionBook(rules.avoidance),
    )
    leader.book.restore(delta.avoidances)
    leader.foresight.restore(delta.forecasts)
    past = await store.past_attempts(fence.shard, most=PAST_RUNS)
    leader.memory.world.run_times.note(runs_of(past))
    leader.memory.boots.absorb(past[::-1], leader.memory.world)
    # A large fleet takes a while; heartbeats and health checks go on meanwhile.
    absorbed = await asyncio.to_thread(leader.memory.absorb, delta, now=now)
    leader.memory.newcomers.drop_older(clock.now() - OLD_AFTER_S)
    leader.memory.world.set_avoidances(leader.book.active(now=clock.now()))
    await leader.act_on(absorbed)
    return leader
