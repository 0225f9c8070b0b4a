"""A memo saves time and changes nothing, whatever happens between cycles."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.core.engine.cycle import CycleLimits, plan
from atoll.core.engine.memo import Memo
from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId
from atoll.core.model.inventory import Avoidance, Node
from atoll.core.model.plan import GangRequest, GroupRequest, Plan
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.policies.registry import policies
from atoll.core.state.snapshot import Snapshot
from atoll.core.state.world import World
from tests.core.worlds import (
    Given,
    commit,
    cpus,
    givens,
    nodes,
    planned,
    requests,
    simple_job,
    simple_nodes,
    simple_world,
    world_of,
)


def remembered(snapshot: Snapshot, memo: Memo) -> Plan:
    return plan(
        snapshot,
        policies(order="priority_fifo"),
        now=snapshot.now,
        rng=np.random.default_rng(0),
        limits=CycleLimits(max_placements=3),
        memo=memo,
    )


TYPICAL = (
    ((TaskShape(1000, 0, DeviceRequest("H100", 1, blocks=30)),), 3),
    ((TaskShape(4000, 0, DeviceRequest("H100", 1)),), 2),
    ((TaskShape(2000, 0, DeviceRequest("A100", 1)),), 1),
)


def steady(world: World) -> World:
    """The world, its typical tasks given: a memo lasts until those change."""
    world.workload.give(TYPICAL)
    return world


@given(givens(), st.booleans(), st.data())
@settings(max_examples=150)
def test_plans_with_a_memo_are_those_without(
    case: Given, learns: bool, data: st.DataObject
) -> None:
    world, memo = world_of(case), Memo()
    if not learns:
        steady(world)
    known = {node.id: node for node in case.nodes}
    for step in range(data.draw(st.integers(1, 8))):
        snapshot = world.freeze(float(step))
        made = remembered(snapshot, memo)
        assert repr(made) == repr(planned(snapshot, most=3))
        if data.draw(st.booleans()):
            commit(world, made)
        _happen(world, known, data, step=step)


def _happen(world: World, known: dict[NodeId, Node], data: st.DataObject, *, step: int) -> None:
    match data.draw(st.sampled_from(("node", "end", "avoid", "job", "nothing"))):
        case "node":
            number = data.draw(st.integers(1, 11))
            old = known.get(NodeId(number))
            fresh = replace(data.draw(nodes(number)), revision=old.revision + 1 if old else 1)
            known[fresh.id] = fresh
            world.upsert_nodes([fresh])
        case "end":
            held = sorted(world.ledger.holdings)
            world.end_allocations(data.draw(st.sets(st.sampled_from(held))) if held else ())
        case "avoid":
            world.set_avoidances(
                [Avoidance(ClusterName("c1"), None, "", 3, until=step + 1.5)]
                if data.draw(st.booleans())
                else []
            )
        case "job":
            request = data.draw(requests())
            world.upsert_pending([simple_job(100 + step, request)])
        case _:
            return


def test_a_memo_of_another_world_is_not_believed() -> None:
    memo = Memo()
    for cores in (8, 2):
        world = simple_world(simple_nodes(3, cpu=cores), [simple_job(1, cpus(4))])
        assert len(remembered(world.freeze(1.0), memo).placements) == (cores == 8)


def test_a_memo_drops_shapes_that_nobody_asks_for() -> None:
    memo, world = Memo(), simple_world(simple_nodes(2, cpu=1000))
    for step in range(300):
        world.upsert_pending([simple_job(step + 1, cpus(1 + step / 1000))])
        made = remembered(world.freeze(1.0), memo)
        assert [p.job for p in made.placements] == [step + 1]
        commit(world, made)
        world.end_allocations([AttemptId(a) for a in world.ledger.holdings])
        assert world.pending(JobId(step + 1)) is None
    assert len(memo._columns.number) <= 256


def test_a_memo_learns_of_more_gangs_from_cycle_to_cycle() -> None:
    memo, world = Memo(), steady(simple_world(simple_nodes(4, cpu=8)))
    for size in range(1, 12):
        request = GangRequest((GroupRequest(size, size, (TaskShape(1000 * size, 0, None),)),))
        world.upsert_pending([simple_job(10 * size + n, request) for n in range(2)])
        snapshot = world.freeze(float(size))
        assert repr(remembered(snapshot, memo)) == repr(planned(snapshot, most=3))


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 11), st.integers(1, 3)), max_size=9),
        min_size=2,
        max_size=6,
    ),
    st.data(),
)
@settings(max_examples=60)
def test_shapes_and_gangs_may_rest_and_come_again(
    cycles: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    memo, world = Memo(), steady(simple_world(simple_nodes(7, cpu=16, gpus=3)))
    for step, asked in enumerate(cycles, 1):
        world.upsert_pending([
            simple_job(100 * step + n, devices(number, size))
            for n, (number, size) in enumerate(asked)
        ])
        snapshot = world.freeze(float(step))
        made = remembered(snapshot, memo)
        assert repr(made) == repr(planned(snapshot, most=3))
        commit(world, made)
        world.remove_pending([JobId(100 * step + n) for n in range(len(asked))])
        held = sorted(world.ledger.holdings)
        ended = data.draw(st.sets(st.sampled_from(held))) if held else ()
        world.end_allocations(ended)


def test_a_column_that_rests_is_not_harmed_by_one_that_rested_longer() -> None:
    memo, world = Memo(), steady(simple_world(simple_nodes(1, cpu=8)))
    small, large = cpus(1), cpus(20)
    for step, asked in enumerate([(small, large), (small,), (large,), (small,)], 1):
        jobs = [simple_job(10 * step + n, request) for n, request in enumerate(asked)]
        world.upsert_pending(jobs)
        made = remembered(world.freeze(float(step)), memo)
        assert [p.request for p in made.placements] == [each for each in asked if each is small]
        commit(world, made)
        world.remove_pending([job.id for job in jobs])


def devices(number: int, size: int) -> GangRequest:
    """One of twelve shapes: a part of a device, or one or two whole ones, for some cores."""
    cores, form = divmod(number, 3)
    device = DeviceRequest("H100", 2 if form == 2 else 1, blocks=100 if form else 30)
    shape = TaskShape(1000 * (1 + cores), 0, device)
    return GangRequest((GroupRequest(size, size, (shape,)),))
