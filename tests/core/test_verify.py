"""The check before a commit catches every way in which a plan can be wrong."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from atoll.core.engine.verify import refused, verify
from atoll.core.model.errors import DomainError, ErrorCode
from atoll.core.model.ids import ClusterName, NodeId, attempt_id
from atoll.core.model.plan import GangPlacement, GangRequest, GroupRequest, Plan, TaskPlacement
from atoll.core.model.resources import DeviceGrant, DeviceRequest, TaskShape
from atoll.core.model.spec import Topology
from atoll.core.state.world import World
from tests.core.worlds import commit, planned, simple_job, simple_nodes, simple_world, single

PAIR = GangRequest((GroupRequest(2, 2, (TaskShape(1000, 0, DeviceRequest("H100", 1)),)),))
HALF = single(TaskShape(1000, 0, DeviceRequest("H100", 1, blocks=50)))


def world() -> World:
    return simple_world(simple_nodes(2, gpus=2), [simple_job(1, PAIR), simple_job(2, HALF)])


def pair(made: Plan) -> GangPlacement:
    return next(p for p in made.placements if p.job == 1)


def with_task(placement: GangPlacement, **changes: object) -> GangPlacement:
    first, *rest = placement.tasks
    return placement._replace(tasks=(first._replace(**changes), *rest))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Case:
    name: str
    spoil: Callable[[GangPlacement], GangPlacement]
    why: str


CASES = [
    Case("a gang is not whole", lambda p: p._replace(tasks=p.tasks[:1]), "not whole"),
    Case("ranks are wrong", lambda p: with_task(p, rank=5), "ranks"),
    Case("a task is of no group", lambda p: with_task(p, group=1), "no group"),
    Case(
        "the attempt is another job's",
        lambda p: p._replace(attempt=attempt_id(simple_job(7, HALF).id, 1)),
        "another job's",
    ),
    Case("a node is not known", lambda p: with_task(p, node=NodeId(99)), "not known"),
    Case("a cluster is wrong", lambda p: p._replace(cluster=ClusterName("c2")), "another cluster"),
    Case("it takes less CPU than asked", lambda p: with_task(p, cpu_milli=1), "asks for"),
    Case("it lacks a device", lambda p: with_task(p, devices=()), "asks for"),
    Case(
        "a share instead of a device",
        lambda p: with_task(p, devices=(DeviceGrant(0, blocks=50),)),
        "asks for",
    ),
    Case(
        "a device that is not there",
        lambda p: with_task(p, devices=(DeviceGrant(7, blocks=100),)),
        "does not exist",
    ),
    Case(
        "two tasks on one device",
        lambda p: p._replace(tasks=tuple(_on_first(task, p) for task in p.tasks)),
        "two owners",
    ),
    Case(
        "a required rack that is not there",
        lambda p: p._replace(request=replace(p.request, topology=Topology("rack"))),
        "rack",
    ),
]


def _on_first(task: TaskPlacement, placement: GangPlacement) -> TaskPlacement:
    first = placement.tasks[0]
    return task._replace(node=first.node, node_name=first.node_name, devices=first.devices)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_wrong_placement_is_refused_and_the_others_stand(case: Case) -> None:
    books = world()
    made = planned(books.freeze(1.0))
    verify(made, books.ledger)
    spoiled = tuple(case.spoil(p) if p.job == 1 else p for p in made.placements)
    found = refused(spoiled, books.ledger)
    assert list(found) == [1]
    assert case.why in found[simple_job(1, PAIR).id]
    with pytest.raises(DomainError) as error:
        verify(Plan(placements=spoiled), books.ledger)
    assert error.value.code is ErrorCode.PLAN_INVALID


def test_a_plan_on_capacity_that_is_gone_is_refused() -> None:
    books = world()
    made = planned(books.freeze(1.0))
    books.upsert_nodes([replace(n, revision=2) for n in simple_nodes(2, gpus=2, cpu=0)])
    assert set(refused(made.placements, books.ledger)) == {1, 2}


def test_a_plan_on_what_another_took_meanwhile_is_refused() -> None:
    books = world()
    made = planned(books.freeze(1.0))
    other = replace(simple_job(3, PAIR), priority=1)
    books.upsert_pending([other])
    first = planned(books.freeze(2.0), most=1)
    assert [p.job for p in first.placements] == [3]
    commit(books, first)
    again = refused(made.placements, books.ledger)
    assert set(again) <= {1, 2}
    assert again


def test_verifying_changes_nothing() -> None:
    books = world()
    made = planned(books.freeze(1.0))
    before = books.ledger.table.nodes.blocks_free.tolist()
    verify(made, books.ledger)
    assert books.ledger.table.nodes.blocks_free.tolist() == before
    assert pair(made).tasks
