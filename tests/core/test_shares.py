"""What queues hold, deserve and have used, against sums made from scratch."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.core.model.ids import QueueName, Tenant
from atoll.core.model.inventory import LocalUse
from atoll.core.model.job import Queue
from atoll.core.policies.fair_tree import sibling_ranks
from atoll.core.state.mig import UNITS_PER_BLOCK, grant_units
from atoll.core.state.queue_tree import ancestry
from atoll.core.state.shares import CPU, DEVICES, HALF_LIFE_S, MEMORY, Shares, decay
from atoll.core.state.world import World
from tests.core.worlds import (
    Given,
    commit,
    givens,
    holdings,
    planned,
    simple_nodes,
    simple_world,
    world_of,
)

PATHS = ("a", "a.x", "a.x.1", "a.y", "b", "b.x", "c")


def held_by_hand(world: World, shares: Shares) -> np.ndarray:
    held = np.zeros_like(shares.held)
    nodes, models = world.ledger.table.nodes, world.ledger.table.arrays()[0]
    for holding in world.ledger.holdings.values():
        for name in (*ancestry(holding.queue), QueueName("")):
            row = held[list(shares.names).index(name)]
            for task in holding.tasks:
                row[CPU] += task.cpu_milli
                row[MEMORY] += task.memory_bytes
                for grant in task.devices:
                    model = nodes.model[world.ledger.table.row_of[task.node], grant.index]
                    row[DEVICES + models.kind[model]] += grant_units(grant)
    return held


@given(givens(), st.data())
def test_what_queues_hold_is_the_sum_of_what_is_below_them(
    case: Given, data: st.DataObject
) -> None:
    world = world_of(case)
    for now in (1.0, 2.0, 3.0):
        commit(world, planned(world.freeze(now), most=3))
        running = sorted(world.ledger.holdings)
        ended = data.draw(st.lists(st.sampled_from(running))) if running else []
        world.end_allocations(ended)
        shares = world.freeze(now + 0.5).shares
        assert np.array_equal(shares.held, held_by_hand(world, shares))


@given(givens())
def test_work_that_is_known_before_its_nodes_is_counted_by_kind_once_they_are(
    case: Given,
) -> None:
    world = world_of(case)
    made = planned(world.freeze(1.0))
    late = World()
    late.add_allocations(holdings(made))
    late.upsert_nodes(case.nodes)
    shares = late.freeze(2.0).shares
    assert np.array_equal(shares.held, held_by_hand(late, shares))


@given(
    st.lists(
        st.tuples(
            st.floats(0.1, 40 * HALF_LIFE_S), st.integers(0, 7), st.floats(1.0, 3 * HALF_LIFE_S)
        ),
        min_size=1,
        max_size=8,
    ),
    st.lists(st.floats(0.0, 50 * HALF_LIFE_S), max_size=5),
)
def test_usage_decays_the_same_however_time_is_cut(
    runs: Sequence[tuple[float, int, float]], cuts: Sequence[float]
) -> None:
    def usage(moments: set[float]) -> float:
        value, at = 0.0, 0.0
        for moment in sorted(moments):
            factor, area = decay(np.array([moment - at]), HALF_LIFE_S)
            held = sum(n for start, n, length in runs if start <= at < start + length)
            value, at = float(value * factor[0] + held * area[0]), moment
        return value

    end = 60 * HALF_LIFE_S
    edges = {end} | {s for s, _, _ in runs} | {s + length for s, _, length in runs}
    rate = math.log(2) / HALF_LIFE_S
    exact = sum(
        n * (math.exp(-rate * (end - start - length)) - math.exp(-rate * (end - start))) / rate
        for start, n, length in runs
    )
    assert usage(edges) == pytest.approx(exact, rel=1e-6, abs=1e-6)
    assert usage(edges | set(cuts)) == pytest.approx(exact, rel=1e-6, abs=1e-6)


def test_half_of_a_days_use_is_left_after_one_half_life() -> None:
    factor, area = decay(np.array([HALF_LIFE_S]), HALF_LIFE_S)
    assert factor[0] == pytest.approx(0.5)
    assert area[0] == pytest.approx(HALF_LIFE_S / (2 * math.log(2)))


@given(st.dictionaries(st.sampled_from(PATHS), st.integers(0, 9), min_size=1))
def test_a_parent_that_says_nothing_deserves_what_its_children_do(rows: dict[str, int]) -> None:
    world = simple_world(simple_nodes(1, gpus=8))
    world.set_queues([
        Queue(QueueName(name), Tenant(""), deserved=(("H100", blocks),) if blocks else ())
        for name, blocks in rows.items()
    ])
    shares = world.freeze(1.0).shares

    def by_hand(name: str) -> int:
        if rows.get(name):
            return rows[name]
        children = [n for n in map(str, shares.names) if n and n.rpartition(".")[0] == name]
        return sum(by_hand(child) for child in children)

    found = dict(zip(map(str, shares.names), shares.deserved[:, 0].tolist(), strict=False))
    assert found == {name: by_hand(name) * UNITS_PER_BLOCK for name in found}


def test_shares_are_of_what_is_schedulable_less_an_hours_mean_of_local_use() -> None:
    nodes = simple_nodes(2, gpus=4, cpu=8)
    world = simple_world(nodes)
    whole = world.freeze(0.0).shares.capacity
    assert whole[DEVICES] == 800 * UNITS_PER_BLOCK
    assert whole[CPU] == 16_000
    used = LocalUse(cpu_milli=4000, blocks=((0, 100), (1, 50)))
    busy = replace(nodes[0], inventory=replace(nodes[0].inventory, local_use=used), revision=2)
    world.upsert_nodes([busy])
    assert world.freeze(0.0).shares.capacity[DEVICES] == 800 * UNITS_PER_BLOCK
    after = world.freeze(3600.0).shares.capacity
    part = 1 - math.exp(-1)
    assert after[DEVICES] == pytest.approx((800 - 150 * part) * UNITS_PER_BLOCK)
    assert after[CPU] == pytest.approx(16_000 - 4000 * part)
    world.suspect_nodes([(nodes[1].id, 5)])
    world.remove_nodes([nodes[0].id])
    assert world.freeze(3600.0).shares.capacity[CPU] <= 8000


@given(
    st.lists(st.integers(0, 3), max_size=12),
    st.data(),
)
def test_siblings_are_ranked_by_use_for_their_weight(up: list[int], data: st.DataObject) -> None:
    parent = np.array([-1, *(min(back, at) for at, back in enumerate(up))], np.int64)
    size = len(parent)
    used = np.array(
        data.draw(st.lists(st.sampled_from((0.0, 1.0, 2.0)), min_size=size, max_size=size))
    )
    weight = np.array(
        data.draw(st.lists(st.sampled_from((0.5, 1.0)), min_size=size, max_size=size))
    )
    ranks = sibling_ranks(parent, used, weight)
    for vertex in range(size):
        siblings = np.flatnonzero(parent == parent[vertex])
        less = (used[siblings] / weight[siblings] < used[vertex] / weight[vertex]).sum()
        assert ranks[vertex] == less / max(len(siblings) - 1, 1)
