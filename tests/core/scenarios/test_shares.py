"""Queues that share: what goes wrong elsewhere."""

import pytest

from atoll.core.model.ids import QueueName, Tenant
from atoll.core.model.job import Queue

from .claims import Shard, gpus, nodes, queue, stopped


def deserving(name: str, blocks: int, **more: int) -> Queue:
    limits = (("H100", more["limit"]),) if "limit" in more else ()
    return Queue(QueueName(name), Tenant(""), deserved=(("H100", blocks),), kind_limits=limits)


def shard(count: int, *queues: Queue, gpus_per_node: int = 8) -> Shard:
    return Shard(nodes(count, gpus=gpus_per_node), queues, order="fair_share")


def test_of_two_queues_that_deserve_half_of_three_gpus_one_runs_its_job_of_two() -> None:
    world = shard(1, deserving("a", 150), deserving("b", 150), gpus_per_node=3)
    world.submit("a", gpus(2))
    world.submit("b", gpus(2))
    made = world.cycle()
    assert len(made.placements) == 1
    assert world.settle() == 0
    assert len(world.running) == 1


def test_two_queues_that_claim_their_nominal_at_once_are_not_both_admitted() -> None:
    world = shard(1, queue("a", 8), queue("b", 8))
    world.submit("a", gpus(8))
    world.submit("b", gpus(8))
    made = world.cycle()
    assert len(made.placements) == 1
    assert not made.evictions
    assert world.settle() == 0


def test_two_claims_on_one_borrower_stop_it_once_and_share_what_it_had() -> None:
    world = shard(1, queue("a", 4), queue("b", 4), queue("c"))
    borrower = world.submit("c", gpus(8))
    world.cycle()
    a, b = world.submit("a", gpus(4)), world.submit("b", gpus(4))
    assert stopped(world.cycle()) == [borrower]
    assert world.end_victims() == [borrower]
    evicted = [stopped(world.cycle()) for _ in range(4)]
    assert evicted == [[]] * 4
    assert sorted(world.running) == [a, b]


def test_who_deserves_nothing_runs_only_on_what_is_left() -> None:
    world = shard(1, queue("a", 4), queue("b", 4), queue("c"))
    first = [world.submit("c", gpus(1)) for _ in range(2)]
    later = [world.submit(name, gpus(1)) for name in "ab" for _ in range(3)]
    last = world.submit("c", gpus(1))
    made = world.cycle()
    # Eight devices: the six of those who deserve them first, though they came later.
    assert [p.job for p in made.placements] == [later[0], later[3], later[1], later[4], later[2],
                                                later[5], *first]  # fmt: skip
    assert last not in world.running


def test_within_one_cycle_queues_take_turns_by_what_they_got() -> None:
    world = shard(1, queue("a", 4), queue("b", 2), queue("c", 2))
    for name in ("a", "a", "a", "a", "a", "b", "b", "b", "c", "c", "c"):
        world.submit(name, gpus(1))
    made = world.cycle()
    by_queue = [str(p.queue) for p in made.placements]
    assert sorted(by_queue) == ["a"] * 4 + ["b"] * 2 + ["c"] * 2
    # used/deserved after each: no queue is a whole job ahead of the others.
    assert by_queue[:3] == ["a", "b", "c"]


def test_a_weight_decides_how_what_nobody_deserves_is_split() -> None:
    heavy = Queue(QueueName("heavy"), Tenant(""), weight=3.0)
    world = shard(1, heavy, queue("light"))
    for _ in range(8):
        world.submit("light", gpus(1))
        world.submit("heavy", gpus(1))
    made = world.cycle()
    by_queue = [str(p.queue) for p in made.placements]
    assert by_queue.count("heavy") == 6
    assert by_queue.count("light") == 2


def test_shares_are_compared_level_by_level() -> None:
    world = shard(1)
    for _ in range(8):
        for name in ("org.a", "org.b", "org.c", "solo"):
            world.submit(name, gpus(1))
    by_queue = [str(p.queue) for p in world.cycle().placements]
    assert by_queue.count("solo") == 4
    assert {by_queue.count(name) for name in ("org.a", "org.b", "org.c")} == {1, 2}


def test_a_parent_competes_with_its_own_jobs_as_one_more_child() -> None:
    world = shard(1)
    for _ in range(8):
        for name in ("org", "org.a", "org.b.x"):
            world.submit(name, gpus(1))
    by_queue = [str(p.queue) for p in world.cycle().placements]
    assert all(2 <= by_queue.count(name) <= 3 for name in ("org", "org.a", "org.b.x"))


@pytest.mark.parametrize("tasks", [1, 2])
def test_the_limit_of_a_kind_holds_inside_one_cycle(tasks: int) -> None:
    limited = Queue(QueueName("a"), Tenant(""), kind_limits=(("H100", 400),))
    world = shard(1, limited)
    for name in ("a", "a.x", "a.y"):
        for _ in range(3):
            world.submit(name, gpus(1, tasks=tasks))
    made = world.cycle()
    assert sum(len(p.tasks) for p in made.placements) == 4
    assert all("QUEUE_LIMIT" in str(w.reasons[0].code) for w in made.waiting)
