"""What a world takes for its typical tasks, and when it learns anew."""

from dataclasses import replace

import numpy as np

from atoll.core.model.ids import ClusterName, JobId, NodeId, QueueName, Tenant
from atoll.core.model.inventory import Cluster, Device, Node, NodeInventory
from atoll.core.model.job import Queue
from atoll.core.model.plan import GangRequest, GroupRequest, PendingJob
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.state.typical import Typical
from atoll.core.state.world import World
from tests.core.worlds import commit, planned

GIB = 1 << 30
HALF = TaskShape(1000, GIB, DeviceRequest("H100", 1, blocks=50))
WHOLE = TaskShape(2000, GIB, DeviceRequest("H100", 2))
MEMORY = TaskShape(1000, GIB, DeviceRequest("", 1, blocks=0, memory_bytes=20 * GIB))
EITHER = (WHOLE, TaskShape(2000, GIB, DeviceRequest("A100", 2)))


def world_with(*requests: tuple[tuple[TaskShape, ...], int]) -> World:
    world = World()
    world.set_clusters([Cluster(ClusterName("c"))])
    world.set_queues([Queue(QueueName("q"), Tenant(""))])
    kinds = (("H100", 80 * GIB), ("A100", 40 * GIB))
    world.upsert_nodes([_node(number, *kind) for number, kind in enumerate(kinds, 1)])
    number = 0
    for shapes, count in requests:
        add(world, shapes, count=count, first=number + 1)
        number += count
    return world


def _node(number: int, kind: str, memory: int) -> Node:
    devices = tuple(Device(i, kind, memory) for i in range(4))
    inventory = NodeInventory(f"n{number}", 40_000, 64 * GIB, devices)
    return Node(NodeId(number), ClusterName("c"), inventory)


def add(world: World, shapes: tuple[TaskShape, ...], *, count: int, first: int) -> None:
    request = GangRequest((GroupRequest(1, 1, shapes),))
    world.upsert_pending([
        PendingJob(JobId(n), 1, QueueName("q"), 0, submitted_at=float(n), request=request)
        for n in range(first, first + count)
    ])


def rows(table: Typical) -> list[tuple[int, int, list[int], int]]:
    return [
        (int(cpu), int(devices), blocks.tolist(), int(number))
        for cpu, devices, blocks, number in zip(
            table.cpu, table.devices, table.blocks, table.number, strict=True
        )
    ]


def test_pending_tasks_are_counted_by_what_they_need_of_each_kind() -> None:
    world = world_with(((HALF,), 3), ((MEMORY,), 2), (EITHER, 1))
    snapshot = world.freeze(1.0)
    h100, a100 = snapshot.kinds["H100"], snapshot.kinds["A100"]
    found = {
        (cpu, devices, blocks[h100], blocks[a100]): n
        for cpu, devices, blocks, n in rows(snapshot.typical)
    }
    assert found == {(1000, 1, 50, 0): 3, (1000, 1, 25, 50): 2, (2000, 2, 100, 100): 1}


def test_running_tasks_count_too() -> None:
    world = world_with(((HALF,), 3))
    plan = planned(world.freeze(1.0), most=2)
    commit(world, plan)
    add(world, (WHOLE,), count=9, first=50)
    found = {row[:2]: row[3] for row in rows(world.freeze(2.0).typical)}
    assert found == {(1000, 1): 3, (2000, 2): 9}


def test_a_running_task_whose_device_is_gone_needs_nobody_knows_what() -> None:
    world = world_with(((HALF,), 3))
    plan = planned(world.freeze(1.0))
    commit(world, plan)
    held = {task.node for placement in plan.placements for task in placement.tasks}
    for number in held:
        node = _node(number, "H100", 80 * GIB)
        bare = replace(node, inventory=replace(node.inventory, devices=()), revision=2)
        world.upsert_nodes([bare])
    add(world, (WHOLE,), count=9, first=50)
    found = {row[:2]: row[3] for row in rows(world.freeze(2.0).typical)}
    assert found == {(1000, 0): 3, (2000, 2): 9}


def test_little_that_is_new_changes_nothing() -> None:
    world = world_with(((HALF,), 20))
    first = world.freeze(1.0).typical
    add(world, (WHOLE,), count=10, first=50)
    assert world.freeze(2.0).typical is first
    add(world, (WHOLE,), count=1, first=70)
    learnt = world.freeze(3.0).typical
    assert learnt is not first
    assert [row[3] for row in rows(learnt)] == [20, 11]


def test_more_of_the_same_tasks_in_the_same_numbers_keeps_the_table() -> None:
    world = world_with(((HALF,), 4))
    first = world.freeze(1.0).typical
    world.remove_pending([JobId(n) for n in range(1, 5)])
    add(world, (HALF,), count=4, first=10)
    assert world.freeze(2.0).typical is first


def test_tasks_that_are_given_are_not_learnt_over() -> None:
    world = world_with(((HALF,), 4))
    world.workload.give([((WHOLE,), 7), ((HALF,), 1)])
    add(world, (HALF,), count=90, first=10)
    assert [row[3] for row in rows(world.freeze(1.0).typical)] == [7, 1]


def test_the_rarest_do_not_cover_and_scarcity_compares_with_the_hardware() -> None:
    world = world_with(((HALF,), 96), ((WHOLE,), 4))
    table = world.freeze(1.0).typical
    assert table.covering == 1
    asked = (96 * 1000 + 4 * 2000) / (96 * 0.5 + 4 * 2)
    assert table.cpu_scarcity == round(asked / 10_000, 2)
    assert np.isclose(World().freeze(1.0).typical.cpu_scarcity, 0.0)
