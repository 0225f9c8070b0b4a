"""Says of a guarantee that it is lost: only the loss of nodes does that, or of a run with them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from atoll.core.engine.deadlines.desk import SizeFacts
from atoll.core.engine.deadlines.lost import Broken, broken, capacities, known
from atoll.core.engine.deadlines.pools import Pool
from atoll.core.engine.deadlines.wishes import Ask
from atoll.core.model.ids import AttemptId, JobId
from atoll.core.model.job import Job
from atoll.core.model.lifecycle import TERMINAL_JOB
from atoll.core.model.messages import ChangeKind, Event
from atoll.core.model.reason import ReasonCode
from atoll.core.state.snapshot import Snapshot
from atoll.ports.store.common import Change, Fence
from atoll.ports.store.placement import PlacementStore


@dataclass(frozen=True, slots=True)
class Lost:
    """A guarantee that cannot be kept any more, and why."""

    broken: Broken
    cause: str


@dataclass(slots=True)
class GuaranteeWatch:
    """Compares the devices that are there with those that were when promises were given.

    Promises that look late without any loss are left alone: plans are made in
    whole seconds, and whoever starts a little late has not lost its promise.
    """

    _most: dict[Pool, int] = field(default_factory=dict)
    """By pool, the most devices since there have been promises."""

    def look(
        self,
        snapshot: Snapshot,
        standing: Sequence[tuple[JobId, Ask]],
        sizes: Mapping[AttemptId, SizeFacts],
        *,
        now: float,
        slack: int,
        again: frozenset[JobId],
    ) -> list[Lost]:
        """Promises that were lost since the last look. `again`: queued jobs that ran before."""
        # A leader that begins counts all nodes that are known: some may be lost already.
        here = capacities(snapshot, now=now)
        most = self._most or known(snapshot, now=now)
        pools = most.keys() | here.keys()
        self._most = {pool: max(most.get(pool, 0), here.get(pool, 0)) for pool in pools}
        fewer = {p: (here.get(p, 0), m) for p, m in self._most.items() if here.get(p, 0) < m}
        if not fewer and not again:
            return []
        found = broken(snapshot, standing, sizes, now=now, slack=slack)
        told = ((each, _cause(each, fewer, again)) for each in found)
        return [Lost(each, cause) for each, cause in told if cause]

    def forget(self) -> None:
        """There are no promises."""
        self._most.clear()


async def take_back_guarantees(store: PlacementStore, fence: Fence, lost: Sequence[Lost]) -> Fence:
    """Write that guarantees are lost, with an event for whoever watches the jobs."""
    by_job = {each.broken.job: each for each in lost}
    async with store.begin() as tx:
        after = await tx.require(fence)
        rows = await tx.lock_jobs(by_job)
        now = await tx.now()
        jobs = [
            replace(job, guaranteed=False)
            for job in rows.values()
            if job.guaranteed and job.state not in TERMINAL_JOB
        ]
        await tx.update_jobs(jobs)
        await tx.add_events([_event(job, by_job[job.id].cause, now=now) for job in jobs])
        ids = tuple(job.id for job in jobs)
        await tx.changed([Change(ChangeKind.JOBS, ids=ids, echo=True)])
    return after


def _event(job: Job, cause: str, *, now: float) -> Event:
    return Event(
        job=job.id,
        queue=job.queue,
        event=None,
        state=job.state,
        at=now,
        attempt=job.attempt,
        cluster=job.cluster,
        reason=ReasonCode.GUARANTEE_LOST,
        message=cause,
    )


def _cause(each: Broken, fewer: Mapping[Pool, tuple[int, int]], again: frozenset[JobId]) -> str:
    pools = [each.pool] if each.pool is not None else sorted(fewer)
    parts = [
        f"of {fewer[pool][1]} {pool[1]} in {pool[0]} {fewer[pool][0]} are left"
        for pool in pools
        if pool in fewer and pool[1] in each.kinds
    ]
    if not parts and each.job in again:
        parts = ["an attempt of it ended before it was through"]
    return "; ".join([*parts, *_late(each)]) if parts else ""


def _late(each: Broken) -> Iterable[str]:
    if each.earliest_at > each.deadline_at:
        yield f"it would be through {each.earliest_at - each.deadline_at:.0f} s after its deadline"
