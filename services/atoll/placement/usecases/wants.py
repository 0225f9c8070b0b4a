"""What queued jobs want of rented capacity, written down for the broker after each forecast.

Jobs of queues that may rent, that one machine on offer could hold. The broker may find a job
here that has started, was held or was cancelled since: it is left out of the next list.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from atoll.core.engine.choice.wanting import NO_HOPE, Hope, want_of
from atoll.core.model.burst import InstanceId
from atoll.core.model.burst_wants import Want
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


async def tell_wants(leader: "Leader") -> bool:
    """Write what is wanted if it has changed enough; whether it was written.

    To be called under the leader's lock.
    """
    book, found = leader.foresight.wants, tuple(wants_of(leader))
    before = book.written
    if before is None and not found and not leader.memory.burst.offers:
        return False
    if before is not None and not changed(before, found):
        return False
    book.written = None  # until it is certain
    async with leader.store.begin() as tx:
        after = await tx.require(leader.fence)
        await tx.put_wants(leader.shard, found)
    leader.fence, book.written = after, found
    return True


def wants_of(leader: "Leader") -> list[Want]:
    """In the order of the queue, MOST at most."""
    memory, now = leader.memory, leader.clock.now()
    if not memory.burst.offers or not any(policy.allowed for policy in memory.burst.policies):
        return []
    asks = leader.foresight.wants.asks(memory.burst, memory.world.asked())
    found = (memory.world.pending(job) for job in _in_order(leader, asks))
    waiting = [pending for pending in found if pending is not None]
    # Jobs of a class are expected to run equally long.
    one = {(pending.queue, pending.request): pending for pending in waiting}
    work_s = {each: memory.world.expected(pending)[1] for each, pending in one.items()}
    return [
        want_of(
            pending,
            asks[key],
            _hope(leader, pending, now=now),
            work_s=work_s[key],
            now=now,
            placed_on=_placed_on(leader, pending.id),
        )
        for pending in waiting
        if (key := (pending.queue, pending.request)) in asks
    ]


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
