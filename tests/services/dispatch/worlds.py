"""A control plane around dispatch: a store, a stream, hints, and a hand that places jobs."""

from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Protocol

from atoll.adapters.system import SystemClock, SystemIds
from atoll.api.agent.v1.agent_pb2_grpc import add_AgentServiceServicer_to_server
from atoll.core.model.ids import (
    DEFAULT_SHARD,
    AttemptId,
    ClusterName,
    JobId,
    QueueName,
    Tenant,
    attempt_id,
)
from atoll.core.model.inventory import Cluster, Node, NodeInventory
from atoll.core.model.job import Attempt, Job, Queue
from atoll.core.model.lifecycle import JobWish, StopCause
from atoll.core.model.messages import Decision, Event
from atoll.core.model.plan import GangPlacement, Plan, Resize, request_of
from atoll.core.model.spec import JobSpec
from atoll.dispatch.replica import Replica
from atoll.dispatch.settings import DispatchSettings
from atoll.dispatch.wiring import SERVICE
from atoll.placement.usecases.commit_plan import commit_plan
from atoll.placement.usecases.resize import commit_resizes
from atoll.placement.usecases.revoke import Revoked, revoke
from atoll.ports.store.common import Allocation, Cursor, Fence
from atoll.ports.store.dispatch import DispatchStore
from atoll.ports.store.placement import PlacementStore
from atoll.ports.store.submission import SubmissionStore
from atoll.ports.streams import DecisionStream, Hints, StreamEntry
from atoll.runtime.loops import Supervisor
from atoll.runtime.rpc.server import GrpcServer
from atoll.wire.decision import encode_decision
from tests.services.dispatch.fake_agent import FakeAgent
from tests.services.dispatch.values import CLUSTER, EPOCH, spec, task

TENANT = Tenant("default")
QUEUE = QueueName("default")


class Stores(Protocol):
    """One store, by role."""

    @property
    def submission(self) -> SubmissionStore: ...
    @property
    def placement(self) -> PlacementStore: ...
    @property
    def dispatch(self) -> DispatchStore: ...


@dataclass(frozen=True)
class Outside:
    """What stands behind the ports."""

    stores: Stores
    stream: DecisionStream
    hints: Hints


@dataclass
class Running:
    """A replica that serves."""

    replica: Replica
    server: GrpcServer
    supervisor: Supervisor

    @property
    def address(self) -> str:
        """Where agents find it."""
        return self.server.address

    async def stop(self) -> None:
        """As SIGTERM does."""
        self.replica.send_away()
        await self.server.drain()
        await self.supervisor.close()

    async def kill(self) -> None:
        """As kill -9 does, as far as others can see: nothing is said."""
        await self.supervisor.close()
        await self.server.drain()


