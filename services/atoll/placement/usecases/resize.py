"""Changes the size of running attempts.

What is to begin is allocated with the decision, what is to end is held until the
agent has answered with what runs then. One change at a time per attempt, but for
those that are given anew because nobody answered.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from atoll.core.model.ids import AttemptId, ClusterName
from atoll.core.model.inventory import Cluster
from atoll.core.model.job import Attempt
from atoll.core.model.lifecycle import AttemptState, AttemptWish
from atoll.core.model.messages import ChangeKind, Decision, DecisionKind
from atoll.core.model.plan import Resize, TaskPlacement
from atoll.placement.usecases.commit import allocation_rows
from atoll.ports.store.common import Allocation, Change, Fence
from atoll.ports.store.placement import PlacementStore, PlacementTx

NOTHING: Final[Mapping[AttemptId, float]] = {}


@dataclass(frozen=True, slots=True)
class Resized:
    """What a commit of changes of size left behind."""

    fence: Fence
    attempts: tuple[Attempt, ...] = ()
    """As they hold now: what is to end, and what is to begin."""
    decisions: tuple[Decision, ...] = ()


async def commit_resizes(
    store: PlacementStore,
    fence: Fence,
    resizes: Sequence[Resize],
    *,
    done: Mapping[AttemptId, float] = NOTHING,
    overdue: Container[AttemptId] = (),
) -> Resized:
    """Commit changes of size in one fenced transaction.

    `done`: work that attempts have done by now. `overdue`: attempts that did not answer the
    last change in time. Others that have not answered fall out, as do those that do not run
    or are to stop. Raises StaleEpoch, StoreUnavailable (nothing happened) or UnknownOutcome.
    """
    wanted = {resize.attempt: resize for resize in resizes}
    async with store.begin() as tx:
        after = await tx.require(fence)
        clusters = await tx.lock_clusters(sorted({r.cluster for r in resizes}))
        rows = await tx.lock_attempts(sorted(wanted))
        now = await tx.now()
        fit = [
            # What is given anew changed the size when it was given first.
            a if a.id in overdue else replace(a, changed_at=now, done=done.get(a.id, a.done))
            for a in rows.values()
            if _fits(a, wanted[a.id], clusters=clusters, overdue=overdue)
        ]
        changed = [_held(attempt, wanted[attempt.id]) for attempt in fit]
        decisions = _decisions(fit, wanted, clusters=clusters, fence=fence)
        await _write(tx, changed, wanted, decisions=decisions)
    return Resized(after, tuple(changed), tuple(decisions))


def _fits(
    attempt: Attempt,
    resize: Resize,
    *,
    clusters: Mapping[ClusterName, Cluster],
    overdue: Container[AttemptId],
) -> bool:
    return (
        attempt.cluster in clusters
        and attempt.state is AttemptState.RUNNING
        and attempt.wish is AttemptWish.RUN
        and (attempt.resized == attempt.generation or attempt.id in overdue)
        and resize.generation == attempt.generation + 1
    )


def _held(attempt: Attempt, resize: Resize) -> Attempt:
    return replace(attempt, tasks=(*attempt.tasks, *resize.add), generation=resize.generation)


def _wanted(attempt: Attempt, resize: Resize) -> tuple[TaskPlacement, ...]:
    dropped = frozenset(resize.drop)
    kept = tuple(task for task in attempt.tasks if task.rank not in dropped)
    return (*kept, *resize.add)


def _decisions(
    attempts: Sequence[Attempt],
    resizes: Mapping[AttemptId, Resize],
    *,
    clusters: Mapping[ClusterName, Cluster],
    fence: Fence,
) -> list[Decision]:
    head = {name: cluster.head_seq for name, cluster in clusters.items()}
    made: list[Decision] = []
    for attempt in attempts:
        head[attempt.cluster] += 1
        made.append(
            Decision(
                cluster=attempt.cluster,
                number=head[attempt.cluster],
                epoch=fence.epoch,
                kind=DecisionKind.RESIZE,
                attempt=attempt.id,
                tasks=_wanted(attempt, resizes[attempt.id]),
                generation=resizes[attempt.id].generation,
            )
        )
    return made


async def _write(
    tx: PlacementTx,
    attempts: Sequence[Attempt],
    resizes: Mapping[AttemptId, Resize],
    *,
    decisions: Sequence[Decision],
) -> None:
    if not attempts:
        return
    await tx.update_attempts(attempts)
    await tx.set_tasks(attempts)
    await tx.add_allocations([row for a in attempts for row in _new_rows(a, resizes[a.id])])
    await tx.add_decisions(decisions)
    names = tuple(sorted({decision.cluster for decision in decisions}))
    await tx.changed([
        Change(ChangeKind.ATTEMPTS, ids=tuple(a.id for a in attempts)),
        Change(ChangeKind.DECISIONS, names=names),
    ])


def _new_rows(attempt: Attempt, resize: Resize) -> Iterator[Allocation]:
    return allocation_rows(replace(attempt, tasks=resize.add))
