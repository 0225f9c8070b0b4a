"""All roles at once, for a while; then everything must add up."""

import asyncio
import random
from collections import Counter
from dataclasses import replace

from atoll.core.model.ids import DEFAULT_SHARD, AttemptId, JobId, NodeId
from atoll.core.model.job import Job
from atoll.core.model.lifecycle import (
    TERMINAL_ATTEMPT,
    TERMINAL_JOB,
    AttemptEvent,
    AttemptState,
    JobState,
    JobWish,
)
from atoll.core.model.messages import ChangeKind
from atoll.ports.store.common import Change, Cursor, Fence
from atoll.ports.store.dispatch import Beat
from atoll.ports.store.placement import AttemptView, JobView, ShardDelta
from atoll.ports.store.submission import JobFilter
from tests.adapters.store_builders import (
    NORTH,
    QUEUE,
    TENANT,
    cluster_with,
    lead,
    node,
    node_ids,
    place,
    placement,
    report,
    submit,
)
from tests.adapters.store_worlds import Store, StoreWorld

ROUNDS = 12
BATCH = 8


class Mirror:
    """A follower that only ever learns by `catch_up`."""

    def __init__(self, delta: ShardDelta) -> None:
        self.cursor: Cursor = delta.cursor
        self.jobs: dict[JobId, JobView] = {}
        self.attempts: dict[AttemptId, AttemptView] = {}
        self.take(delta)

    def take(self, delta: ShardDelta) -> None:
        for job in delta.jobs:
            self.jobs[job.pending.id] = job
            if job.state in TERMINAL_JOB:
                del self.jobs[job.pending.id]
        for view in delta.attempts:
            self.attempts[view.attempt.id] = view
            if view.attempt.state in TERMINAL_ATTEMPT:
                del self.attempts[view.attempt.id]
        self.cursor = delta.cursor


async def test_everything_adds_up_when_all_roles_write_at_once(world: StoreWorld) -> None:
    store, follower = world.store, world.another()
    await cluster_with(store, node("n1", gpus=8))
    at = (await node_ids(store))["n1"]
    mirror = Mirror(await follower.placement.load(DEFAULT_SHARD))
    done = asyncio.Event()

    async def follow() -> None:
        while not done.is_set():
            mirror.take(await follower.placement.catch_up(DEFAULT_SHARD, mirror.cursor))
            await asyncio.sleep(0)

    following = asyncio.create_task(follow())
    async with asyncio.TaskGroup() as group:
        group.create_task(submitting(store, random.Random(1)))
        group.create_task(cancelling(store, random.Random(2)))
        group.create_task(placing(store, at))
        group.create_task(reporting(store, random.Random(3)))
        group.create_task(beating(store))
        group.create_task(keeping(store))
    done.set()
    await following
    mirror.take(await follower.placement.catch_up(DEFAULT_SHARD, mirror.cursor))
    await check(store, mirror)


async def submitting(store: Store, rng: random.Random) -> None:
    for _ in range(ROUNDS):
        await submit(store, rng.randint(1, BATCH))
        await asyncio.sleep(0)


async def cancelling(store: Store, rng: random.Random) -> None:
    for _ in range(ROUNDS):
        jobs = await store.submission.list_jobs(JobFilter(TENANT), before=None, limit=50)
        chosen = rng.sample(jobs, min(3, len(jobs)))
        async with store.submission.begin() as tx:
            rows = await tx.lock_jobs([job.id for job in chosen])
            changed = [cancelled(row) for row in rows.values() if row.state not in TERMINAL_JOB]
            await tx.update_jobs(changed)
            await tx.changed([Change(ChangeKind.JOBS, ids=tuple(job.id for job in changed))])
        await asyncio.sleep(0.002)


def cancelled(job: Job) -> Job:
    if job.attempt is None:
        return replace(job, state=JobState.CANCELLED, wish=JobWish.CANCEL, ended_at=2000.0)
    return replace(job, wish=JobWish.CANCEL)


async def placing(store: Store, at: NodeId) -> None:
    fence: Fence = await lead(store)
    queued = JobFilter(TENANT, states=frozenset({JobState.QUEUED}))
    for _ in range(ROUNDS * 2):
        jobs = await store.submission.list_jobs(queued, before=None, limit=BATCH)
        fence, _ = await place(store, fence, *(placement(job, at) for job in jobs))
        await asyncio.sleep(0.002)


async def reporting(store: Store, rng: random.Random) -> None:
    for _ in range(ROUNDS * 4):
        live = await store.placement.load(DEFAULT_SHARD)
        waiting = [v.attempt.id for v in live.attempts if v.attempt.state is AttemptState.ASSIGNED]
        for number in rng.sample(waiting, min(2, len(waiting))):
            event = rng.choice([AttemptEvent.FINISHED, AttemptEvent.REJECTED, AttemptEvent.STARTED])
            await report(store, number, event, exit_code=rng.choice([0, 1]))
        await asyncio.sleep(0)


async def beating(store: Store) -> None:
    for turn in range(ROUNDS):
        await store.dispatch.beat([Beat(NORTH, 1, 0, lease_s=30)])
        await store.dispatch.mark_sent([(NORTH, 1, turn)])
        await asyncio.sleep(0.003)


async def keeping(store: Store) -> None:
    for _ in range(ROUNDS):
        await store.upkeep.maintain()
        await asyncio.sleep(0.005)


async def check(store: Store, mirror: Mirror) -> None:
    truth = await store.placement.load(DEFAULT_SHARD)
    assert mirror.jobs == {view.pending.id: view for view in truth.jobs}
    # A cancelled job is told as a job; its attempt's own row did not change.
    followed = {number: view.attempt for number, view in mirror.attempts.items()}
    assert followed == {view.attempt.id: view.attempt for view in truth.attempts}
    # One live attempt for each job that is placed, with its allocation, and none else.
    placed = {view.attempt for view in truth.jobs if view.attempt is not None}
    assert placed == set(mirror.attempts)
    held = await store.placement.allocations(DEFAULT_SHARD)
    assert {row.attempt for row in held} == placed
    # Numbers are dense, and each START is another attempt's.
    [cluster] = await store.submission.clusters()
    decisions = await store.dispatch.decisions_after(NORTH, 0, limit=10_000)
    assert [d.number for d in decisions] == list(range(1, cluster.head_seq + 1))
    assert len({d.attempt for d in decisions}) == len(decisions)
    counts = await store.submission.queue_counts([QUEUE])
    assert counts[QUEUE] == Counter(view.state for view in truth.jobs)
