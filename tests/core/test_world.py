"""The world: the queue's order, what makes a class worth a try, and frozen snapshots."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from atoll.core.model.ids import JobId, NodeId
from atoll.core.model.inventory import Avoidance
from atoll.core.model.plan import PendingJob
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.state.world import World
from tests.core.worlds import (
    Given,
    commit,
    cpus,
    givens,
    heads,
    holdings,
    placed,
    planned,
    simple_job,
    simple_nodes,
    simple_world,
    single,
    world_of,
)

ONE = cpus(1)
GPU = single(TaskShape(1000, 0, DeviceRequest("H100", 1)))


@given(st.permutations(range(1, 20)), st.sets(st.integers(1, 19)))
def test_a_class_is_a_queue_by_submit_time_and_id_however_it_was_filled(
    order: list[int], removed: set[int]
) -> None:
    world = simple_world([])
    for number in order:
        world.upsert_pending([simple_job(number, ONE, at=number // 3)])
    world.remove_pending([JobId(number) for number in removed])
    kept = [number for number in range(1, 20) if number not in removed]
    assert heads(world) == kept
    assert world.pending_count == len(kept)


def test_a_job_that_was_rolled_back_comes_back_at_its_place() -> None:
    world = simple_world(simple_nodes(1, cpu=2), [simple_job(n, ONE) for n in (1, 2, 3, 4)])
    made = planned(world.freeze(1.0))
    commit(world, made)
    assert placed(made) == [1, 2]
    world.end_allocations([p.attempt for p in made.placements])
    world.upsert_pending([replace(simple_job(n, ONE), revision=2, attempts=1) for n in (1, 2)])
    again = planned(world.freeze(2.0))
    assert placed(again) == [1, 2]
    assert [p.attempt for p in again.placements] == [(1 << 16) + 2, (2 << 16) + 2]
    assert [p.revision for p in again.placements] == [2, 2]


def test_only_the_heads_are_frozen_and_no_job_behind_them_is_overtaken() -> None:
    jobs = [simple_job(n, ONE, at=1.0) for n in range(1, 11)] + [simple_job(11, GPU, at=2.0)]
    world = simple_world(simple_nodes(1, gpus=1, cpu=64), jobs)
    snapshot = world.freeze(1.0, 4)
    assert snapshot.queue.job.tolist() == [1, 2, 3, 4, 11]
    assert placed(planned(snapshot)) == [1, 2, 3, 4]


def test_a_late_job_does_not_overtake_those_that_the_snapshot_does_not_show() -> None:
    world = simple_world([], [simple_job(n, ONE) for n in (1, 2, 3, 4, 9)])
    world.upsert_pending([simple_job(5, ONE)])
    assert heads(world, size=2) == [1, 2]
    assert heads(world, size=4) == [1, 2, 3, 4]
    assert heads(world) == [1, 2, 3, 4, 5, 9]


def test_jobs_that_left_do_not_hide_those_behind_them() -> None:
    world = simple_world([], [simple_job(n, ONE) for n in range(1, 51)])
    world.remove_pending([JobId(n) for n in range(1, 50)])
    assert heads(world, size=2) == [50]


def test_an_older_revision_is_ignored() -> None:
    world = simple_world([], [replace(simple_job(1, ONE), revision=3, priority=7)])
    world.upsert_pending([replace(simple_job(1, ONE), revision=2, priority=9)])
    known = world.pending(JobId(1))
    assert known is not None
    assert (known.revision, known.priority) == (3, 7)


def test_a_job_that_changes_its_class_leaves_the_old_one() -> None:
    world = simple_world(simple_nodes(1), [simple_job(1, ONE), simple_job(2, ONE)])
    world.upsert_pending([replace(simple_job(2, ONE), revision=2, priority=5)])
    assert placed(planned(world.freeze(1.0))) == [2, 1]
    assert world.pending_count == 2


def test_a_pending_job_is_told_as_it_was_given() -> None:
    job = replace(simple_job(4, GPU), trace="t", attempts=2, begin_at=9.0, depends_on=(JobId(3),))
    world = simple_world([], [job])
    assert world.pending(JobId(4)) == job
    assert world.pending(JobId(5)) is None


def test_a_dependency_is_asked_for_once_and_lets_go_once() -> None:
    world = simple_world(simple_nodes(1))
    first = replace(simple_job(3, ONE), depends_on=(JobId(1), JobId(2)))
    second = replace(simple_job(4, ONE), depends_on=(JobId(2),))
    assert world.upsert_pending([first]) == (1, 2)
    assert world.upsert_pending([second]) == ()
    assert world.awaited() == (1, 2)
    assert world.dependency_done(JobId(2)) == 2
    assert heads(world) == [4]
    assert world.dependency_done(JobId(2)) == 0
    assert heads(world) == [4]
    assert world.dependency_done(JobId(1)) == 1
    assert heads(world) == [3, 4]


def test_a_job_that_comes_again_waits_again_for_what_it_depends_on() -> None:
    world = simple_world(simple_nodes(1))
    job = replace(simple_job(3, ONE), depends_on=(JobId(1),))
    world.upsert_pending([job])
    world.dependency_done(JobId(1))
    assert world.upsert_pending([replace(job, revision=2)]) == (1,)
    assert heads(world) == []
    world.dependency_done(JobId(1))
    assert heads(world) == [3]


def test_begin_and_avoidances_say_when_to_look_again() -> None:
    world = simple_world(simple_nodes(1), [replace(simple_job(1, ONE), begin_at=60.0)])
    assert world.next_wakeup(1.0) == 60.0
    c1 = simple_nodes(1)[0].cluster
    world.set_avoidances([Avoidance(c1, NodeId(1), "", 3, until=30.0)])
    assert world.next_wakeup(1.0) == 30.0
    assert world.next_wakeup(30.0) == 60.0
    assert world.next_wakeup(60.0) is None
    world.remove_pending([JobId(1)])
    assert world.next_wakeup(30.0) is None


@given(givens())
def test_a_snapshot_does_not_change_with_the_world(case: Given) -> None:
    world = world_of(case)
    snapshot = world.freeze(1.0)
    made = planned(snapshot)
    commit(world, made)
    world.upsert_nodes([replace(n, revision=9, cordoned=True) for n in case.nodes])
    world.upsert_nodes([replace(simple_nodes(9)[8], id=NodeId(999))])
    world.end_allocations([p.attempt for p in made.placements])
    world.remove_pending([job.id for job in case.jobs])
    world.set_clusters([replace(c, cordoned=True) for c in case.clusters])
    assert repr(planned(snapshot)) == repr(made)


@given(givens())
def test_the_order_of_arrival_does_not_matter(case: Given) -> None:
    first = planned(world_of(case).freeze(1.0))
    turned = replace(case, nodes=case.nodes[::-1], jobs=case.jobs[::-1])
    world = World()
    for node in turned.nodes:
        world.upsert_nodes([node])
    for job in turned.jobs:
        world.upsert_pending([job])
    world.set_queues(turned.queues)
    world.set_clusters(turned.clusters)
    assert repr(planned(world.freeze(1.0)).placements) == repr(first.placements)


@given(givens())
def test_what_was_loaded_in_another_order_is_the_same_ledger(case: Given) -> None:
    world = world_of(case)
    made = planned(world.freeze(1.0))
    commit(world, made)
    late = World()
    late.add_allocations(holdings(made))
    late.upsert_nodes(case.nodes[::-1])
    for name in ("id", "cpu_free", "memory_free", "slices"):
        ours, theirs = (getattr(w.ledger.table.nodes, name) for w in (world, late))
        assert ours.tolist() == theirs.tolist()
    wide = min(w.ledger.table.nodes.blocks_free.shape[1] for w in (world, late))
    ours, theirs = (w.ledger.table.nodes.blocks_free[:, :wide] for w in (world, late))
    assert np.array_equal(ours, theirs)


def test_jobs_ahead_are_counted_over_all_classes() -> None:
    jobs = [simple_job(n, ONE) for n in (1, 2)] + [replace(simple_job(3, GPU), priority=1)]
    world = simple_world([], jobs)
    last: PendingJob | None = world.pending(JobId(2))
    assert last is not None
    assert world.jobs_ahead(last) == 2
