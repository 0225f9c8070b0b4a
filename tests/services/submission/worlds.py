"""The submission service over a store, and hands that do what clusters and placement would."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

import grpc
import pytest

from atoll.adapters.memory.streams import MemoryHints
from atoll.adapters.system import SystemClock, SystemIds
from atoll.api.common.v1 import common_pb2 as common
from atoll.api.submission.v1 import submission_pb2 as api
from atoll.api.submission.v1 import submission_pb2_grpc as api_grpc
from atoll.core.model.deadline import Verdict
from atoll.core.model.errors import DomainError, ErrorCode, Unavailable
from atoll.core.model.ids import (
    DEFAULT_SHARD,
    AttemptId,
    ClusterName,
    Epoch,
    JobId,
    ShardId,
    Tenant,
    attempt_id,
)
from atoll.core.model.inventory import Device, NodeInventory
from atoll.core.model.job import Job
from atoll.core.model.plan import GangPlacement, Plan, TaskPlacement, request_of
from atoll.core.model.priority import DEFAULT_CLASSES, PriorityClass
from atoll.core.model.resources import DeviceGrant
from atoll.core.model.spec import JobSpec
from atoll.placement.usecases.commit_plan import commit_plan
from atoll.ports.store.common import Fence
from atoll.ports.store.dispatch import DispatchStore, InventoryDelta, SessionClaim
from atoll.ports.store.placement import PlacementStore
from atoll.ports.store.submission import SubmissionStore
from atoll.runtime.loops import Supervisor
from atoll.runtime.rpc.channel import channel
from atoll.runtime.rpc.server import GrpcServer
from atoll.runtime.settings import ServiceSettings
from atoll.submission.usecases.logs import LogChunk, LogRead
from atoll.submission.wiring import Submission
from atoll.wire.errors import error_of_call

TENANT = Tenant("default")
GIB = 1 << 30
_uuids = count(1)


class Stores(Protocol):
    """One store, by role."""

    @property
    def submission(self) -> SubmissionStore: ...
    @property
    def placement(self) -> PlacementStore: ...
    @property
    def dispatch(self) -> DispatchStore: ...


class FakeLogs:
    """A LogSource with what a test puts into it."""

    def __init__(self) -> None:
        self.chunks: list[LogChunk] = []
        self.errors: dict[str, DomainError] = {}
        """By holder: what it answers instead."""
        self.asked: list[tuple[str, LogRead]] = []

    async def read(self, holder: str, wanted: LogRead) -> AsyncIterator[LogChunk]:
        self.asked.append((holder, wanted))
        if holder in self.errors:
            raise self.errors[holder]
        for chunk in self.chunks:
            yield chunk


@dataclass
class Caller:
    """The API as one principal of one tenant calls it."""

    stub: Any
    metadata: tuple[tuple[str, str], ...] = ()

    def __getattr__(self, method: str) -> Any:
        call = getattr(self.stub, method)
        return lambda request, **more: call(request, metadata=self.metadata, **more)

    async def submit(self, *specs: common.JobSpec, key: str = "", **more: Any) -> list[int]:
        """Ids of submitted jobs."""
        request = api.SubmitJobsRequest(jobs=specs, request_id=key, **more)
        return list((await self.SubmitJobs(request)).job_ids)

    async def job(self, number: int) -> api.Job:
        """One job."""
        answer: api.GetJobResponse = await self.GetJob(api.GetJobRequest(job_id=number))
        return answer.job


@dataclass
class FakeDesk:
    """A placement leader that gives the next of its answers to each job; None: it is away."""

    given: list[Verdict] | None = None
    asked: list[tuple[JobSpec, bool, bool]] = field(default_factory=list)
    """(spec, whether it waits, whether it is to be kept)."""

    async def answers(
        self, shard: ShardId, specs: Sequence[JobSpec], *, waits: Sequence[bool], keep: bool
    ) -> list[Verdict]:
        if self.given is None:
            raise Unavailable("it is away", code=ErrorCode.NOT_LEADER)
        self.asked += [(spec, wait, keep) for spec, wait in zip(specs, waits, strict=True)]
        return [self.given.pop(0) for _ in specs]


class World:
    """The service, its store, and everything that a test may do to both."""

    def __init__(
        self,
        stores: Stores,
        *,
        max_queued_jobs: int = 1_000_000,
        classes: Sequence[PriorityClass] = DEFAULT_CLASSES,
    ) -> None:
        self.stores = stores
        self.hints = MemoryHints()
        self.logs = FakeLogs()
        self.desk = FakeDesk()
        self.exits = AsyncExitStack()
        self.clock, self.ids = SystemClock(), SystemIds()
        self.service = Submission(
            stores.submission,
            hints=self.hints,
            source=self.logs,
            desk=self.desk,
            clock=self.clock,
            ids=self.ids,
            max_queued_jobs=max_queued_jobs,
            classes=classes,
        )
        self.settings = ServiceSettings(drain_s=0)
        self.server = GrpcServer(
            self.settings, self.service.services(), clock=self.clock, ids=self.ids
        )
        self._fence: Fence | None = None

    async def start(self) -> None:
        """Serve."""
        supervisor = Supervisor(self.clock, self.ids)
        _ = supervisor.start("event hints", self.service.wake.run)
        self.exits.push_async_callback(supervisor.close)
        await self.server.start()
        self.exits.push_async_callback(self.server.drain)
        self.exits.callback(self.service.wake.stop)
        self._channel = channel(self.server.address, self.settings)
        self.exits.push_async_callback(self._channel.close)

    def caller(self, principal: str = "ann", tenant: str = TENANT) -> Caller:
        """Somebody who calls."""
        stub = api_grpc.SubmissionServiceStub(self._channel)
        return Caller(stub, (("x-atoll-principal", principal), ("x-atoll-tenant", tenant)))

    async def add_cluster(
        self, name: str, *nodes: NodeInventory, can_guard: bool = False, holder: str = "dispatch:1"
    ) -> None:
        """A cluster whose agent has said what it has."""
        cluster = ClusterName(name)
        claim = SessionClaim(
            cluster=cluster,
            instance="first",
            holder=holder,
            backend="simulated",
            can_guard=can_guard,
            levels=(),
            labels=(),
            lease_s=60.0,
            applied_seq=0,
            last_report=0,
            fresh_journal=True,
        )
        opened = await self.stores.dispatch.open_session(claim)
        epoch = opened.cluster.session_epoch
        delta = InventoryDelta(cluster, epoch, number=1, full=True, nodes=nodes)
        assert await self.stores.dispatch.put_inventory(delta)

    async def place(self, number: int, cluster: str, *, grant: DeviceGrant | None = None) -> int:
        """What the leader does with a job; the attempt."""
        job = await self.stored(number)
        nodes = await self.stores.submission.nodes(cluster, after=("", ""), limit=10)
        task = TaskPlacement(
            group=0,
            rank=0,
            node=nodes[0].id,
            node_name=nodes[0].inventory.name,
            cpu_milli=1_000,
            memory_bytes=GIB,
            devices=(grant,) if grant else (),
        )
        placement = GangPlacement(
            job=job.id,
            revision=job.revision,
            attempt=attempt_id(job.id, job.attempts + 1),
            cluster=ClusterName(cluster),
            queue=job.queue,
            request=request_of(job.spec),
            submitted_at=job.submitted_at,
            tasks=(task,),
        )
        made = await commit_plan(
            self.stores.placement, await self._fenced(), Plan((placement,)), bind_timeout_s=60.0
        )
        done = made.committed
        self._fence = done.fence
        assert not done.dropped
        return placement.attempt

    async def stored(self, number: int) -> Job:
        """A job as the store has it."""
        found = await self.stores.submission.get_job(TENANT, JobId(number))
        assert found is not None
        return found

    async def close(self) -> None:
        """Stop serving."""
        await self.exits.aclose()
        await self.service.close()

    async def _fenced(self) -> Fence:
        if self._fence is None:
            self._fence = await self.stores.placement.take_over(DEFAULT_SHARD, Epoch(1, 1))
        return self._fence


def spec(name: str = "train", *, cpu_milli: int = 1_000, **fields: Any) -> common.JobSpec:
    """A small job."""
    group = common.TaskGroup(name="main", count=1, run="true")
    group.shapes.add(cpu_milli=cpu_milli, memory_bytes=GIB)
    made = common.JobSpec(name=name, groups=[group])
    made.MergeFrom(common.JobSpec(**fields))
    return made


def gpu_spec(name: str = "train", *, min_count: int = 1, **device: Any) -> common.JobSpec:
    """A job of one group with accelerators."""
    made = spec(name)
    made.groups[0].count = made.groups[0].min_count = min_count
    made.groups[0].shapes[0].device.MergeFrom(common.DeviceRequest(**device))
    return made


def node(name: str = "n1", *, gpus: int = 0, cpu_milli: int = 64_000) -> NodeInventory:
    """A node with some H100."""
    devices = tuple(Device(i, "H100", 80 * GIB, uuid=f"GPU-{name}-{i}") for i in range(gpus))
    return NodeInventory(name=name, cpu_milli=cpu_milli, memory_bytes=512 * GIB, devices=devices)


def uuid() -> str:
    """Another UUID each time."""
    return f"00000000-0000-4000-8000-{next(_uuids):012d}"


async def refusal(call: Any) -> DomainError:
    """What a call is refused with."""
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    error = raised.value
    trailers = tuple(error.trailing_metadata() or ())
    found = error_of_call(error.code().value[0], error.details() or "", trailers)
    assert found is not None, error
    return found


def attempt_of(number: int) -> AttemptId:
    """The first attempt of a job."""
    return attempt_id(JobId(number), 1)


def names(rows: Sequence[Any]) -> list[str]:
    """Names of queues and the like."""
    return [row.name for row in rows]
