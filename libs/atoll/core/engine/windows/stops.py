"""All that a cycle stops for bookings, before it looks for others who could be stopped."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from atoll.core.engine.masks import Masks
from atoll.core.engine.windows.bookings import Bookings, claimant
from atoll.core.engine.windows.drain import evicted, overdue
from atoll.core.engine.windows.passes import Passes
from atoll.core.engine.windows.recall import Recall, Recalled
from atoll.core.model.ids import JobId
from atoll.core.model.plan import Eviction
from atoll.core.policies.interfaces import Policies
from atoll.core.state.holds import Hold
from atoll.core.state.snapshot import Snapshot

_ABOVE_ALL: Final = 1 << 62
"""Higher than any priority."""


@dataclass(frozen=True, slots=True)
class Stops:
    """Who stops for bookings, and what is held for whom then."""

    snapshot: Snapshot
    """In which they were told already."""
    evictions: tuple[Eviction, ...] = ()
    holds: tuple[Hold, ...] = ()
    groups: frozenset[int] = frozenset()
    """Classes of the jobs that something is held for."""


def stops(
    passes: Passes,
    policies: Policies,
    waiting: Sequence[tuple[int, int]],
    *,
    without: Container[JobId],
    bind_s: float,
) -> Stops:
    """Stop what is in the way of bookings, and what was lent to others.

    `waiting`: blocked classes, each with its next job's index in the queue, for which lent
    capacity is taken back; `without`: jobs for which something is held already.
    """
    masks, snapshot = passes.masks, passes.lineup.snapshot
    if not masks.bookings:
        return Stops(snapshot)
    due = overdue(masks.bookings)
    running = replace(snapshot.running, stopping=snapshot.running.stopping.copy())
    running.stopping[sorted(due)] = True
    after = replace(snapshot, running=running)
    found = _recalled(passes, policies, after, bind_s=bind_s).run(waiting, without)
    return Stops(
        after,
        (*evicted(running, due), *found.evictions),
        tuple(found.holds),
        frozenset(found.groups),
    )


def firm(bookings: Bookings, holds: Sequence[Hold]) -> tuple[Hold, ...]:
    """Holds of which nobody inherits those that owners' jobs have in their windows."""
    return tuple(_raised(hold) if _is_inside(bookings, hold) else hold for hold in holds)


def _raised(hold: Hold) -> Hold:
    return replace(hold, job=replace(hold.job, priority=_ABOVE_ALL))


def _is_inside(bookings: Bookings, hold: Hold) -> bool:
    if not bookings:
        return False
    # What is held may begin with its window: that of the latest time counts.
    who, at = claimant(hold.job.queue, hold.job.request), hold.nomination.until
    inside = bookings.inside(who, bookings.now) | bookings.inside(who, at)
    return bool(np.isin(hold.uses.row, bookings.rows_of(inside)).any())


def ahead(masks: Masks, snapshot: Snapshot, bind_s: float) -> Masks:
    """Masks for jobs that start only when others have stopped and they themselves are bound."""
    if not masks.bookings:
        return masks
    running = snapshot.running
    return masks.ahead(float(running.runs.grace_s[running.live].max(initial=0.0)) + bind_s)


def _recalled(passes: Passes, policies: Policies, after: Snapshot, *, bind_s: float) -> Recall:
    return Recall(
        snapshot=after,
        policies=policies,
        masks=passes.masks,
        statement=passes.statement,
        scoring=passes.scoring,
        used=passes.lineup.quota.used.copy(),
        bind_s=bind_s,
        admission=passes.admission,
        result=Recalled(),
    )
