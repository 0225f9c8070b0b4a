"""Jobs and tasks that are kept apart, and nodes that are shunned by their labels."""

from collections import Counter
from dataclasses import replace

import pytest

from atoll.core.engine.verify import refused
from atoll.core.model.ids import NodeId
from atoll.core.model.inventory import Node
from atoll.core.model.plan import (
    GangPlacement,
    GangRequest,
    GroupRequest,
    PendingJob,
    Plan,
    request_of,
)
from atoll.core.model.reason import ReasonCode
from atoll.core.model.resources import TaskShape
from atoll.core.model.spec import AntiAffinity, JobSpec, Spread, TaskGroup
from tests.core.worlds import commit, cpus, planned, simple_job, simple_nodes, simple_world, single

CPU = TaskShape(1000, 0)


def racked(count: int, *, per_rack: int, labels: tuple[tuple[str, str], ...] = ()) -> list[Node]:
    """Nodes of 8 CPUs, so many in each rack."""
    return [
        replace(
            node,
            inventory=replace(
                node.inventory, domains=(("rack", f"r{n // per_rack}"),), labels=labels
            ),
        )
        for n, node in enumerate(simple_nodes(count))
    ]


def web(level: str = "node", *, name: str = "a/web") -> GangRequest:
    return replace(cpus(1), anti_affinity=AntiAffinity(name, level))


def jobs(count: int, request: GangRequest, first: int = 1) -> list[PendingJob]:
    return [simple_job(first + n, request) for n in range(count)]


def nodes_of(made: Plan) -> list[int]:
    return [task.node for placement in made.placements for task in placement.tasks]


def codes(made: Plan) -> set[ReasonCode]:
    return {reason.code for waiting in made.waiting for reason in waiting.reasons}


def test_jobs_of_one_name_never_share_a_node_within_a_cycle_or_over_several() -> None:
    world = simple_world(simple_nodes(3), jobs(2, web()))
    first = planned(world.freeze(0.0))
    assert len(set(nodes_of(first))) == 2
    commit(world, first)
    world.upsert_pending(jobs(2, web(), first=10))
    second = planned(world.freeze(1.0))
    assert set(nodes_of(second)) == {1, 2, 3} - set(nodes_of(first))
    assert [w.jobs for w in second.waiting] == [1]
    assert codes(second) == {ReasonCode.ANTI_AFFINITY}


def test_when_one_ends_another_takes_its_place() -> None:
    world = simple_world(simple_nodes(1), jobs(2, web()))
    made = planned(world.freeze(0.0))
    commit(world, made)
    world.note_waiting(world.freeze(0.0), planned(world.freeze(0.0)))
    assert not world.has_work()
    world.end_allocation(made.placements[0].attempt)
    assert len(planned(world.freeze(1.0)).placements) == 1


