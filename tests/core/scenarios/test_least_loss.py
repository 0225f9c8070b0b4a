"""On few devices no set of victims is cheaper than the one that is chosen: all sets are tried."""

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.core.engine.cycle import CycleLimits, plan
from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId, QueueName, attempt_id
from atoll.core.model.plan import RunFacts, TaskPlacement
from atoll.core.model.resources import DeviceGrant
from atoll.core.policies.registry import VICTIMS, policies
from atoll.core.state.ledger import Holding

from . import claims
from .claims import Shard, gpus, queue, stopped

DEVICES = 4


def holding(number: int, node: int, devices: range, *, started: int) -> Holding:
    grants = tuple(DeviceGrant(index, blocks=100) for index in devices)
    task = TaskPlacement(0, 0, NodeId(node), f"n{node}", 0, 0, devices=grants)
    run = RunFacts(JobId(number), started_at=float(started))
    attempt = attempt_id(JobId(number), 1)
    return Holding(attempt, QueueName("a"), ClusterName("c1"), (task,), run)


@st.composite
def filled(draw: st.DrawFn) -> tuple[int, list[Holding]]:
    nodes = draw(st.integers(1, 3))
    made: list[Holding] = []
    for node in range(1, nodes + 1):
        at = 0
        while at < DEVICES:
            size = min(draw(st.integers(1, 3)), DEVICES - at)
            if draw(st.integers(0, 4)):
                started = draw(st.integers(0, 900))
                made.append(holding(1 + len(made), node, range(at, at + size), started=started))
            at += size
    return nodes, made


@settings(max_examples=40, deadline=None)
@given(
    fleet=filled(),
    size=st.integers(1, DEVICES),
    tasks=st.integers(1, 3),
    victims=st.sampled_from(("minimal_loss", "goodput")),
)
def test_no_set_of_victims_costs_less(
    fleet: tuple[int, list[Holding]], size: int, tasks: int, victims: str
) -> None:
    nodes, held = fleet
    shard = Shard(claims.nodes(nodes, gpus=DEVICES), next_job=100)
    shard.world.add_allocations(held)
    shard.submit("a", gpus(size, tasks=tasks), priority=1)
    snapshot = shard.world.freeze(shard.now)
    made = plan(
        snapshot,
        policies(victims=victims),
        now=shard.now,
        rng=np.random.default_rng(0),
        limits=CycleLimits(max_explained=0),
    )
    slots = snapshot.running.slots()
    costs = VICTIMS[victims].costs(snapshot.running, slots, now=shard.now)
    price = dict(zip([h.attempt for h in held], costs.tolist(), strict=True))
    best = cheapest(nodes, held, price, need=(size, tasks))
    if made.placements:
        assert best == 0
    elif best is None:
        assert not made.evictions
    else:
        assert sum(price[e.attempt] for e in made.evictions) == pytest.approx(best)


def cheapest(
    nodes: int, held: list[Holding], price: dict[AttemptId, float], *, need: tuple[int, int]
) -> float | None:
    sets = chain.from_iterable(combinations(held, n) for n in range(len(held) + 1))
    fitting = (gone for gone in sets if fits(nodes, [h for h in held if h not in gone], need))
    return min((sum(price[h.attempt] for h in gone) for gone in fitting), default=None)


def fits(nodes: int, held: list[Holding], need: tuple[int, int]) -> bool:
    size, tasks = need
    left = dict.fromkeys(range(1, nodes + 1), DEVICES)
    for one in held:
        left[one.tasks[0].node] -= len(one.tasks[0].devices)
    return sum(free // size for free in left.values()) >= tasks


def test_who_borrows_most_pays_first() -> None:
    shard = Shard(claims.nodes(2), (queue("a", 4), queue("b", 4), queue("c", 8)))
    much = [shard.submit("a", gpus(1)) for _ in range(11)]
    shard.cycle()
    shard.now += 500
    little = [shard.submit("b", gpus(1)) for _ in range(5)]
    shard.cycle()
    assert len(shard.running) == 16
    shard.now += 100
    shard.submit("c", gpus(2))
    # Those of b began later, so that less would be lost; but a holds nearly thrice its share.
    made = shard.cycle()
    assert len(made.evictions) == 2
    assert set(stopped(made)) <= set(much[4:])
    assert not set(stopped(made)) & set(little)


def test_the_one_cheap_run_is_found_on_a_node_of_dear_ones() -> None:
    shard = Shard(claims.nodes(12, gpus=4))
    for device in range(3):
        shard.put("a", 12, device)
    shard.now += 50_000
    for node in range(1, 12):
        for device in range(4):
            shard.put("a", node, device)
    shard.now += 10_000
    # Without a checkpoint all that it has done is lost: nothing yet.
    young = shard.put("a", 12, 3)
    shard.submit("a", gpus(1), priority=10)
    assert stopped(shard.cycle()) == [young]
