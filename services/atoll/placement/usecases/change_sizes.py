"""The leader's step that changes the sizes of running jobs, and takes lost guarantees back."""

import asyncio
from collections.abc import Collection, Mapping, Sequence

from atoll.core.engine.deadlines.elastic import elastic_runs
from atoll.core.engine.verify_sizes import verify_sizes
from atoll.core.model.ids import AttemptId
from atoll.core.model.messages import Decision
from atoll.core.model.plan import Resize
from atoll.placement.usecases.guarantees import Lost, take_back_guarantees
from atoll.placement.usecases.leader import Leader
from atoll.placement.usecases.promises import ask_of
from atoll.placement.usecases.resize import commit_resizes
from atoll.placement.usecases.sizing import Found, Look, asked_kinds


async def change_sizes(leader: Leader) -> list[Decision]:
    """Shrink for those that wait, repeat what nobody answered, grow; decisions to publish."""
    memory, sizing = leader.memory, leader.sizing
    shrinks, sizing.shrinks = sizing.shrinks, ()
    if not (memory.sizes or memory.promised or memory.world.guaranteed()):
        sizing.watch.forget()
        return []
    now = leader.clock.monotonic()
    decisions: list[Decision] = []
    ready = memory.sizes.ready()
    # The cycle that found them may have failed, and much have happened since.
    if shrinks := tuple(each for each in shrinks if each.attempt in ready):
        decisions += await _commit(leader, shrinks, _done(leader))
    anew = memory.sizes.overdue(now, bind_timeout_s=leader.rules.bind_timeout_s)
    if anew:
        decisions += await _commit(leader, anew, {}, overdue={each.attempt for each in anew})
    if sizing.is_due(memory, now=now):
        decisions += await _look(leader)
    return decisions


async def _look(leader: Leader) -> list[Decision]:
    found = await _found(leader)
    sizing, world = leader.sizing, leader.memory.world
    if found.smaller - sizing.smaller:
        # They could not give anything back when those that wait were tried last.
        world.reconsider()
    sizing.smaller = found.smaller
    if found.lost:
        await _lose(leader, found.lost)
    return await _commit(leader, found.resizes, found.done) if found.resizes else []


async def _found(leader: Leader) -> Found:
    memory, now = leader.memory, leader.clock.now()
    queued = memory.world.guaranteed()
    look = Look(
        memory.world.look(now),
        memory,
        standing=[(job.id, ask_of(job)) for job in queued],
        early=leader.promises.early(now),
        again=frozenset(job.id for job in queued if job.attempts),
        asked=asked_kinds(memory, leader.outlook),
        objective=leader.policies.objective,
    )
    slack = round(leader.rules.bind_timeout_s)
    # Off the event loop: the kernels release the GIL.
    return await asyncio.to_thread(look.take, leader.sizing.watch, now=now, slack=slack)


async def _commit(
    leader: Leader,
    resizes: Sequence[Resize],
    done: Mapping[AttemptId, float],
    *,
    overdue: Collection[AttemptId] = (),
) -> list[Decision]:
    verify_sizes(resizes, leader.memory.world.ledger)
    made = await commit_resizes(leader.store, leader.fence, resizes, done=done, overdue=overdue)
    leader.fence = made.fence
    leader.memory.resized(made.attempts, resizes, now=leader.clock.monotonic())
    leader.counters.resized += len(made.attempts)
    return list(made.decisions)


async def _lose(leader: Leader, lost: Sequence[Lost]) -> None:
    leader.fence = await take_back_guarantees(leader.store, leader.fence, lost)
    leader.sizing.lost.extend(lost)
    attempts = (each.broken.attempt for each in lost)
    leader.memory.no_guarantee(attempt for attempt in attempts if attempt is not None)


def _done(leader: Leader) -> dict[AttemptId, float]:
    now, sizes = leader.clock.now(), leader.memory.sizes
    snapshot = leader.memory.world.look(now)
    runs = elastic_runs(snapshot, sizes.ready(), sizes.facts())
    return {run.holding.attempt: run.done_by(now) for run in runs}