@pytest.mark.parametrize(("first", "second"), [("rack", "node"), ("node", "rack")])
def test_the_wider_of_two_levels_keeps_them_apart(first: str, second: str) -> None:
    world = simple_world(racked(4, per_rack=2), jobs(1, web(first)) + jobs(1, web(second), first=2))
    racks = {(node - 1) // 2 for node in nodes_of(planned(world.freeze(0.0)))}
    assert racks == {0, 1}
    commit(world, planned(world.freeze(0.0)))
    world.upsert_pending(jobs(1, web("rack"), first=9))
    assert codes(planned(world.freeze(1.0))) == {ReasonCode.ANTI_AFFINITY}


def test_other_names_and_jobs_without_one_share_nodes() -> None:
    names = [web(), web(name="b/web"), cpus(1)]
    world = simple_world(
        simple_nodes(1), [simple_job(n, request) for n, request in enumerate(names, start=1)]
    )
    assert nodes_of(planned(world.freeze(0.0))) == [1, 1, 1]


def test_a_name_means_jobs_of_its_queue() -> None:
    group = TaskGroup("main", 1, 1, (CPU,), "true")
    specs = [
        JobSpec("j", queue, (group,), anti_affinity=AntiAffinity("web")) for queue in ("a", "b")
    ]
    names = {request_of(spec).anti_affinity for spec in specs}
    assert names == {AntiAffinity("a/web"), AntiAffinity("b/web")}


def test_tasks_of_one_job_may_share_what_jobs_may_not() -> None:
    request = replace(web(), groups=(GroupRequest(3, 3, (CPU,)),))
    assert nodes_of(planned(simple_world(simple_nodes(2), jobs(1, request)).freeze(0.0))) == [1] * 3


def spread(count: int, level: str, most: int, *, least: int | None = None) -> GangRequest:
    return GangRequest((GroupRequest(count, least or count, (CPU,), Spread(level, most)),))


def test_a_domain_gets_no_more_tasks_than_its_bound() -> None:
    world = simple_world(racked(6, per_rack=3), jobs(1, spread(4, "rack", 2)))
    made = planned(world.freeze(0.0))
    assert Counter((node - 1) // 3 for node in nodes_of(made)) == {0: 2, 1: 2}
    assert refused(made.placements, world.ledger) == {}


def test_a_node_gets_no_more_tasks_than_its_bound() -> None:
    world = simple_world(racked(6, per_rack=3), jobs(1, spread(6, "node", 1)))
    assert sorted(nodes_of(planned(world.freeze(0.0)))) == [1, 2, 3, 4, 5, 6]


def test_too_few_domains_are_told() -> None:
    world = simple_world(racked(6, per_rack=3), jobs(1, spread(5, "rack", 2)))
    made = planned(world.freeze(0.0))
    (reason,) = made.waiting[0].reasons
    assert (made.placements, reason.code) == ((), ReasonCode.SPREAD_TOO_NARROW)
    assert (reason.needed, reason.available) == (5, 4)


def test_a_gang_that_may_start_smaller_is_spread_too() -> None:
    world = simple_world(racked(6, per_rack=3), jobs(1, spread(9, "rack", 2, least=3)))
    made = planned(world.freeze(0.0))
    assert Counter((node - 1) // 3 for node in nodes_of(made)) == {0: 2, 1: 2}


def test_every_group_has_its_own_bound() -> None:
    groups = (
        GroupRequest(2, 2, (CPU,), Spread("node", 1)),
        GroupRequest(4, 4, (TaskShape(2000, 0),)),
    )
    world = simple_world(simple_nodes(2, cpu=8), jobs(1, GangRequest(groups)))
    (placement,) = planned(world.freeze(0.0)).placements
    by_group = Counter((task.group, task.node) for task in placement.tasks)
    assert (by_group[0, NodeId(1)], by_group[0, NodeId(2)]) == (1, 1)


def moved(placement: GangPlacement, node: int) -> GangPlacement:
    return placement._replace(
        tasks=tuple(
            task._replace(node=NodeId(node), node_name=f"n{node}") for task in placement.tasks
        )
    )


def test_a_plan_that_breaks_a_bound_is_refused() -> None:
    world = simple_world(racked(6, per_rack=3), jobs(1, spread(2, "node", 1)))
    (placement,) = planned(world.freeze(0.0)).placements
    assert "in one node" in refused([moved(placement, 2)], world.ledger)[placement.job]


def test_a_plan_that_puts_jobs_too_close_is_refused() -> None:
    world = simple_world(racked(4, per_rack=2), jobs(2, web("rack")))
    first, second = planned(world.freeze(0.0)).placements
    assert refused([first, second], world.ledger) == {}
    assert second.job in refused([moved(first, 1), moved(second, 2)], world.ledger)
    commit(world, Plan(placements=(moved(first, 1),)))
    assert second.job in refused([moved(second, 2)], world.ledger)
    assert refused([moved(second, 3)], world.ledger) == {}


@pytest.mark.parametrize(
    ("shunned", "want"),
    [
        ((("zone", "a"),), [3]),
        ((("zone", "b"),), [1]),
        ((("zone", "a"), ("zone", "c")), [3]),
        ((("zone", ""),), []),
        ((("disk", ""),), [1]),
    ],
)
def test_nodes_are_shunned_by_their_labels(
    shunned: tuple[tuple[str, str], ...], want: list[int]
) -> None:
    first, second, third, *_ = (
        *racked(2, per_rack=1, labels=(("zone", "a"),)),
        *racked(3, per_rack=1, labels=(("zone", "b"),))[2:],
    )
    request = single(TaskShape(8000, 0, labels_not=shunned))
    world = simple_world([first, second, third], jobs(1, request))
    made = planned(world.freeze(0.0))
    assert nodes_of(made) == want
    if not want:
        assert codes(made) == {ReasonCode.LABELS_MISMATCH}
