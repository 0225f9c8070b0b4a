"""What makes a class that did not fit worth a try again, and what does not."""

from dataclasses import replace

from atoll.core.model.ids import MAX_ATTEMPTS, JobId, NodeId
from atoll.core.model.inventory import Cluster
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.state.world import World
from tests.core.worlds import (
    commit,
    cpus,
    heads,
    placed,
    planned,
    simple_job,
    simple_nodes,
    simple_world,
    single,
)

ONE = cpus(1)
GPU = single(TaskShape(1000, 0, DeviceRequest("H100", 1)))


def blocked_world() -> World:
    world = simple_world(simple_nodes(2, gpus=1), [simple_job(n, GPU) for n in (1, 2, 3)])
    snapshot = world.freeze(1.0)
    made = planned(snapshot)
    commit(world, made)
    world.note_waiting(snapshot, made)
    assert placed(made) == [1, 2]
    assert not world.has_work()
    return world


def test_a_class_that_did_not_fit_is_not_tried_again_for_nothing() -> None:
    world = blocked_world()
    assert heads(world) == []
    world.upsert_pending([simple_job(4, GPU)])
    assert not world.has_work()


def test_a_release_of_what_it_needs_makes_it_worth_a_try() -> None:
    world = blocked_world()
    world.end_allocation(min(world.ledger.holdings))
    assert world.has_work()
    assert placed(planned(world.freeze(2.0))) == [3]


def test_a_release_between_freeze_and_note_is_not_forgotten() -> None:
    world = simple_world(simple_nodes(1, gpus=1), [simple_job(n, GPU) for n in (1, 2)])
    made = planned(world.freeze(1.0))
    commit(world, made)
    snapshot = world.freeze(2.0)
    nothing = planned(snapshot)
    world.end_allocation(made.placements[0].attempt)
    world.note_waiting(snapshot, nothing)
    assert world.has_work()


def test_what_waited_for_placements_that_were_dropped_is_tried_again() -> None:
    world = simple_world(simple_nodes(1, gpus=1), [simple_job(n, GPU) for n in (1, 2)])
    snapshot = world.freeze(1.0)
    world.note_waiting(snapshot, planned(snapshot))
    world.remove_pending([JobId(1)])
    assert world.has_work(2.0)
    assert placed(planned(world.freeze(2.0))) == [2]


def test_a_job_that_cannot_have_another_attempt_is_left_alone() -> None:
    spent = replace(simple_job(1, ONE), attempts=MAX_ATTEMPTS)
    world = simple_world(simple_nodes(1), [spent, simple_job(2, ONE)])
    assert placed(planned(world.freeze(1.0))) == [2]


def test_a_share_without_a_size_fits_nowhere() -> None:
    odd = [single(TaskShape(0, 0, DeviceRequest("H100", 1, blocks=b))) for b in (0, 101)]
    jobs = [simple_job(n, request) for n, request in enumerate(odd, 1)]
    made = planned(simple_world(simple_nodes(1, gpus=2), jobs).freeze(1.0))
    assert placed(made) == []
    assert len(made.waiting) == 2


def test_a_class_whose_jobs_all_wait_for_something_else_is_no_work() -> None:
    later = replace(simple_job(1, ONE), begin_at=60.0)
    after = replace(simple_job(2, GPU), depends_on=(JobId(7),))
    world = simple_world(simple_nodes(1), [later, after])
    assert not world.has_work(1.0)
    assert world.has_work(60.0)


def test_new_nodes_and_better_ones_make_it_worth_a_try_and_worse_ones_do_not() -> None:
    world = blocked_world()
    node = simple_nodes(3, gpus=1)[2]
    world.upsert_nodes([replace(node, cordoned=True)])
    assert not world.has_work()
    world = blocked_world()
    smaller = simple_nodes(1, gpus=1, cpu=4)[0]
    world.upsert_nodes([replace(smaller, revision=2)])
    assert not world.has_work()
    world.upsert_nodes([node])
    assert world.has_work()


def test_an_uncordoned_cluster_makes_it_worth_a_try() -> None:
    world = blocked_world()
    c1 = Cluster(simple_nodes(1)[0].cluster)
    world.set_clusters([replace(c1, cordoned=True)])
    assert not world.has_work()
    world.set_clusters([c1])
    assert world.has_work()


def test_a_suspect_node_gets_nothing_until_a_later_inventory() -> None:
    node = replace(simple_nodes(1)[0], inventory_number=5)
    world = simple_world([node], [simple_job(1, ONE)])
    world.suspect_nodes([(NodeId(1), 5)])
    assert placed(planned(world.freeze(1.0))) == []
    world.upsert_nodes([replace(node, revision=2, suspect_since=5, inventory_number=6)])
    assert placed(planned(world.freeze(2.0))) == [1]
    world.suspect_nodes([(NodeId(1), 5)])
    assert placed(planned(world.freeze(3.0))) == [1]


def test_an_absent_node_takes_nothing_and_gives_its_share_back_when_it_returns() -> None:
    world = simple_world(simple_nodes(1, cpu=2), [simple_job(n, ONE) for n in (1, 2)])
    commit(world, planned(world.freeze(1.0), most=1))
    world.remove_nodes([NodeId(1)])
    assert placed(planned(world.freeze(2.0))) == []
    assert world.ledger.table.nodes.cpu_free.tolist() == [-1000]
    world.upsert_nodes(simple_nodes(1, cpu=2))
    assert placed(planned(world.freeze(3.0))) == [2]
