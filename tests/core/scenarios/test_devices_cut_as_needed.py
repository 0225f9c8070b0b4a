"""Devices that are handed out whole or in slices, as what is held of them says."""

from dataclasses import replace

from atoll.core.engine.capacity import CapacitySummary, fits_ever
from atoll.core.engine.verify import refused
from atoll.core.model.booking import NodeShare, OccurrenceId, Owners, Window
from atoll.core.model.ids import ClusterName, NodeId, QueueName
from atoll.core.model.inventory import Cluster, Device, LocalUse, Node, NodeInventory
from atoll.core.model.lifecycle import StopCause
from atoll.core.model.plan import GangRequest, GroupRequest, PendingJob, Plan
from atoll.core.model.resources import DeviceGrant, DeviceRequest, TaskShape
from atoll.core.state.world import World

from ..worlds import commit, planned, simple_job, simple_world

GB = 10**9
WHOLE = DeviceRequest("H100", 1)
HALF = DeviceRequest("H100", 1, blocks=50)
SLICE = DeviceRequest("H100", 1, profile="1g.10gb")
LARGE = DeviceRequest("H100", 1, profile="3g.40gb")


def either(index: int) -> Device:
    return Device(index, "H100", 80 * GB, mig_dynamic=True)


def node(number: int, *devices: Device, used: tuple[tuple[int, int], ...] = ()) -> Node:
    local = LocalUse(blocks=used)
    inventory = NodeInventory(f"n{number}", 64_000, 256 * GB, devices, local_use=local)
    return Node(NodeId(number), ClusterName("c1"), inventory)


def jobs(first: int, *devices: DeviceRequest) -> list[PendingJob]:
    return [
        simple_job(number, GangRequest((GroupRequest(1, 1, (TaskShape(100, GB, device),)),)))
        for number, device in enumerate(devices, first)
    ]


def run(world: World, *new: PendingJob, now: float = 1.0) -> Plan:
    """A cycle that is verified and committed."""
    world.upsert_pending(new)
    made = planned(world.freeze(now))
    assert refused(made.placements, world.ledger) == {}
    commit(world, made)
    return made


def held(made: Plan) -> list[tuple[int, int, str]]:
    grants = [grant for p in made.placements for task in p.tasks for grant in task.devices]
    return [(grant.index, grant.blocks, grant.profile) for grant in grants]


def end_all(world: World) -> None:
    world.end_allocations([*world.ledger.holdings])


def test_a_device_is_whole_for_one_job_and_in_slices_for_the_next() -> None:
    world = simple_world([node(1, either(0))], [])
    assert held(run(world, *jobs(1, WHOLE))) == [(0, 100, "")]
    assert held(run(world, *jobs(2, SLICE))) == []
    end_all(world)
    assert held(run(world, now=2.0)) == [(0, 0, "1g.10gb")]
    assert held(run(world, *jobs(3, WHOLE, LARGE), now=3.0)) == [(0, 0, "3g.40gb")]
    end_all(world)
    assert held(run(world, now=4.0)) == [(0, 100, "")]


def test_it_changes_only_when_nothing_of_it_is_held() -> None:
    world = simple_world([node(1, either(0))], [])
    made = run(world, *jobs(1, SLICE, SLICE))
    first, second = [placement.attempt for placement in made.placements]
    world.end_allocations([first])
    assert held(run(world, *jobs(3, HALF), now=2.0)) == []
    world.end_allocations([second])
    assert held(run(world, now=3.0)) == [(0, 50, "")]
    assert held(run(world, *jobs(4, SLICE), now=4.0)) == []


def test_slices_go_to_devices_that_are_cut_before_one_is_cut_anew() -> None:
    cut = Device(2, "H100", 80 * GB, mig=True)
    world = simple_world([node(1, either(0), either(1), cut)], [])
    made = run(world, *jobs(1, *[SLICE] * 9))
    assert [index for index, _, _ in held(made)] == [2] * 7 + [0] * 2
    assert held(run(world, *jobs(20, WHOLE), now=2.0)) == [(1, 100, "")]


def test_slices_go_to_another_node_before_a_device_is_cut_anew() -> None:
    world = simple_world([node(1, either(0)), node(2, Device(0, "H100", 80 * GB, mig=True))], [])
    made = run(world, *jobs(1, SLICE))
    assert [task.node for p in made.placements for task in p.tasks] == [2]


def test_a_device_that_somebody_else_uses_is_not_cut() -> None:
    world = simple_world([node(1, either(0), used=((0, 10),))], [])
    assert held(run(world, *jobs(1, SLICE, WHOLE, HALF))) == [(0, 50, "")]


def test_both_forms_fit_ever() -> None:
    capacity = CapacitySummary.of([node(1, either(0))], [Cluster(ClusterName("c1"))])
    for device in (WHOLE, HALF, SLICE, LARGE):
        (job,) = jobs(1, device)
        assert not fits_ever(capacity, job.request)
    plain = CapacitySummary.of([node(1, Device(0, "H100", 80 * GB))], [Cluster(ClusterName("c1"))])
    assert fits_ever(plain, jobs(1, SLICE)[0].request)


def test_a_plan_that_cuts_what_is_held_is_refused() -> None:
    other = simple_world([node(1, either(0))], jobs(1, SLICE))
    sliced = planned(other.freeze(1.0))
    world = simple_world([node(1, either(0))], [])
    run(world, *jobs(2, HALF))
    assert "two owners" in refused(sliced.placements, world.ledger)[sliced.placements[0].job]
    used = simple_world([node(1, either(0), used=((0, 10),))], [])
    assert "blocks" in refused(sliced.placements, used.ledger)[sliced.placements[0].job]
    plain = simple_world([node(1, Device(0, "H100", 80 * GB))], [])
    assert "this way" in refused(sliced.placements, plain.ledger)[sliced.placements[0].job]


def test_who_has_booked_a_whole_device_may_cut_it_and_others_leave_it_in_time() -> None:
    world = simple_world([node(1, either(0))], [])
    assert held(run(world, *jobs(1, SLICE))) == [(0, 0, "1g.10gb")]
    share = NodeShare(NodeId(1), "n1", 100, GB, (DeviceGrant(0, 100),))
    owners = Owners(queues=(QueueName("a"),))
    world.put_windows([
        Window(OccurrenceId(1), "maintenance", 100.0, 200.0, ClusterName("c1"), (share,)),
        Window(OccurrenceId(2), "exam", 300.0, 400.0, ClusterName("c1"), (share,), owners),
    ])
    made = run(world, now=96.0)
    assert [eviction.cause for eviction in made.evictions] == [StopCause.BOOKING]
    end_all(world)
    (wanted,) = jobs(2, SLICE)
    inside = replace(wanted, request=replace(wanted.request, reservation="exam"))
    assert held(run(world, inside, now=300.0)) == [(0, 0, "1g.10gb")]
