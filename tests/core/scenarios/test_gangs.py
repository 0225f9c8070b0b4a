"""Gangs: scenarios that went wrong elsewhere, each with the right outcome."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.core.engine.verify import verify
from atoll.core.model.ids import JobId
from atoll.core.model.inventory import Node
from atoll.core.model.plan import GangRequest, GroupRequest, PendingJob, Plan
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.model.spec import Topology
from atoll.core.state.world import World
from tests.core.worlds import (
    commit,
    cpus,
    placed,
    planned,
    simple_job,
    simple_nodes,
    simple_world,
    single,
)

RACK = Topology("rack")


def gang(size: int, cores: float, gpus: int = 0, topology: Topology | None = None) -> GangRequest:
    device = DeviceRequest("H100", gpus) if gpus else None
    shape = TaskShape(round(cores * 1000), 0, device)
    return GangRequest((GroupRequest(size, size, (shape,)),), topology)


def in_racks(nodes: list[Node], per_rack: int) -> list[Node]:
    return [
        replace(
            node,
            inventory=replace(node.inventory, domains=(("rack", f"r{at // per_rack}"),)),
        )
        for at, node in enumerate(nodes)
    ]


def run(world: World, *jobs: PendingJob, now: float = 1.0) -> Plan:
    world.upsert_pending(jobs)
    made = planned(world.freeze(now))
    verify(made, world.ledger)
    commit(world, made)
    return made


def sized(*cores: int) -> list[Node]:
    return [
        replace(node, inventory=replace(node.inventory, cpu_milli=1000 * each))
        for node, each in zip(simple_nodes(len(cores)), cores, strict=True)
    ]


@pytest.mark.parametrize("order", [(30, 50), (50, 30)])
def test_nodes_of_53_and_31_cores_take_tasks_of_30_and_50(order: tuple[int, int]) -> None:
    groups = tuple(GroupRequest(1, 1, (TaskShape(1000 * cores, 0),)) for cores in order)
    made = run(simple_world(sized(53, 31)), simple_job(1, GangRequest(groups)))
    tasks = {task.cpu_milli: task.node for task in made.placements[0].tasks}
    assert tasks == {30_000: 2, 50_000: 1}


def test_jobs_of_one_task_leave_room_for_both_too() -> None:
    world = simple_world(sized(53, 31))
    assert placed(run(world, simple_job(1, cpus(30)), simple_job(2, cpus(50)))) == [1, 2]


@pytest.mark.parametrize("topology", [RACK, None])
def test_of_domains_with_room_for_one_and_for_two_a_gang_of_two_finds_the_second(
    topology: Topology | None,
) -> None:
    world = simple_world(in_racks(simple_nodes(4, cpu=4), 2))
    run(world, simple_job(1, cpus(4)))
    held = world.ledger.holdings[min(world.ledger.holdings)].tasks[0].node
    made = run(world, simple_job(2, gang(2, 4, topology=topology)), now=2.0)
    assert sorted(task.node for task in made.placements[0].tasks) == (
        [3, 4] if held in {1, 2} else [1, 2]
    )


def test_of_two_gangs_of_100_on_100_nodes_one_runs_and_the_other_holds_nothing() -> None:
    world = simple_world(simple_nodes(100, cpu=8, gpus=8))
    made = run(world, simple_job(1, gang(100, 4, 8)), simple_job(2, gang(100, 4, 8)))
    assert placed(made) == [1]
    assert Counter(task.node for task in made.placements[0].tasks).most_common(1)[0][1] == 1
    assert len(world.ledger.holdings) == 1
    assert world.pending(JobId(2)) is not None
    world.end_allocations(list(world.ledger.holdings))
    assert placed(run(world, now=2.0)) == [2]


def test_a_gang_of_12_tasks_of_4_cores_is_refused_whole_by_10_nodes_of_6() -> None:
    world = simple_world(simple_nodes(10, cpu=6))
    made = run(world, simple_job(1, gang(12, 4)))
    assert not made.placements
    assert not world.ledger.holdings
    assert [waiting.jobs for waiting in made.waiting] == [1]
    assert placed(run(world, simple_job(2, gang(10, 4)), now=2.0)) == [2]


@pytest.mark.parametrize("order", ["forwards", "in turn"])
def test_jobs_of_one_gpu_leave_as_many_racks_whole_as_possible(order: str) -> None:
    racks, nodes, gpus = 33, 18, 4
    world = simple_world(in_racks(simple_nodes(racks * nodes, cpu=64, gpus=gpus), nodes))
    count = 5 * nodes * gpus + 1
    one = [single(TaskShape(c * 1000, 0, DeviceRequest("H100", 1))) for c in (1, 2, 3)]
    requests = [one[n % 3] if order == "in turn" else one[0] for n in range(count)]
    made = run(world, *(simple_job(n + 1, request) for n, request in enumerate(requests)))
    assert len(made.placements) == count
    used = {(task.node - 1) // nodes for p in made.placements for task in p.tasks}
    assert len(used) == 6


def test_a_rack_whose_last_job_has_ended_is_whole_again() -> None:
    world = simple_world(in_racks(simple_nodes(4, cpu=4, gpus=1), 2))
    one = single(TaskShape(1000, 0, DeviceRequest("H100", 1)))
    first = run(world, *(simple_job(n, one) for n in (1, 2, 3)))
    nodes = {p.job: p.tasks[0].node for p in first.placements}
    alone = next(p for p in first.placements if rack_of(nodes, p.job) == 1)
    assert sum((node - 1) // 2 == (nodes[alone.job] - 1) // 2 for node in nodes.values()) == 1
    others = [p for p in first.placements if p is not alone]
    world.end_allocations([alone.attempt, others[0].attempt])
    again = run(world, simple_job(4, one), now=2.0)
    assert (again.placements[0].tasks[0].node - 1) // 2 == (nodes[others[1].job] - 1) // 2


def rack_of(nodes: Mapping[JobId, int], job: JobId) -> int:
    """How many jobs are in the rack of one."""
    return sum((node - 1) // 2 == (nodes[job] - 1) // 2 for node in nodes.values())


GANGS = st.builds(
    gang,
    st.integers(2, 5),
    st.integers(1, 4),
    st.integers(0, 2),
    st.sampled_from((None, None, RACK, Topology("rack", required=False))),
)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3), st.integers(0, 3)), max_size=9),
    st.lists(GANGS, min_size=1, max_size=5),
)
@settings(max_examples=150)
def test_the_kernel_places_gangs_as_whole_columns_do(
    offers: list[tuple[int, int, int]], gangs: list[GangRequest]
) -> None:
    jobs = [simple_job(n, request) for n, request in enumerate(gangs, 1)]
    fast = planned(simple_world(racked(offers), jobs).freeze(1.0))
    with mock.patch("atoll.core.engine.line.in_kernel", return_value=False):
        slow = planned(simple_world(racked(offers), jobs).freeze(1.0))
    assert repr(fast.placements) == repr(slow.placements)


def racked(offers: list[tuple[int, int, int]]) -> list[Node]:
    """Nodes by cores, devices and rack; rack 0 is none."""
    nodes = []
    for number, (cores, devices, rack) in enumerate(offers, 1):
        node = simple_nodes(number, cpu=cores, gpus=devices)[-1]
        domains = (("block", f"b{rack // 2}"), ("rack", f"r{rack}")) if rack else ()
        nodes.append(replace(node, inventory=replace(node.inventory, domains=domains)))
    return nodes
