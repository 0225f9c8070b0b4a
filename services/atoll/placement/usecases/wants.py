"""What queued jobs want of rented capacity, written down for the broker after each forecast.

Jobs of queues that may rent, that an instance on offer could hold. The broker may find a job
here that has started, was held or was cancelled since: it is left out of the next list.

They are looked at a few at a time, and the leader's lock is free in between: no cycle waits for
more than one slice. What stands on nothing that changes is done in another thread.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from atoll.core.engine.choice.wanting import NO_HOPE, Hope, want_of
from atoll.core.model.burst import InstanceId
from atoll.core.model.burst_wants import Ask, Want
from atoll.core.model.ids import JobId
from atoll.core.model.plan import PendingJob
from atoll.core.state.rentals import COMING
from atoll.placement.usecases.etas import held_rental, local_eta
from atoll.placement.usecases.want_book import ClassKey, changed

if TYPE_CHECKING:
    from atoll.placement.usecases.leader import Leader

MOST: Final = 1000
"""Jobs that are written; the others come as these start."""
LEAST_OF_A_CLASS: Final = 16
CONSIDERED: Final = 8 * MOST
"""Jobs that are put in order, about."""
SLICE: Final = 32
"""Jobs that are looked at while the lock is held: 2 ms or so."""


@dataclass(frozen=True, slots=True)
class _Classes:
    """What jobs of a class have in common."""

    asks: Mapping[ClassKey, Sequence[Ask]]
    work_s: dict[ClassKey, float] = field(default_factory=dict)


async def new_wants(leader: "Leader") -> tuple[Want, ...] | None:
    """What is to be written; None: it has not changed enough.

    Not to be called under the leader's lock, which is taken for each slice.
    """
    before, found = leader.foresight.wants.written, tuple(await _wants_of(leader))
    if before is None and not found and not leader.memory.burst.offers:
        return None
    if before is not None and not await asyncio.to_thread(changed, before, found):
        return None
    return found


async def write_wants(leader: "Leader", found: Sequence[Want]) -> None:
    """Replace what was written before. To be called under the leader's lock."""
    book = leader.foresight.wants
    book.written = None  # until it is certain
    async with leader.store.begin() as tx:
        after = await tx.require(leader.fence)
        await tx.put_wants(leader.shard, found)
    leader.fence, book.written = after, tuple(found)


async def _wants_of(leader: "Leader") -> list[Want]:
    """In the order of the queue, MOST at most."""
    memory, book = leader.memory, leader.foresight.wants
    ground = memory.burst
    if not ground.offers or not any(policy.allowed for policy in ground.policies):
        return []
    async with leader.lock:
        asked = tuple(memory.world.asked())
    classes = _Classes(await asyncio.to_thread(book.asks, ground, asked))
    async with leader.lock:
        order = _in_order(leader, classes.asks)
    found: list[Want] = []
    for at in range(0, len(order), SLICE):
        async with leader.lock:
            found += _slice(leader, order[at : at + SLICE], classes)
        # Who waits for the lock, or for anything else here, has its turn before the next slice.
        await asyncio.sleep(0)
    return found


def _slice(leader: "Leader", jobs: Sequence[JobId], classes: _Classes) -> list[Want]:
    """Those of some jobs; of those that wait no more there are none."""
    world, now = leader.memory.world, leader.clock.now()
    found = []
    waiting = (pending for job in jobs if (pending := world.pending(job)) is not None)
    for pending in waiting:
        key = pending.queue, pending.request
        if key not in classes.asks:
            continue
        # Jobs of a class are expected to run equally long.
        if key not in classes.work_s:
            classes.work_s[key] = world.expected(pending)[1]
        found.append(
            want_of(
                pending,
                classes.asks[key],
                _hope(leader, pending, now=now),
                work_s=classes.work_s[key],
                now=now,
                placed_on=_placed_on(leader, pending.id),
            )
        )
    return found


def _in_order(leader: "Leader", asks: Mapping[ClassKey, object]) -> list[JobId]:
    most = max(LEAST_OF_A_CLASS, min(MOST, CONSIDERED // max(1, len(asks))))
    made = leader.foresight.latest
    jobs, turns = [np.zeros(0, np.int64)], [np.zeros(0)]
    for queue, request, priority, first in leader.memory.world.first_of(asks, most):
        jobs.append(first)
        turns.append(made.turns((queue, request, priority), first))
    each = np.concatenate(jobs)
    order = np.lexsort((each, np.concatenate(turns)))[:MOST]
    return [JobId(job) for job in each[order].tolist()]


def _hope(leader: "Leader", pending: PendingJob, *, now: float) -> Hope:
    eta = local_eta(leader, pending, now=now)
    return NO_HOPE if eta is None else Hope(eta.p50_at, eta.p90_at, eta.cluster)


def _placed_on(leader: "Leader", job: JobId) -> InstanceId | None:
    rental = held_rental(leader, job)
    return rental.instance if rental is not None and rental.state in COMING else None