class World:
    """Everything around dispatch, with servers behind it or memory alone."""

    def __init__(
        self, stores: Stores, outside: Outside, *, replicas: Outside | None = None
    ) -> None:
        self.stores = stores
        self.stream = outside.stream
        self.hints = outside.hints
        self._replicas = replicas or outside
        self.exits = AsyncExitStack()
        self._fence: Fence | None = None

    async def replica(self, *, redis: bool = True, **settings: object) -> Running:
        """Start a replica, with Redis or without."""
        clock, ids = SystemClock(), SystemIds()
        told = DispatchSettings.model_validate({
            "listen": "127.0.0.1:0",
            "drain_s": 0.2,
            "lease_s": 3.0,
            **settings,
        })
        supervisor = Supervisor(clock, ids)
        replica = Replica(
            self._replicas.stores.dispatch,
            self._replicas.stream if redis else None,
            self._replicas.hints,
            settings=told,
            holder=lambda: server.address,
            clock=clock,
            ids=ids,
        )
        server = GrpcServer(
            told,
            {SERVICE: lambda s: add_AgentServiceServicer_to_server(replica.servicer, s)},
            clock=clock,
            ids=ids,
        )
        for name, loop in replica.loops().items():
            _ = supervisor.start(name, loop)
        await server.start()
        running = Running(replica, server, supervisor)
        self.exits.push_async_callback(running.kill)
        return running

    async def agent(
        self, running: Running, *, instance: str = "first", cluster: ClusterName = CLUSTER
    ) -> FakeAgent:
        """An agent that has not said anything yet."""
        agent = FakeAgent(running.address, cluster=cluster, instance=instance)
        self.exits.push_async_callback(agent.close)
        return agent

    async def nodes(self, cluster: ClusterName = CLUSTER) -> list[Node]:
        """Nodes of the cluster as the store has them."""
        return await self.stores.submission.nodes(cluster, after=("", ""), limit=1000)

    async def submit(
        self, count: int = 1, *, job: JobSpec | None = None, trace: str = ""
    ) -> list[Job]:
        """New jobs in the queue."""
        wanted = job or spec()
        async with self.stores.submission.begin() as tx:
            if not await tx.queues([QUEUE]):
                await tx.add_queue(Queue(QUEUE, TENANT))
            now = await tx.now()
            jobs = [
                Job(
                    id=number,
                    tenant=TENANT,
                    principal="someone",
                    queue=QUEUE,
                    name=wanted.name,
                    spec=wanted,
                    priority=0,
                    submitted_at=now,
                    trace=trace,
                )
                for number in await tx.next_job_ids(count)
            ]
            await tx.add_jobs(jobs)
        return jobs

    async def place(
        self, jobs: Iterable[Job], *, cluster: ClusterName = CLUSTER, publish: bool = True
    ) -> list[Decision]:
        """Commit a START for each job; publish it as the leader would."""
        nodes = await self.nodes(cluster)
        placements = tuple(_placement(job, cluster, nodes) for job in jobs)
        made = await commit_plan(
            self.stores.placement, await self._fenced(), Plan(placements), bind_timeout_s=30.0
        )
        done = made.committed
        self._fence = done.fence
        assert not done.dropped
        if publish:
            await self.publish(done.decisions)
        return list(done.decisions)

    async def run(self, count: int = 1, *, publish: bool = True) -> list[Decision]:
        """Submit and place jobs."""
        return await self.place(await self.submit(count), publish=publish)

    async def revoke(
        self, attempts: Iterable[AttemptId], cause: StopCause, *, publish: bool = True
    ) -> Revoked:
        """Take attempts back: VOID what was not sent, STOP for the rest."""
        done = await revoke(
            self.stores.placement, await self._fenced(), dict.fromkeys(attempts, cause)
        )
        self._fence = done.fence
        if publish:
            await self.publish(done.decisions)
        return done

    async def resize(self, change: Resize) -> None:
        """Change the size of a running attempt."""
        done = await commit_resizes(self.stores.placement, await self._fenced(), [change])
        self._fence = done.fence
        await self.publish(done.decisions)

    async def cancel(self, job: JobId) -> None:
        """Write the user's wish, as submission does for a job that has a live attempt."""
        async with self.stores.submission.begin() as tx:
            rows = await tx.lock_jobs([job])
            await tx.update_jobs([replace(rows[job], wish=JobWish.CANCEL)])

    async def publish(self, decisions: Iterable[Decision]) -> None:
        """Put decisions onto the stream."""
        await self.stream.publish([
            StreamEntry(d.cluster, d.number, encode_decision(d)) for d in decisions
        ])

    async def job(self, number: JobId) -> Job:
        """A job as it stands."""
        found = await self.stores.submission.get_job(TENANT, number)
        assert found is not None
        return found

    async def attempt(self, number: AttemptId) -> Attempt:
        """An attempt as it stands."""
        found = await self.stores.submission.get_attempt(number)
        assert found is not None
        return found

    async def cluster(self, name: ClusterName = CLUSTER) -> Cluster:
        """A cluster as it stands."""
        return next(c for c in await self.stores.submission.clusters() if c.name == name)

    async def events(self, since: Cursor) -> list[Event]:
        """What watches would show."""
        page = await self.stores.submission.events_after(since, tenant=TENANT)
        return list(page.events)

    async def allocations(self) -> list[Allocation]:
        """All live ones."""
        return await self.stores.placement.allocations(DEFAULT_SHARD)

    async def _fenced(self) -> Fence:
        if self._fence is None:
            self._fence = await self.stores.placement.take_over(DEFAULT_SHARD, EPOCH)
        return self._fence


def node(name: str = "node-1", *, cpu_milli: int = 1_000_000) -> NodeInventory:
    """A node with room for everything that tests run."""
    return NodeInventory(name=name, cpu_milli=cpu_milli, memory_bytes=1 << 40)


def _placement(job: Job, cluster: ClusterName, nodes: Sequence[Node]) -> GangPlacement:
    where = [nodes[rank % len(nodes)] for rank in range(job.spec.task_count)]
    tasks = tuple(
        task(rank, at.id)._replace(node_name=at.inventory.name) for rank, at in enumerate(where)
    )
    return GangPlacement(
        job=job.id,
        revision=job.revision,
        attempt=attempt_id(job.id, job.attempts + 1),
        cluster=cluster,
        queue=job.queue,
        request=request_of(job.spec),
        submitted_at=job.submitted_at,
        tasks=tasks,
        trace=job.trace,
    )
