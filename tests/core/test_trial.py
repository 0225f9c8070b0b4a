"""Dry runs: what would become of a job, and who holds what it needs."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from atoll.core.engine.cycle import CycleLimits, plan
from atoll.core.engine.holders import holders
from atoll.core.engine.trial import Trial, try_out
from atoll.core.model.ids import JobId, QueueName, Tenant
from atoll.core.model.job import Queue
from atoll.core.model.plan import GangRequest, GroupRequest, PendingJob, RunTerms
from atoll.core.model.reason import ReasonCode
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.policies.registry import policies
from atoll.core.state.world import World
from tests.core.worlds import (
    Given,
    commit,
    givens,
    holdings,
    planned,
    simple_job,
    simple_nodes,
    simple_world,
    single,
    world_of,
)


def gpus(count: int, *, tasks: int = 1, limit_s: float = 0.0) -> GangRequest:
    shape = TaskShape(1000, 0, DeviceRequest("H100", count))
    terms = RunTerms(time_limit_s=limit_s)
    return GangRequest((GroupRequest(tasks, tasks, (shape,)),), terms=terms)


def tried(world: World, job: PendingJob, *, now: float = 10.0) -> Trial:
    rng = np.random.default_rng(0)
    return try_out(world.look(now), job, policies(), now=now, rng=rng)


def running(world: World, *jobs: PendingJob) -> None:
    world.upsert_pending(jobs)
    commit(world, planned(world.freeze(0.0)))


def test_a_job_that_fits_is_told_its_place() -> None:
    world = simple_world(simple_nodes(2, gpus=8))
    found = tried(world, simple_job(0, gpus(8, tasks=2)))
    assert (found.cluster, [task.node_name for task in found.tasks]) == ("c1", ["n1", "n2"])
    assert (found.victims, found.ever, found.explanation.fits_now) == ((), True, True)


def test_nothing_is_left_of_a_dry_run() -> None:
    world = simple_world(simple_nodes(1, gpus=8))
    first = tried(world, simple_job(0, gpus(8)))
    assert tried(world, simple_job(0, gpus(8))) == first
    assert world.pending_count == 0
    assert world.ledger.holdings == {}


def test_victims_are_named() -> None:
    world = simple_world(simple_nodes(1, gpus=8))
    running(world, replace(simple_job(1, gpus(8)), priority=-1))
    found = tried(world, replace(simple_job(0, gpus(4)), priority=5))
    assert [job.attempt >> 16 for job in found.victims] == [1]
    assert (found.cluster, len(found.tasks), found.ever) == ("c1", 1, True)
    assert {reason.code for reason in found.explanation.reasons} == {ReasonCode.DEVICES_SHORT}


def test_who_may_stop_nobody_waits() -> None:
    world = simple_world(simple_nodes(1, gpus=8))
    running(world, simple_job(1, gpus(8)))
    found = tried(world, simple_job(0, gpus(4)))
    assert (found.cluster, found.victims, found.ever) == (None, (), True)


@pytest.mark.parametrize("request_", [gpus(9), gpus(8, tasks=3), single(TaskShape(99_000, 0))])
def test_what_never_fits_is_told_so(request_: GangRequest) -> None:
    world = simple_world(simple_nodes(2, gpus=8))
    running(world, simple_job(1, gpus(8)))
    found = tried(world, simple_job(0, request_))
    assert (found.cluster, found.ever) == (None, False)
    assert found.explanation.reasons


def test_a_limit_below_the_job_is_never_enough() -> None:
    world = simple_world(simple_nodes(2, gpus=8))
    world.set_queues([Queue(QueueName("a"), Tenant(""), device_limit=400)])
    found = tried(world, simple_job(0, gpus(8)))
    assert not found.ever
    assert found.explanation.reasons[0].code is ReasonCode.QUEUE_LIMIT
    assert tried(world, simple_job(0, gpus(4))).cluster == "c1"


@settings(max_examples=60, deadline=None)
@given(givens(jobs=1))
def test_a_dry_run_decides_what_the_cycle_decides(case: Given) -> None:
    world = world_of(case)
    job = case.jobs[0]
    snapshot = world.freeze(1.0)
    made = plan(
        snapshot,
        policies(),
        now=1.0,
        rng=np.random.default_rng(0),
        limits=CycleLimits(max_placements=1),
    )
    found = tried(world, job, now=1.0)
    placed = {p.job: p for p in made.placements}
    assert (job.id in placed) == (found.cluster is not None)
    if job.id in placed:
        assert placed[job.id].tasks == found.tasks


def test_holders_come_in_the_order_in_which_they_end() -> None:
    world = simple_world(simple_nodes(2, gpus=8))
    jobs = [
        simple_job(1, gpus(4, limit_s=500)),
        simple_job(2, gpus(2, limit_s=100)),
        simple_job(3, gpus(6)),
        simple_job(4, single(TaskShape(2000, 0))),
    ]
    running(world, *jobs)
    found = holders(world.look(5.0), gpus(8))
    assert [(h.attempt >> 16, h.amount, h.until) for h in found] == [
        (2, 200, 100.0), (1, 400, 500.0), (3, 600, 0.0),
    ]  # fmt: skip
    assert {(h.queue, h.cluster, h.unit, h.nodes) for h in found} == {("a", "c1", "blocks", 1)}
    cpu = holders(world.look(5.0), single(TaskShape(64_000, 0)), most=2)
    assert [(h.attempt >> 16, h.unit) for h in cpu] == [(2, "milli-CPU"), (1, "milli-CPU")]


def test_of_a_kind_that_nobody_has_nobody_is_told() -> None:
    world = simple_world(simple_nodes(1, gpus=8))
    running(world, simple_job(1, gpus(8)))
    other = single(TaskShape(0, 0, DeviceRequest("B200", 1)))
    assert holders(world.look(5.0), other) == ()
    assert holders(simple_world(simple_nodes(1)).look(0.0), gpus(1)) == ()


def test_what_is_being_stopped_comes_first() -> None:
    world = simple_world(simple_nodes(1, gpus=8))
    world.upsert_pending([simple_job(1, gpus(4, limit_s=500)), simple_job(2, gpus(4))])
    made = planned(world.freeze(0.0))
    world.add_allocations(holdings(made))
    last = next(p.attempt for p in made.placements if p.job == JobId(2))
    world.stopping([last])
    found = holders(world.look(5.0), gpus(8))
    assert (found[0].attempt, found[0].stopping) == (last, True)
