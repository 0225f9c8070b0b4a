"""Rows for tests of the store, and the ways in which services write them."""

from collections.abc import Sequence

from atoll.core.model.ids import (
    DEFAULT_SHARD,
    AttemptId,
    ClusterName,
    Epoch,
    JobId,
    NodeId,
    QueueName,
    Tenant,
    attempt_id,
)
from atoll.core.model.inventory import Device, NodeInventory
from atoll.core.model.job import Attempt, Job, SubmitRequest
from atoll.core.model.lifecycle import AttemptEvent, JobState
from atoll.core.model.messages import ChangeKind, Decision, DecisionKind, Event, Report
from atoll.core.model.outcome import apply_report
from atoll.core.model.plan import GangPlacement, TaskPlacement, request_of
from atoll.core.model.resources import DeviceGrant, TaskShape
from atoll.core.model.spec import JobSpec, TaskGroup
from atoll.ports.store.common import Allocation, Change, Fence
from atoll.ports.store.dispatch import InventoryDelta, SessionClaim, SessionRow
from atoll.ports.store.placement import PlacementTx
from tests.adapters.store_worlds import Store

TENANT = Tenant("t")
QUEUE = QueueName("default")
NORTH = ClusterName("north")
SOUTH = ClusterName("south")
EPOCH = Epoch(1, 10)


def spec(name: str = "train", **given: object) -> JobSpec:
    group = TaskGroup("main", 1, 1, shapes=(TaskShape(1000, 1 << 30),), run="true")
    fields: dict[str, object] = {"queue": QUEUE, "groups": (group,), **given}
    return JobSpec(name=name, **fields)  # type: ignore[arg-type]


def job(number: int, **given: object) -> Job:
    found = given.pop("spec", None) or spec()
    assert isinstance(found, JobSpec)
    fields: dict[str, object] = {
        "tenant": TENANT,
        "principal": "ann",
        "queue": QueueName(found.queue),
        "name": found.name,
        "priority": found.priority,
        "submitted_at": 1000.0,
        **given,
    }
    return Job(id=JobId(number), spec=found, **fields)  # type: ignore[arg-type]


async def submit(store: Store, count: int = 1, **given: object) -> list[Job]:
    """Jobs as submission writes them."""
    async with store.submission.begin() as tx:
        jobs = [job(number, **given) for number in await tx.next_job_ids(count)]
        await tx.add_jobs(jobs)
        await tx.add_events([submitted(each) for each in jobs])
        await tx.changed([Change(ChangeKind.JOBS, ids=tuple(each.id for each in jobs))])
    return jobs


def submitted(each: Job) -> Event:
    return Event(each.id, each.queue, event=None, state=each.state, at=each.submitted_at)


def request(key: str, jobs: Sequence[int] = (), body: bytes = b"body") -> SubmitRequest:
    return SubmitRequest(TENANT, key, body, tuple(JobId(number) for number in jobs))


def claim(name: ClusterName = NORTH, **given: object) -> SessionClaim:
    fields: dict[str, object] = {
        "instance": "one",
        "holder": "here:1",
        "backend": "simulated",
        "can_guard": True,
        "levels": ("rack",),
        "labels": (("zone", "a"),),
        "lease_s": 30.0,
        "applied_seq": 0,
        "last_report": 0,
        "fresh_journal": False,
        **given,
    }
    return SessionClaim(cluster=name, **fields)  # type: ignore[arg-type]


def node(name: str, *, gpus: int = 0, **given: object) -> NodeInventory:
    devices = tuple(Device(index, "H100", memory_bytes=80 << 30) for index in range(gpus))
    fields: dict[str, object] = {"cpu_milli": 64_000, "memory_bytes": 1 << 38, **given}
    return NodeInventory(name, devices=devices, **fields)  # type: ignore[arg-type]


async def cluster_with(
    store: Store, *nodes: NodeInventory, name: ClusterName = NORTH
) -> SessionRow:
    """A registered cluster with its first inventory."""
    row = await store.dispatch.open_session(claim(name))
    epoch = row.cluster.session_epoch
    assert await store.dispatch.put_inventory(
        InventoryDelta(name, epoch, 1, full=True, nodes=nodes)
    )
    return row


