"""Memory of a million queued jobs, beside what their submitters sent."""

import gc
import tracemalloc

from atoll.core.model.ids import JobId, QueueName
from atoll.core.model.plan import PendingJob
from atoll.core.state.world import World
from tools.bench_core_shapes import kinds

JOBS = 1_000_000
BATCH = 1000
"""Jobs of one call: those have one trace."""


def queue_bytes_per_job(jobs: int = JOBS) -> float:
    """Bytes that a world takes for each queued job; requests are shared, as classes share them."""
    world, requests, queue = World(), [kind.request for kind in kinds()], QueueName("bench")
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for first in range(1, jobs + 1, BATCH):
        trace = f"00-{first:032x}-{first:016x}-01"
        world.upsert_pending([
            PendingJob(
                JobId(job),
                1,
                queue,
                0,
                submitted_at=1.7e9 + job * 0.01,
                request=requests[job % len(requests)],
                trace=trace,
            )
            for job in range(first, min(first + BATCH, jobs + 1))
        ])
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return round((after - before) / world.pending_count, 1)
