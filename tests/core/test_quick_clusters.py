"""Of clusters with room for a job the one where it begins to run sooner comes first."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from atoll.core.engine.cycle import plan
from atoll.core.engine.verify import verify
from atoll.core.model.ids import ClusterName, NodeId
from atoll.core.model.inventory import Cluster, Node
from atoll.core.model.plan import GangRequest, GroupRequest, Plan, RunTerms
from atoll.core.model.resources import TaskShape
from atoll.core.model.spec import Spread
from atoll.core.policies.registry import policies
from atoll.core.state.boot_times import BootTimes
from atoll.core.state.world import World
from tests.core.worlds import (
    Given,
    commit,
    cpus,
    givens,
    planned,
    simple_job,
    simple_nodes,
    world_of,
)

SLOW, QUICK = ClusterName("c1"), ClusterName("c2")
BOOTS = {SLOW: 300.0, QUICK: 2.0}


def moved(node: Node) -> Node:
    return replace(node, id=NodeId(node.id + 10), cluster=QUICK)


def two(nodes: int = 2) -> World:
    """A slow cluster of nodes of 4 cores, which fit better, and a quick one of nodes of 8."""
    world = World()
    world.set_clusters([Cluster(SLOW), Cluster(QUICK)])
    world.upsert_nodes(simple_nodes(nodes, cpu=4))
    world.upsert_nodes([moved(node) for node in simple_nodes(nodes, cpu=8)])
    return world


def where(made: Plan) -> list[str]:
    return [placement.cluster for placement in made.placements]


def tried(world: World, *requests: GangRequest, objective: str = "speed") -> list[str]:
    world.upsert_pending([simple_job(n, each) for n, each in enumerate(requests, start=1)])
    snapshot = world.freeze(1.0)
    chosen, rng = policies(order="priority_fifo", objective=objective), np.random.default_rng(0)
    made = plan(snapshot, chosen, now=snapshot.now, rng=rng)
    verify(made, world.ledger)
    commit(world, made)
    return where(made)


def test_jobs_fill_the_quick_cluster_first_and_then_the_slow_one() -> None:
    assert tried(two(), cpus(4)) == [SLOW]
    world = two()
    world.set_boots(BOOTS)
    assert tried(world, *[cpus(4)] * 6) == [QUICK] * 4 + [SLOW] * 2


def test_what_fits_in_the_slow_cluster_alone_goes_there_at_once() -> None:
    world = two(1)
    world.set_boots(BOOTS)
    assert tried(world, cpus(8), cpus(4)) == [QUICK, SLOW]


@pytest.mark.parametrize("spread", [None, Spread("node", 1)])
def test_gangs_do_so_too(spread: Spread | None) -> None:
    shape = TaskShape(4000, 0)
    gang = GangRequest((GroupRequest(2, 2, (shape,), spread),))
    world = two()
    world.set_boots(BOOTS)
    found = tried(world, gang, gang, gang)
    assert found == [QUICK, QUICK, SLOW]


def test_clusters_that_boot_nearly_alike_are_alike() -> None:
    world = two()
    world.set_boots({SLOW: 14.0, QUICK: 2.0})
    assert tried(world, cpus(4)) == [SLOW]


def test_a_cluster_that_takes_no_work_is_nobodys_measure() -> None:
    world = two()
    world.set_clusters([Cluster(QUICK, cordoned=True)])
    world.set_boots(BOOTS)
    assert tried(world, cpus(4)) == [SLOW]


def test_for_goodput_quick_clusters_are_left_to_short_runs() -> None:
    short, long = (
        replace(cpus(4), terms=RunTerms(time_limit_s=limit)) for limit in (600.0, 90_000.0)
    )
    for objective, home in (("goodput", SLOW), ("speed", QUICK)):
        world = two()
        world.set_boots(BOOTS)
        assert tried(world, long, short, objective=objective) == [home, QUICK]


@given(givens())
@settings(max_examples=30, deadline=None)
def test_plans_stay_as_they_were_while_boots_are_alike(case: Given) -> None:
    plain, booted = world_of(case), world_of(case)
    booted.set_boots({SLOW: 10.0, QUICK: 3.0})
    assert planned(plain.freeze(5.0)) == planned(booted.freeze(5.0))


@given(givens())
@settings(max_examples=30, deadline=None)
def test_plans_stay_true_when_they_are_not(case: Given) -> None:
    world = world_of(case)
    world.set_boots(BOOTS)
    verify(planned(world.freeze(5.0)), world.ledger)


def test_a_median_counts_from_three_starts_on_and_moves_when_it_matters() -> None:
    boots = BootTimes()
    for seconds in (100.0, 90.0):
        boots.note(SLOW, seconds)
        assert not boots.moved()
    boots.note(SLOW, 400.0)
    assert boots.moved()
    assert boots.medians == {SLOW: 100.0}
    for _ in range(2):
        boots.note(SLOW, 110.0)
        assert not boots.moved()
    for _ in range(20):
        boots.note(SLOW, 200.0)
    assert boots.moved()
    assert boots.medians == {SLOW: 200.0}


def test_a_reservation_is_where_the_job_runs_first() -> None:
    half, hour = (replace(cpus(8), terms=RunTerms(time_limit_s=at)) for at in (1800.0, 2000.0))
    for boots, home in (({}, SLOW), (BOOTS, QUICK)):
        world = two(1)
        world.upsert_nodes(simple_nodes(1, cpu=8))
        world.set_boots(BOOTS)
        assert tried(world, hour) == [QUICK]
        world.set_boots({})
        world.upsert_pending([simple_job(2, half)])
        commit(world, planned(world.freeze(1.0)))
        world.set_boots(boots)
        world.upsert_pending([simple_job(3, half)])
        (promise,) = planned(world.freeze(1.0)).promises
        assert promise.cluster == home
