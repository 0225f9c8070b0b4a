"""Where a job could run, as a leader tells it of queued jobs and of those not submitted yet."""

from dataclasses import replace

import pytest

from atoll.core.model.booking import Owners
from atoll.core.model.burst import Offer
from atoll.core.model.ids import ClusterName, Tenant
from atoll.core.model.spec import JobSpec
from atoll.placement import answers
from atoll.placement.usecases.explain import explain_job
from atoll.placement.usecases.foresight import foresee
from atoll.placement.usecases.leader import Leader
from atoll.placement.usecases.questions import list_waits, plan_job
from tests.adapters.burst_builders import offer, set_policy
from tests.adapters.store_builders import NORTH
from tests.services.placement.shard import Shard, cycle, one_gpu
from tests.services.placement.test_bookings import book
from tests.services.placement.test_rentals import full, join, rented_for

SOUTH = ClusterName("south")
TENANT = Tenant("default")


def whole(**given: object) -> JobSpec:
    return replace(one_gpu(gpus=8), **{"time_limit_s": 3600.0, **given})  # type: ignore[arg-type]


async def led(*offers: Offer) -> tuple[Shard, Leader]:
    """Two clusters of one node."""
    shard = Shard()
    await set_policy(shard.store, None, regions=("eu-1",))
    async with shard.store.burst.begin() as tx:
        await tx.put_offers("cloud", offers)
    for name in (NORTH, SOUTH):
        await shard.cluster(name, nodes=1)
    leader = await shard.lead()
    await cycle(leader)
    return shard, leader


async def test_a_queued_job_is_told_a_start_in_each_cluster_and_what_it_could_rent() -> None:
    abroad = offer(zone="us-1a", region="us-1", devices=8)
    shard, leader = await led(offer(devices=8, lead_s=360.0), abroad)
    await shard.submit(whole(), whole(time_limit_s=7200.0))
    await cycle(leader)
    (job,) = await shard.submit(whole())
    await cycle(leader)
    await foresee(leader)
    told = await explain_job(leader, job.id)
    eta = list_waits(leader, [job.id])[0].eta
    each = {candidate.offer or candidate.cluster: candidate for candidate in told.candidates}
    assert eta is not None
    assert each[NORTH].start_at < each[SOUTH].start_at
    assert min(each[NORTH].start_at, each[SOUTH].start_at) == pytest.approx(eta.p50_at)
    here = next(c for c in each.values() if c.offer and "eu-1a" in c.offer)
    assert here.why == "on spot in 6 min at $3.00/h, allowed by queue policy"
    assert not told.candidates[-1].allowed
    assert "allows regions eu-1, not us-1" in told.candidates[-1].why
    proto = answers.explained(told).candidates[0]
    assert (proto.total, proto.allowed) == (proto.delay_cost + proto.price, True)


async def test_a_plan_tells_all_clusters_the_one_that_would_be_taken_first() -> None:
    shard, leader = await led()
    found = await plan_job(leader, whole(), TENANT)
    assert [c.why for c in found.candidates] == ["local now"] * 2
    assert found.candidates[0].cluster == found.trial.cluster
    await shard.submit(whole())
    await cycle(leader)
    first, later = answers.planned(await plan_job(leader, whole(), TENANT)).candidates
    assert (first.why, later.start_at > first.start_at) == ("local now", True)
    await shard.submit(whole())
    await cycle(leader)
    waits = await plan_job(leader, whole(), TENANT)
    assert waits.eta is not None
    assert min(c.start_at for c in waits.candidates) == waits.eta.p50_at
    assert (await plan_job(leader, one_gpu(gpus=9), TENANT)).candidates == ()


async def test_a_job_for_which_a_machine_boots_is_told_so_until_it_has_come() -> None:
    shard, leader, _ = await full()
    (job,) = await shard.submit(one_gpu(gpus=2))
    made = await rented_for(shard, job)
    await cycle(leader)
    told = await explain_job(leader, job.id)
    (held,) = [c for c in told.candidates if c.cluster == made.cluster]
    assert held.why.startswith(f"held on {made.cluster}, which boots: starts in about 5 min")
    assert told.eta is not None
    assert (told.eta.cluster, told.eta.p50_at) == (made.cluster, held.start_at)
    assert held.why == told.eta.cause
    await join(shard, made.cluster)
    await cycle(leader)
    assert not (await explain_job(leader, job.id)).candidates


async def test_a_plan_knows_bookings_for_its_caller() -> None:
    shard, leader = await led()
    for name in (SOUTH,):
        leader.memory.world.set_clusters([replace(leader.memory.clusters[name], cordoned=True)])
    await book(shard, "exam", shard.clock.now(), owners=Owners(users=("alice",)), lend=False)
    await cycle(leader)
    mine = await plan_job(leader, whole(), TENANT, user="alice")
    other = await plan_job(leader, whole(), TENANT, user="bob")
    assert (mine.trial.cluster, other.trial.cluster) == (NORTH, None)
