"""Explaining: every blocker with its numbers, a tally that adds up, and never a contradiction."""

from dataclasses import replace

from hypothesis import given

from atoll.core.engine.explain import ClusterTally, Explanation, explain
from atoll.core.model.ids import JobId
from atoll.core.model.inventory import Device
from atoll.core.model.job import Queue
from atoll.core.model.plan import GangRequest, GroupRequest, PendingJob
from atoll.core.model.reason import ReasonCode
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.model.spec import Topology
from atoll.core.policies.registry import policies
from atoll.core.state.world import World
from tests.core.worlds import (
    GB,
    Given,
    commit,
    cpus,
    givens,
    planned,
    simple_job,
    simple_nodes,
    simple_world,
    single,
    world_of,
)

GPU = single(TaskShape(1000, 0, DeviceRequest("H100", 1)))


def explained(world: World, job: PendingJob, *, now: float = 1.0) -> Explanation:
    return explain(world.freeze(now), job, policies(), now=now, ahead=world.jobs_ahead(job))


def codes(explanation: Explanation) -> list[ReasonCode]:
    return [reason.code for reason in explanation.reasons]


def test_a_job_that_fits_and_is_next_has_no_blocker() -> None:
    job = simple_job(1, cpus(1))
    told = explained(simple_world(simple_nodes(1), [job]), job)
    assert told.fits_now
    assert told.reasons == ()
    assert told.tallies == (ClusterTally("c1", 1, (("FITS", 1),)),)


def test_a_job_behind_others_is_told_how_many() -> None:
    jobs = [simple_job(n, cpus(1)) for n in (1, 2, 3)]
    told = explained(simple_world(simple_nodes(1), jobs), jobs[2])
    assert told.fits_now
    assert codes(told) == [ReasonCode.BEHIND_OTHERS]
    assert told.jobs_ahead == told.reasons[0].count == 2


def test_what_is_short_is_told_with_what_is_needed_and_the_best_there_is() -> None:
    nodes = [*simple_nodes(1, cpu=4), replace(simple_nodes(2, cpu=6)[1])]
    job = simple_job(1, cpus(8))
    told = explained(simple_world(nodes, [job]), job)
    assert not told.fits_now
    assert codes(told) == [ReasonCode.CPU_SHORT]
    reason = told.reasons[0]
    assert (reason.needed, reason.available, reason.unit, reason.count) == (
        8000,
        6000,
        "milli-CPU",
        2,
    )
    assert told.tallies == (ClusterTally("c1", 2, (("CPU_SHORT", 2),)),)


def test_what_would_help_is_told() -> None:
    running = simple_job(1, cpus(4))
    world = simple_world(simple_nodes(2), [running])
    commit(world, planned(world.freeze(1.0)))
    busy, hopeless = simple_job(2, cpus(8)), simple_job(3, cpus(9))
    world.upsert_nodes([replace(n, revision=2) for n in simple_nodes(2, cpu=7)[1:]])
    world.upsert_pending([busy, hopeless])
    told = explained(world, busy)
    assert told.reasons[0].help == "wait for work to end: 1 node would hold it when empty"
    told = explained(world, hopeless)
    assert told.reasons[0].help.startswith("ask for less")


def test_all_blockers_are_told_what_waiting_does_not_help_against_last() -> None:
    nodes = [
        *simple_nodes(2, gpus=1, cpu=0),
        *simple_nodes(5)[2:],
        replace(simple_nodes(6, gpus=1)[5], cordoned=True),
    ]
    job = simple_job(1, GPU)
    told = explained(simple_world(nodes, [job]), job)
    assert codes(told) == [
        ReasonCode.CPU_SHORT,
        ReasonCode.NODE_UNSCHEDULABLE,
        ReasonCode.DEVICE_KIND_ABSENT,
    ]
    assert [reason.count for reason in told.reasons] == [2, 1, 3]


def test_dependency_and_begin_are_told_beside_what_the_clusters_lack() -> None:
    job = replace(simple_job(3, cpus(99)), depends_on=(JobId(1), JobId(2)), begin_at=61.0)
    told = explained(simple_world(simple_nodes(1), [job]), job)
    assert codes(told) == [
        ReasonCode.DEPENDENCY,
        ReasonCode.BEGIN_IN_FUTURE,
        ReasonCode.CPU_SHORT,
    ]
    assert "1, 2" in told.summary
    assert told.reasons[1].needed == 60


