"""What goes on in clusters, as the broker sees it, in memory."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Final

from atoll.adapters.memory.store_events import cursor_at
from atoll.adapters.memory.store_rows import MemoryDatabase, Tables
from atoll.adapters.memory.store_views import changed_since
from atoll.core.model.burst import NO_CLUSTER
from atoll.core.model.burst_demand import cores_of, demand_of
from atoll.core.model.ids import AttemptId, ClusterName, JobId, job_of
from atoll.core.model.inventory import Node
from atoll.core.model.job import Job
from atoll.core.model.lifecycle import TERMINAL_ATTEMPT, TERMINAL_JOB, JobState
from atoll.core.model.messages import ChangeKind
from atoll.core.model.plan import request_of
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.ports.store.burst import Capacity, InstanceUse
from atoll.ports.store.common import Cursor
from atoll.ports.store.demand import ChangedDemand, DemandRow, NodeParts

IN_LINE: Final = frozenset({JobState.QUEUED, JobState.HELD})


def use_of(tables: Tables, name: ClusterName) -> InstanceUse:
    """What goes on in a rented cluster."""
    cluster = tables.clusters[name]
    there = any(n.cluster == name and n.present for n in tables.nodes.values())
    live = (a for a in tables.attempts.values() if a.state not in TERMINAL_ATTEMPT)
    return InstanceUse(
        name,
        joined=bool(cluster.agent_instance) and cluster.inventory_number > 0 and there,
        live_attempts=sum(a.cluster == name for a in live),
        held=sum(each.cluster == name for _, each in tables.nominations.values()),
    )


def capacities(tables: Tables) -> list[Capacity]:
    """By cluster and kind, of nodes that take work."""
    rented = {row.instance.cluster for row in tables.burst.instances.values()}
    found: Counter[tuple[ClusterName, str]] = Counter()
    for node in tables.nodes.values():
        if node.schedulable and tables.clusters[node.cluster].schedulable:
            for kind in _kinds(node):
                found[node.cluster, kind] += 1
    return [
        Capacity(cluster, kind, devices, rented=cluster in rented)
        for (cluster, kind), devices in sorted(found.items())
    ]


async def demand_pages(
    database: MemoryDatabase, *, since: float, page: int
) -> AsyncIterator[list[DemandRow]]:
    """Jobs that are not ended, by shard and number; then those that ended after `since`."""
    tables = database.tables
    live = sorted((tables.jobs[number] for number in database.live_jobs), key=_place)
    for at in range(0, len(live), page):
        yield [_row(tables, job) for job in live[at : at + page]]
    over = (job for job in tables.jobs.values() if job.state in TERMINAL_JOB)
    ended = sorted((job for job in over if job.ended_at > since), key=_end)
    for at in range(0, len(ended), page):
        yield [_row(tables, job) for job in ended[at : at + page]]


def changed_demand(database: MemoryDatabase, cursor: Cursor) -> ChangedDemand:
    """Jobs that were written since; raises CURSOR_EXPIRED."""
    keys = changed_since(database, cursor)
    jobs = {JobId(int(key)) for key in keys[ChangeKind.JOBS]}
    jobs |= {job_of(AttemptId(int(key))) for key in keys[ChangeKind.ATTEMPTS]}
    return ChangedDemand(cursor_at(database, database.seq), tuple(sorted(jobs)))


def demand_of_jobs(tables: Tables, jobs: Iterable[JobId]) -> list[DemandRow]:
    """Jobs as they are, by number; those that do not exist are left out."""
    found = (tables.jobs.get(number) for number in sorted(set(jobs)))
    return [_row(tables, job) for job in found if job is not None]


def cores(tables: Tables) -> float:
    """Processors of all nodes that take work and are not rented."""
    rented = {row.instance.cluster for row in tables.burst.instances.values()}
    ours = (n for n in tables.nodes.values() if n.schedulable and n.cluster not in rented)
    taking = (n for n in ours if tables.clusters[n.cluster].schedulable)
    return sum(node.inventory.cpu_milli for node in taking) / 1000


def parts_of(node: Node) -> NodeParts:
    """What a node has."""
    devices = {each.index: each.kind if each.healthy else "" for each in node.inventory.devices}
    kinds = (devices.get(at, "") for at in range(max(devices, default=-1) + 1))
    return NodeParts(tuple(kinds), node.inventory.cpu_milli / 1000)


def _place(job: Job) -> tuple[int, int]:
    return job.shard, job.id


def _end(job: Job) -> tuple[float, int]:
    return job.ended_at, job.id


def _kinds(node: Node) -> Iterator[str]:
    """Of each healthy device; of a node without devices one that is empty."""
    if not node.inventory.devices:
        yield ""
    yield from (device.kind for device in node.inventory.devices if device.healthy)


def _row(tables: Tables, job: Job) -> DemandRow:
    request = request_of(job.spec)
    kind, devices = _held(tables, job) or demand_of(request)
    # One that is back in the queue does not run any more, and need not wait for others again.
    first = not job.started_at and job.state not in TERMINAL_JOB
    waits = job.state is JobState.HELD or (first and bool(job.spec.depends_on))
    return DemandRow(
        job.id,
        job.queue,
        kind,
        devices,
        submitted_at=job.submitted_at,
        started_at=0.0 if job.state in IN_LINE else job.started_at,
        ended_at=job.ended_at,
        limit_s=request.terms.time_limit_s,
        waits=waits,
        cluster=job.cluster or NO_CLUSTER,
        after=job.spec.depends_on,
        begin_at=job.spec.begin_at,
        cores=cores_of(request),
    )


def _held(tables: Tables, job: Job) -> tuple[str, float] | None:
    """Kind and devices of what it runs on, the kind it holds most of."""
    rows = tables.allocations.get(job.attempt, ()) if job.attempt is not None else ()
    blocks: Counter[str] = Counter()
    for row in rows:
        if row.device is not None:
            node = tables.nodes[row.node].inventory
            kinds = {device.index: device.kind for device in node.devices}
            share = row.device.blocks or BLOCKS_PER_DEVICE * row.device.slice_mask.bit_count() // 8
            blocks[kinds.get(row.device.index, "")] += share
    held = blocks.most_common(1)
    return (held[0][0], held[0][1] / BLOCKS_PER_DEVICE) if held else None
