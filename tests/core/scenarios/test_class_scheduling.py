"""Jobs that cannot run cost the others nothing, and are tried again when it could help."""

from dataclasses import replace

from atoll.core.model.ids import NodeId
from atoll.core.model.inventory import Device, Node
from atoll.core.model.plan import GangRequest
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.state.world import World
from tests.core.worlds import (
    GB,
    commit,
    placed,
    planned,
    simple_job,
    simple_nodes,
    simple_world,
    single,
)

HOPELESS = 2880


def gpus(count: int, cores: int = 1, kind: str = "H100") -> GangRequest:
    return single(TaskShape(cores * 1000, 0, DeviceRequest(kind, count)))


def blocked_world() -> World:
    """2,880 jobs of 960 shapes that no node can ever hold, tried once."""
    world = simple_world(
        simple_nodes(2, cpu=16, gpus=2),
        [simple_job(n + 1, gpus(16, 1 + n % 960)) for n in range(HOPELESS)],
    )
    cycle(world, 1.0)
    return world


def cycle(world: World, now: float) -> list[int]:
    snapshot = world.freeze(now)
    made = planned(snapshot)
    commit(world, made)
    world.note_waiting(snapshot, made)
    return placed(made)


def test_2880_unschedulable_jobs_do_not_delay_a_schedulable_one() -> None:
    world = simple_world(
        simple_nodes(2, cpu=16, gpus=2),
        [simple_job(n + 1, gpus(16, 1 + n % 960)) for n in range(HOPELESS)],
    )
    world.upsert_pending([simple_job(HOPELESS + 1, gpus(1))])
    assert cycle(world, 1.0) == [HOPELESS + 1]
    assert world.pending_count == HOPELESS


def test_a_cycle_does_not_even_look_at_unschedulable_jobs_again() -> None:
    world = blocked_world()
    assert not world.has_work()
    world.upsert_pending([simple_job(HOPELESS + 1, gpus(1))])
    assert [view.request for view in world.freeze(2.0).queue.classes] == [gpus(1)]
    assert cycle(world, 2.0) == [HOPELESS + 1]


def test_what_never_fits_is_not_tried_again_for_what_does_not_matter_to_it() -> None:
    world = blocked_world()
    other = simple_nodes(3, cpu=16)[2]
    devices = (Device(0, "A100", 40 * GB),)
    world.upsert_nodes([replace(other, inventory=replace(other.inventory, devices=devices))])
    assert not world.has_work()
    world.upsert_pending([simple_job(HOPELESS + 1, gpus(1, kind="A100"))])
    assert cycle(world, 2.0) == [HOPELESS + 1]
    world.end_allocations(list(world.ledger.holdings))
    assert not world.has_work()


def test_what_never_fitted_is_tried_again_when_capacity_comes_that_could_hold_it() -> None:
    world = blocked_world()
    world.upsert_nodes([large(3)])
    assert world.has_work()
    assert len(cycle(world, 2.0)) == 1
    assert not world.has_work()


def large(number: int) -> Node:
    """A node with 16 GPUs."""
    return replace(simple_nodes(number, cpu=64, gpus=16)[number - 1], id=NodeId(number))
