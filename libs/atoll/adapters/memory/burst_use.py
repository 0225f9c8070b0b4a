"""What goes on in clusters, as the broker sees it, in memory."""

from collections import Counter
from collections.abc import Iterator

from atoll.adapters.memory.store_rows import Tables
from atoll.core.model.burst import NO_CLUSTER
from atoll.core.model.burst_demand import demand_of
from atoll.core.model.ids import ClusterName
from atoll.core.model.inventory import Node
from atoll.core.model.job import Job
from atoll.core.model.lifecycle import TERMINAL_ATTEMPT, TERMINAL_JOB, JobState
from atoll.core.model.plan import request_of
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.ports.store.burst import Capacity, DemandRow, InstanceUse


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


def demand(tables: Tables, *, since: float, now: float) -> list[DemandRow]:
    """Jobs that are not ended, or ended after `since`, by number."""
    jobs = (job for _, job in sorted(tables.jobs.items()))
    return [
        _row(tables, job, now)
        for job in jobs
        if job.state not in TERMINAL_JOB or job.ended_at > since
    ]


def _kinds(node: Node) -> Iterator[str]:
    """Of each healthy device; of a node without devices one that is empty."""
    if not node.inventory.devices:
        yield ""
    yield from (device.kind for device in node.inventory.devices if device.healthy)


def _row(tables: Tables, job: Job, now: float) -> DemandRow:
    request = request_of(job.spec)
    kind, devices = _held(tables, job) or demand_of(request)
    waiting = not job.started_at and job.state not in TERMINAL_JOB
    later = bool(job.spec.depends_on) or job.spec.begin_at > now or job.state is JobState.HELD
    return DemandRow(
        job.id,
        job.queue,
        kind,
        devices,
        submitted_at=job.submitted_at,
        started_at=job.started_at,
        ended_at=job.ended_at,
        limit_s=request.terms.time_limit_s,
        waits=waiting and later,
        cluster=job.cluster or NO_CLUSTER,
        after=job.spec.depends_on,
        begin_at=job.spec.begin_at,
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
