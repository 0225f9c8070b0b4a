"""Measures what wants cost a leader: `python -m tools.bench_burst_wants`; one JSON object last.

2,000 jobs of 40 classes wait behind a full cluster, 200 offers stand. `wants_ms` is all of it, in
slices. `turn_ms` is CPU time of the event loop, and with it what a cycle waits for, between two of
its turns: P99 and the longest of ten runs. Nothing is written, for that is the store's time.
"""

import asyncio
import json
import random
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from atoll.adapters.memory.clock import ManualClock
from atoll.adapters.memory.store import MemoryDatabase, MemoryStore
from atoll.core.model.burst import BurstPolicy
from atoll.core.model.ids import DEFAULT_SHARD, ClusterName, Epoch, QueueName, Tenant
from atoll.core.model.inventory import Device, NodeInventory
from atoll.core.model.job import Job
from atoll.core.model.messages import ChangeKind
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.model.spec import JobSpec, TaskGroup
from atoll.core.policies.registry import policies
from atoll.placement.looking_ahead import wanted
from atoll.placement.settings import PlacementSettings
from atoll.placement.usecases.foresight import foresee
from atoll.placement.usecases.leader import Leader
from atoll.placement.usecases.recovery import begin_term
from atoll.ports.store.common import Change
from atoll.ports.store.dispatch import InventoryDelta, SessionClaim
from tools.bench_burst import OFFERS, offered

JOBS: Final = 2_000
QUEUES: Final = 10
SIZES: Final = (1, 2, 4, 8)
RUNS: Final = 10
IDLE_MS: Final = 0.1
HERE: Final = ClusterName("here")
GIB: Final = 1 << 30


def main() -> None:
    """Measure, and print."""
    print(json.dumps(asyncio.run(_measured())))


async def _measured() -> dict[str, Any]:
    leader = await _leader()
    await leader.catch_up()
    await leader.schedule()
    await foresee(leader)
    found = await wanted(leader)  # the first one makes what is kept
    took_ms, turns_ms = [], []
    for _ in range(RUNS):
        begun = time.perf_counter()
        async with _turns() as spent_ms:
            found = await wanted(leader)
        took_ms.append(1000 * (time.perf_counter() - begun))
        turns_ms += spent_ms
    assert found is not None
    return {
        "wants": len(found),
        "wants_ms": round(statistics.median(took_ms), 1),
        "turn_ms_p99": round(statistics.quantiles(turns_ms, n=100)[98], 2),
        "turn_ms_longest": round(max(turns_ms), 2),
        "turns": len(turns_ms),
    }


@asynccontextmanager
async def _turns() -> AsyncIterator[list[float]]:
    """CPU time between two turns of the event loop, of those in which anything was done."""
    spent: list[float] = []

    async def look() -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            spent.append(1000 * (time.thread_time() - before))

    looking = asyncio.create_task(look())
    try:
        yield spent
    finally:
        looking.cancel()
        spent[:] = [each for each in spent if each > IDLE_MS]


async def _leader() -> Leader:
    """Of a shard in memory."""
    clock = ManualClock()
    store = MemoryStore(MemoryDatabase(), clock)
    await _fill(store)
    rules = PlacementSettings.model_validate({}).rules
    return await begin_term(
        store.placement, clock, Epoch(0, 1), shard=DEFAULT_SHARD, rules=rules, policies=policies()
    )


async def _fill(store: MemoryStore) -> None:
    row = await store.dispatch.open_session(_claim())
    devices = tuple(Device(index, "H100", 80 * GIB) for index in range(8))
    node = NodeInventory("n", 128_000, 1024 * GIB, devices)
    delta = InventoryDelta(HERE, row.cluster.session_epoch, 1, full=True, nodes=(node,))
    assert await store.dispatch.put_inventory(delta)
    async with store.burst.begin() as tx:
        await tx.put_policy(BurstPolicy(None, allowed=True))
        rng = random.Random(0)
        await tx.put_offers("cloud", [offered(number, rng) for number in range(OFFERS)])
    async with store.submission.begin() as tx:
        jobs = [_job(number, 1.0) for number in await tx.next_job_ids(JOBS)]
        await tx.add_jobs(jobs)
        await tx.changed([Change(ChangeKind.JOBS, ids=tuple(job.id for job in jobs))])


def _claim() -> SessionClaim:
    return SessionClaim(
        HERE, "one", "here:1", backend="simulated", can_guard=True, levels=(), labels=(),
        lease_s=1e9, applied_seq=0, last_report=0, fresh_journal=False,
    )  # fmt: skip


def _job(number: Any, now: float) -> Job:
    size = SIZES[number % len(SIZES)]
    queue = QueueName(f"org.team-{number % QUEUES}")
    shape = TaskShape(1000 * size, size * GIB, DeviceRequest("H100", size))
    spec = JobSpec("bench", queue, (TaskGroup("main", 1, 1, shapes=(shape,), run="true"),))
    return Job(number, Tenant("t"), "bench", queue, "bench", spec, priority=0, submitted_at=now)


if __name__ == "__main__":
    main()