async def node_ids(store: Store) -> dict[str, NodeId]:
    rows = await store.submission.nodes("", after=("", ""), limit=1000)
    return {row.inventory.name: row.id for row in rows}


def placement(
    each: Job, at: NodeId, *, gpus: Sequence[int] = (), blocks: int = 100
) -> GangPlacement:
    grants = tuple(DeviceGrant(index, blocks=blocks) for index in gpus)
    task = TaskPlacement(
        0, 0, at, node_name="n", cpu_milli=1000, memory_bytes=1 << 30, devices=grants
    )
    return GangPlacement(
        job=each.id,
        revision=each.revision,
        attempt=attempt_id(each.id, each.attempts + 1),
        cluster=NORTH,
        queue=each.queue,
        request=request_of(each.spec),
        submitted_at=each.submitted_at,
        tasks=(task,),
    )


async def lead(store: Store, epoch: Epoch = EPOCH) -> Fence:
    return await store.placement.take_over(DEFAULT_SHARD, epoch)


async def place(store: Store, fence: Fence, *placements: GangPlacement) -> tuple[Fence, set[JobId]]:
    """Placements as the leader commits them."""
    async with store.placement.begin() as tx:
        after = await tx.require(fence)
        won = await write_placements(tx, placements)
    return after, won


async def write_placements(tx: PlacementTx, placements: Sequence[GangPlacement]) -> set[JobId]:
    head = (await tx.lock_clusters([NORTH]))[NORTH].head_seq
    won = await tx.place_jobs(placements)
    placed = [p for p in placements if p.job in won]
    attempts = [attempt(p, number) for number, p in enumerate(placed, head + 1)]
    await tx.add_attempts(attempts)
    await tx.add_allocations([row for each in attempts for row in allocations(each)])
    await tx.add_decisions([start(each) for each in attempts])
    await tx.add_events([placed_event(p) for p in placed])
    await tx.changed([
        Change(ChangeKind.JOBS, ids=tuple(p.job for p in placed)),
        Change(ChangeKind.ATTEMPTS, ids=tuple(each.id for each in attempts)),
    ])
    return won


def attempt(of: GangPlacement, number: int) -> Attempt:
    return Attempt(
        id=of.attempt,
        cluster=of.cluster,
        shard=DEFAULT_SHARD,
        epoch=EPOCH,
        number=number,
        tasks=of.tasks,
        created_at=1001.0,
        bind_by=1031.0,
    )


def allocations(of: Attempt) -> list[Allocation]:
    rows = []
    for task in of.tasks:
        rows.append(Allocation(of.id, task.rank, task.node, cpu_milli=1000, memory_bytes=1 << 30))
        rows += [Allocation(of.id, task.rank, task.node, device=g) for g in task.devices]
    return rows


def start(of: Attempt) -> Decision:
    return Decision(
        of.cluster, of.number, EPOCH, kind=DecisionKind.START, attempt=of.id, tasks=of.tasks,
        bind_by=of.bind_by,
    )  # fmt: skip


def placed_event(of: GangPlacement) -> Event:
    return Event(of.job, of.queue, event=None, state=JobState.ASSIGNED, at=1001.0, message="placed")


async def report(store: Store, number: AttemptId, event: AttemptEvent, **given: object) -> Report:
    """A report as dispatch applies it."""
    told = Report(NORTH, 1, number, event=event, at=0.0, **given)  # type: ignore[arg-type]
    async with store.dispatch.begin() as tx:
        jobs = await tx.lock_jobs([JobId(number >> 16)])
        attempts = await tx.lock_attempts([number])
        outcome = apply_report(
            jobs[JobId(number >> 16)], attempts[number], told, now=await tx.now()
        )
        assert outcome is not None
        await tx.update_jobs([outcome.job])
        await tx.update_attempts([outcome.attempt])
        if outcome.attempt.ended_at:
            await tx.end_allocations([number])
        if event is AttemptEvent.RESIZED:
            await tx.set_tasks([outcome.attempt])
        if event is AttemptEvent.REJECTED:
            await tx.note_rejections([told])
        await tx.changed([
            Change(ChangeKind.JOBS, ids=(outcome.job.id,)),
            Change(ChangeKind.ATTEMPTS, ids=(number,)),
        ])
    return told