def test_a_limit_is_told_with_use_and_limit() -> None:
    running, job = simple_job(1, GPU), simple_job(2, GPU)
    world = simple_world(simple_nodes(1, gpus=4), [running])
    world.set_queues([Queue(job.queue, "t", device_limit=150)])  # type: ignore[arg-type]
    commit(world, planned(world.freeze(1.0)))
    world.upsert_pending([job])
    told = explained(world, job)
    assert codes(told) == [ReasonCode.QUEUE_LIMIT]
    assert told.reasons[0].metadata == (("limit", "150"), ("queue", "a"), ("used", "100"))
    assert not told.fits_now


def test_a_gang_is_told_how_many_tasks_fit_at_once() -> None:
    gang = GangRequest((GroupRequest(4, 4, (TaskShape(5000, 0),)),))
    job = simple_job(1, gang)
    told = explained(simple_world(simple_nodes(3), [job]), job)
    assert codes(told) == [ReasonCode.GANG_TOO_WIDE]
    assert (told.reasons[0].needed, told.reasons[0].available) == (4, 3)


def test_groups_that_fit_one_by_one_are_told_not_to_fit_together() -> None:
    both = GangRequest((GroupRequest(1, 1, (TaskShape(5000, 0),)),) * 2)
    job = simple_job(1, both)
    told = explained(simple_world(simple_nodes(1), [job]), job)
    assert codes(told) == [ReasonCode.GANG_TOO_WIDE]
    assert "together" in told.summary


def test_a_level_that_no_node_has_is_told() -> None:
    request = replace(cpus(1), topology=Topology("rack"))
    job = simple_job(1, request)
    told = explained(simple_world(simple_nodes(1), [job]), job)
    assert codes(told) == [ReasonCode.NO_DOMAIN_FITS]
    assert told.reasons[0].available == 0


def test_a_class_that_was_left_out_of_the_snapshot_is_explained_all_the_same() -> None:
    job = simple_job(1, single(TaskShape(0, 0, DeviceRequest("B200", 1))))
    world = simple_world(simple_nodes(1), [job])
    snapshot = world.freeze(1.0)
    world.note_waiting(snapshot, planned(snapshot))
    assert not world.has_work()
    assert codes(explained(world, job)) == [ReasonCode.DEVICE_KIND_ABSENT]


def test_slices_are_told_apart_from_devices() -> None:
    mig = tuple(Device(i, "H100", 80 * GB, mig=True) for i in range(2))
    node = simple_nodes(1)[0]
    node = replace(node, inventory=replace(node.inventory, devices=mig))
    requests = [DeviceRequest("H100", 1), DeviceRequest("H100", 15, profile="1g.10gb")]
    jobs = [simple_job(n, single(TaskShape(0, 0, r))) for n, r in enumerate(requests, 1)]
    world = simple_world([node], jobs)
    assert codes(explained(world, jobs[0])) == [ReasonCode.DEVICE_KIND_ABSENT]
    told = explained(world, jobs[1])
    assert codes(told) == [ReasonCode.DEVICES_SHORT]
    assert (told.reasons[0].needed, told.reasons[0].available) == (15, 14)


@given(givens())
def test_an_explanation_agrees_with_the_plan(case: Given) -> None:
    world = world_of(case)
    placed = {p.job for p in planned(world.freeze(1.0)).placements}
    first = min(case.jobs, key=lambda job: (-job.priority, job.submitted_at, job.id))
    told = explained(world, first)
    assert told.fits_now == (first.id in placed)
    for tally in told.tallies:
        assert sum(count for _, count in tally.counts) == tally.nodes
    assert sum(tally.nodes for tally in told.tallies) == len(case.nodes)


@given(givens())
def test_whoever_does_not_fit_is_told_why(case: Given) -> None:
    world = world_of(case)
    commit(world, planned(world.freeze(1.0)))
    for job in case.jobs:
        if world.pending(job.id) is not None:
            told = explained(world, job, now=2.0)
            assert not told.fits_now
            assert told.reasons
            assert all(reason.message for reason in told.reasons)
