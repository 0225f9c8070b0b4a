"""A shard in memory with a leader over it, and hands that submit, report and fall silent."""

from collections.abc import Sequence
from dataclasses import replace

from atoll.adapters.memory.clock import ManualClock
from atoll.adapters.memory.store import MemoryDatabase, MemoryStore
from atoll.core.model.ids import DEFAULT_SHARD, AttemptId, ClusterName, Epoch, JobId, NodeId
from atoll.core.model.inventory import Cluster
from atoll.core.model.job import Attempt, Job
from atoll.core.model.lifecycle import AttemptEvent, JobState, JobWish
from atoll.core.model.messages import ChangeKind, Decision
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.model.spec import JobSpec, OnLost, TaskGroup
from atoll.core.policies.registry import policies
from atoll.placement.settings import PlacementSettings
from atoll.placement.usecases.leader import Leader
from atoll.placement.usecases.recovery import begin_term
from atoll.ports.store.common import Change
from atoll.ports.store.dispatch import Beat
from tests.adapters.store_builders import NORTH, TENANT, cluster_with, job, node, submitted
from tests.adapters.store_builders import report as report_as_dispatch

SETTINGS = PlacementSettings.model_validate({
    "bind_timeout_s": 10.0,
    "unschedulable_after_s": 5.0,
    "lost_after_s": 20.0,
    "takeover_grace_s": 3.0,
    "avoid_base_s": 4.0,
    "max_placements": 50,
})


def one_gpu(name: str = "train", *, gpus: int = 1, tasks: int = 1, **given: object) -> JobSpec:
    """A job of some tasks with some H100s each."""
    shape = TaskShape(1000, 1 << 30, DeviceRequest("H100", gpus)) if gpus else TaskShape(1000, 1)
    group = TaskGroup("main", tasks, tasks, shapes=(shape,), run="true")
    fields: dict[str, object] = {"queue": "default", "groups": (group,), **given}
    return JobSpec(name=name, **fields)  # type: ignore[arg-type]


class Shard:
    """Everything around a leader; `clock` moves by hand."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.database = MemoryDatabase()
        self.store = MemoryStore(self.database, self.clock)
        self.terms = 0

    async def cluster(self, name: ClusterName = NORTH, *, nodes: int = 2, gpus: int = 8) -> None:
        """A registered cluster whose agent has sent its inventory."""
        await cluster_with(
            self.store, *(node(f"{name}-{i}", gpus=gpus) for i in range(nodes)), name=name
        )

    async def lead(self, *, epoch: int | None = None) -> Leader:
        """A new leader, over a store connection of its own."""
        self.terms += 1
        return await begin_term(
            MemoryStore(self.database, self.clock).placement,
            self.clock,
            Epoch(0, epoch or self.terms),
            shard=DEFAULT_SHARD,
            rules=SETTINGS.rules,
            policies=policies(),
        )

    async def submit(self, *specs: JobSpec, trace: str = "", guaranteed: bool = False) -> list[Job]:
        """Jobs as submission writes them."""
        async with self.store.submission.begin() as tx:
            ids = await tx.next_job_ids(len(specs))
            now = await tx.now()
            jobs = [
                job(number, spec=spec, submitted_at=now, trace=trace, guaranteed=guaranteed)
                for number, spec in zip(ids, specs, strict=True)
            ]
            await tx.add_jobs(jobs)
            await tx.add_events([submitted(each) for each in jobs])
            await tx.changed([Change(ChangeKind.JOBS, ids=tuple(ids))])
        return jobs

    async def cancel(self, number: JobId) -> None:
        """The user's wish for a job that has a live attempt."""
        async with self.store.submission.begin() as tx:
            rows = await tx.lock_jobs([number])
            await tx.update_jobs([replace(rows[number], wish=JobWish.CANCEL)])
            await tx.changed([Change(ChangeKind.JOBS, ids=(number,))])

    async def report(self, attempt: AttemptId, event: AttemptEvent, **given: object) -> None:
        """What an agent says, applied as dispatch applies it."""
        await report_as_dispatch(self.store, attempt, event, **given)

    async def sent(self, name: ClusterName = NORTH) -> None:
        """Dispatch has committed that it pushes all decisions so far."""
        cluster = await self.cluster_row(name)
        held = await self.store.dispatch.mark_sent([
            (name, cluster.session_epoch, cluster.head_seq)
        ])
        assert held == {name}

    async def beat(self, *names: ClusterName) -> None:
        """Heartbeats arrive."""
        rows = [await self.cluster_row(name) for name in names]
        await self.store.dispatch.beat([
            Beat(row.name, row.session_epoch, row.acked_seq, lease_s=10.0) for row in rows
        ])

    async def cluster_row(self, name: ClusterName = NORTH) -> Cluster:
        """A cluster as it stands."""
        return next(c for c in await self.store.submission.clusters() if c.name == name)

    async def job(self, number: JobId) -> Job:
        """A job as it stands."""
        found = await self.store.submission.get_job(TENANT, number)
        assert found is not None
        return found

    async def states(self, jobs: Sequence[Job]) -> list[JobState]:
        """Of jobs, in their order."""
        return [(await self.job(each.id)).state for each in jobs]

    async def attempt(self, number: JobId) -> Attempt:
        """The live or last attempt of a job."""
        return (await self.store.submission.last_attempts([number]))[number]

    async def nodes_held(self) -> set[NodeId]:
        """Nodes with live allocations."""
        rows = await self.store.placement.allocations(DEFAULT_SHARD)
        return {row.node for row in rows}

    async def decisions(self, name: ClusterName = NORTH) -> list[Decision]:
        """All of a cluster's decisions so far."""
        return await self.store.dispatch.decisions_after(name, 0, limit=1000)


async def cycle(leader: Leader) -> None:
    """One cycle, as the loop runs it."""
    await leader.catch_up()
    await leader.take_back()
    await leader.schedule()


def requeued_when_lost(name: str = "train") -> JobSpec:
    """A job that runs elsewhere once its cluster is lost."""
    return one_gpu(name, on_lost=OnLost.REQUEUE)
