"""What a leader writes down for the broker: who wants capacity, in order, when it has changed."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest

from atoll.core.engine.choice.wanting import NO_HOPE, Hope
from atoll.core.model.burst import Market, Offer
from atoll.core.model.burst_wants import Ask, Want
from atoll.core.model.job import Job
from atoll.core.model.plan import PendingJob
from atoll.core.model.rounding import round_limit
from atoll.core.model.spec import Checkpoint, JobSpec
from atoll.placement.looking_ahead import told_wants, wanted
from atoll.placement.usecases.foresight import foresee
from atoll.placement.usecases.leader import Leader
from atoll.ports.topics import BURST
from tests.adapters.burst_builders import set_policy
from tests.services.placement.shard import Shard, cycle, one_gpu

HOUR = round_limit(3600.0)
OFFER = Offer(
    "cloud", "eu-1a", "eu-1", "gpu8", Market.SPOT, 64_000, 1 << 38, "H100", 8, price=8_000_000
)  # fmt: skip


class Told:
    """Hints that are remembered."""

    def __init__(self) -> None:
        self.topics: list[str] = []

    async def notify(self, topic: str) -> None:
        self.topics.append(topic)

    def subscribe(self, *topics: str) -> AsyncIterator[str]:
        raise NotImplementedError


def whole(**given: object) -> JobSpec:
    return replace(one_gpu(gpus=8), **{"time_limit_s": 3600.0, **given})  # type: ignore[arg-type]


async def led(*offers: Offer, **policy: object) -> tuple[Shard, Leader]:
    """One full node; everybody may rent, if anything is on offer."""
    shard = Shard()
    await set_policy(shard.store, None, **policy)
    async with shard.store.burst.begin() as tx:
        await tx.put_offers("cloud", offers)
    await shard.cluster(nodes=1)
    leader = await shard.lead()
    await shard.submit(whole())
    await cycle(leader)
    return shard, leader


async def seen(shard: Shard, leader: Leader, *specs: JobSpec) -> list[Job]:
    jobs = await shard.submit(*specs)
    await cycle(leader)
    await foresee(leader)
    return jobs


async def tell_wants(leader: Leader, hints: Told | None = None) -> bool:
    """As the loop does it; whether anything was written."""
    found = await wanted(leader)
    if found is not None:
        async with leader.lock:
            await told_wants(leader, found, hints or Told())
    return found is not None


async def wants(shard: Shard) -> Sequence[Want]:
    return await shard.store.burst.wants()


async def test_queued_jobs_are_wanted_for_in_the_order_of_the_queue() -> None:
    shard, leader = await led(OFFER)
    now = shard.clock.now()
    low, kept, urgent = await seen(
        shard,
        leader,
        whole(priority=-5),
        whole(checkpoint=Checkpoint(interval_s=600.0), restart_cost_s=30.0, burst_max_cost=7),
        whole(time_limit_s=7200.0, deadline_at=now + 9 * HOUR, preemptible=False),
    )
    assert await tell_wants(leader)
    found = await wants(shard)
    assert [want.job for want in found] == [urgent.id, kept.id, low.id]
    two, one, _ = found
    assert one.asks == (Ask("H100", 800, 1000, 1 << 30),)
    assert (one.max_cost, one.preemptible, one.cluster) == (7, True, "north")
    assert one.overhead_s == pytest.approx(30.0 + 300.0)
    assert (two.deadline_at, two.preemptible) == (now + 9 * HOUR, False)
    assert now < one.local_p50_at <= one.local_p90_at
    assert one.local_p50_at > two.local_p50_at
    assert 0 < one.work_s <= one.limit_s == HOUR


async def test_only_what_changed_is_written_again() -> None:
    shard, leader = await led(OFFER)
    await seen(shard, leader, whole(), whole())
    hints = Told()
    await tell_wants(leader, hints)
    assert hints.topics == [BURST]
    await shard.clock.advance(20.0)
    await foresee(leader)
    before = leader.fence
    await tell_wants(leader, hints)
    assert (hints.topics, leader.fence) == ([BURST], before)
    (job,) = await seen(shard, leader, whole())
    await tell_wants(leader, hints)
    assert job.id in [want.job for want in await wants(shard)]
    leader.memory.world.remove_pending([job.id])
    await tell_wants(leader, hints)
    assert job.id not in [want.job for want in await wants(shard)]
    assert hints.topics == [BURST] * 3


@pytest.mark.parametrize(
    "spec",
    [
        whole(burst=False),
        one_gpu(gpus=8, tasks=2),
        one_gpu(gpus=0, reservation="mine"),
    ],
    ids=["does not want to", "needs two machines", "runs in a booking"],
)
async def test_who_cannot_use_a_rented_machine_wants_none(spec: JobSpec) -> None:
    shard, leader = await led(OFFER)
    await seen(shard, leader, spec, whole())
    assert await tell_wants(leader)
    assert len(await wants(shard)) == 1


@pytest.mark.parametrize("offers", [[OFFER], []])
async def test_nothing_is_wanted_where_nothing_may_be_had(offers: list[Offer]) -> None:
    shard, leader = await led(*offers, regions=("us-1",))
    await seen(shard, leader, whole())
    assert await tell_wants(leader) is bool(offers)
    assert await wants(shard) == []


async def test_a_mistake_here_ends_no_term(monkeypatch: pytest.MonkeyPatch) -> None:
    _, leader = await led(OFFER)
    monkeypatch.setattr("atoll.placement.usecases.wants._in_order", lambda *_: 1 / 0)
    assert await wanted(leader) is None


async def test_a_cycle_waits_for_no_more_than_a_few_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    shard, leader = await led(OFFER)
    jobs = await seen(shard, leader, *(whole() for _ in range(10)))
    looked_at: list[int] = []
    gone: list[int] = []

    def hope(leader: Leader, pending: PendingJob, *, now: float) -> Hope:
        looked_at.append(pending.id)
        return NO_HOPE

    async def cycles() -> None:
        """Take the lock whenever it is free; one of those who wait is gone after the first look."""
        while True:
            async with leader.lock:
                if looked_at and not gone:
                    gone.append(jobs[-1].id)
                    leader.memory.world.remove_pending([jobs[-1].id])
            turns.append(len(looked_at))
            await asyncio.sleep(0)

    turns: list[int] = []
    monkeypatch.setattr("atoll.placement.usecases.wants._hope", hope)
    monkeypatch.setattr("atoll.placement.usecases.wants.SLICE", 2)
    others = asyncio.create_task(cycles())
    found = await wanted(leader)
    others.cancel()
    assert found is not None
    assert [want.job for want in found] == [job.id for job in jobs[:-1]]
    assert set(turns) >= {2, 4, 6, 8}
