"""What holds for every plan, whatever the world."""

import os
import pickle
import subprocess
import sys
from collections import Counter

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from atoll.core.engine.verify import refused, verify
from atoll.core.model.plan import GangPlacement, Plan
from atoll.core.state.ledger import Ledger
from tests.core.worlds import Given, commit, givens, planned, world_of

TELL = """
import pickle, sys
from tests.core.worlds import commit, planned, world_of

for case in pickle.load(sys.stdin.buffer):
    world = world_of(case)
    first = planned(world.freeze(1.0), most=4)
    commit(world, first)
    print(first, planned(world.freeze(2.0)))
"""


@given(givens())
@settings(max_examples=150)
def test_every_plan_verifies_on_its_own_snapshot_and_no_share_has_two_owners(case: Given) -> None:
    world = world_of(case)
    for now in (1.0, 2.0, 3.0):
        made = planned(world.freeze(now), most=4)
        verify(made, world.ledger)
        commit(world, made)
    held = [task for h in world.ledger.holdings.values() for task in h.tasks]
    blocks: Counter[tuple[int, int]] = Counter()
    slices: Counter[tuple[int, int, int]] = Counter()
    for task in held:
        for grant in task.devices:
            blocks[task.node, grant.index] += grant.blocks
            bits = range(grant.slice_mask.bit_length())
            slices.update((task.node, grant.index, b) for b in bits if grant.slice_mask >> b & 1)
    assert all(count <= 100 for count in blocks.values())
    assert all(count == 1 for count in slices.values())
    # Nothing of a device is held in blocks while slices of it are.
    assert not {(node, device) for node, device, _ in slices} & set(+blocks)


@given(givens())
@settings(max_examples=150)
def test_a_gang_is_whole_or_absent_and_keeps_its_topology(case: Given) -> None:
    world = world_of(case)
    nodes = {node.id: node for node in case.nodes}
    for placement in planned(world.freeze(1.0)).placements:
        request = placement.request
        for number, group in enumerate(request.groups):
            size = sum(task.group == number for task in placement.tasks)
            assert group.min_count <= size <= group.count
        assert {nodes[task.node].cluster for task in placement.tasks} == {placement.cluster}
        if request.topology and request.topology.required:
            paths = {dict(nodes[t.node].inventory.domains)["rack"] for t in placement.tasks}
            assert request.topology.level == "rack"
            assert len(paths) == 1


@given(givens())
@settings(max_examples=150)
def test_every_task_goes_where_its_group_may_go(case: Given) -> None:
    nodes = {node.id: node for node in case.nodes}
    guards = {cluster.name: cluster.can_guard for cluster in case.clusters}
    for placement in planned(world_of(case).freeze(1.0)).placements:
        assert guards[placement.cluster] or not placement.request.needs_guard
        for number, group in enumerate(placement.request.groups):
            tasks = [task for task in placement.tasks if task.group == number]
            assert all(nodes[task.node].schedulable for task in tasks)
            labels = [set(nodes[task.node].inventory.labels) for task in tasks]
            assert any(
                all(set(shape.labels) <= each for each in labels)
                and all(task.cpu_milli == shape.cpu_milli for task in tasks)
                for shape in group.shapes
            )


@given(givens())
def test_jobs_are_placed_or_wait_with_reasons(case: Given) -> None:
    made = planned(world_of(case).freeze(1.0))
    waiting = Counter[tuple[str, object]]()
    for each in made.waiting:
        waiting[each.queue, each.request] += each.jobs
        assert each.reasons
    placed = Counter((p.queue, p.request) for p in made.placements)
    assert placed + waiting == Counter((job.queue, job.request) for job in case.jobs)


@given(givens())
def test_the_same_input_gives_the_same_plan(case: Given) -> None:
    snapshot = world_of(case).freeze(1.0)
    assert repr(planned(snapshot)) == repr(planned(snapshot))
    assert repr(planned(world_of(case).freeze(1.0))) == repr(planned(snapshot))


@given(st.lists(givens(), min_size=15, max_size=15))
@settings(max_examples=1, phases=[Phase.generate])
def test_the_plan_is_the_same_under_two_hash_seeds(cases: list[Given]) -> None:
    told = [_told(cases, hash_seed) for hash_seed in ("1", "2")]
    assert told[0] == told[1]
    assert len(told[0].splitlines()) == len(cases)


def _told(cases: list[Given], hash_seed: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", TELL],
        input=pickle.dumps(cases),
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        check=True,
        capture_output=True,
        timeout=500,
    )
    return result.stdout.decode()


@given(givens())
def test_a_placement_that_falls_out_leaves_the_others_standing(case: Given) -> None:
    world = world_of(case)
    made = planned(world.freeze(1.0))
    kept = made.placements[1:]
    assert refused(kept, world.ledger) == {}
    commit(world, Plan(placements=kept))


@given(givens())
def test_what_is_planned_twice_is_refused(case: Given) -> None:
    world = world_of(case)
    made = planned(world.freeze(1.0))
    commit(world, made)
    for placement in made.placements:
        if takes_something(placement):
            again = refused([placement] * 2, world.ledger)
            assert again == {placement.job: "the job is placed twice"}


def takes_something(placement: GangPlacement) -> bool:
    return any(task.devices for task in placement.tasks)


@given(givens())
def test_ending_everything_gives_everything_back(case: Given) -> None:
    world = world_of(case)
    before = free(world.ledger)
    made = planned(world.freeze(1.0))
    commit(world, made)
    assert world.end_allocations([p.attempt for p in made.placements]) == len(made.placements)
    assert world.end_allocations([p.attempt for p in made.placements]) == 0
    assert free(world.ledger) == before
    assert world.ledger.holdings == {}


def free(ledger: Ledger) -> list[list[int]]:
    nodes = ledger.table.nodes
    columns = (nodes.cpu_free, nodes.memory_free, nodes.blocks_free, nodes.slices)
    return [column.tolist() for column in columns]
