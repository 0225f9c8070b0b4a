"""A gang for whole nodes among small jobs that never stop coming, and whose ends nobody knows."""

from atoll.core.model.ids import JobId, job_of
from atoll.core.model.plan import TaskPlacement

from .claims import Shard, gpus, nodes, queue

HOURS = 3600.0


def crowded(order: str = "fair_share") -> tuple[Shard, list[JobId]]:
    """Eight nodes full of small jobs inside quota, but for four devices of `big`."""
    shard = Shard(nodes(8), (queue("big", 19), queue("small", 60)), order=order)
    small = [shard.submit("small", gpus(1)) for _ in range(60)]
    shard.cycle()
    shard.submit("big", gpus(4))
    shard.cycle()
    assert len(shard.running) == 61
    return shard, small


def follow(shard: Shard, small: list[JobId], *, gang: JobId, cycles: int) -> int | None:
    """Of 60 small jobs one ends and another comes, time and again; when the gang started."""
    for at in range(cycles):
        shard.now += HOURS / 4
        running = [job for job in small if job in shard.running]
        if running:
            # Those that came first end first.
            shard.end(running[0])
        small.append(shard.submit("small", gpus(1)))
        shard.cycle()
        if gang in shard.running:
            return at
    return None


def test_a_gang_of_a_queue_far_below_its_quota_gets_whole_nodes_in_the_end() -> None:
    shard, small = crowded()
    gang = shard.submit("big", gpus(8, tasks=2))
    # Inside quota it would claim its nodes; with four devices held it is not.
    assert not shard.cycle().evictions
    assert follow(shard, small, gang=gang, cycles=200) is not None


def test_without_it_the_gang_waits_as_long_as_small_jobs_come() -> None:
    shard, small = crowded("priority_fifo")
    gang = shard.submit("big", gpus(8, tasks=2))
    shard.cycle()
    assert follow(shard, small, gang=gang, cycles=200) is None


def test_nothing_is_cleared_before_the_gang_has_waited() -> None:
    shard, small = crowded()
    shard.submit("big", gpus(8, tasks=2))
    shard.cycle()
    shard.end(small[0])
    late = shard.submit("small", gpus(1))
    made = shard.cycle()
    assert not made.cleared
    assert late in shard.running


def test_nothing_is_cleared_for_a_queue_that_holds_a_quarter_of_its_quota() -> None:
    shard = Shard(nodes(8), (queue("big", 19), queue("small", 64)), order="fair_share")
    held = [shard.put("big", 1, device) for device in range(5)]
    for at in range(5, 64):
        shard.put("small", 1 + at // 8, at % 8)
    gang = shard.submit("big", gpus(8, tasks=2))
    shard.now += 25 * HOURS
    assert not shard.cycle().cleared
    shard.end(held[0])
    assert shard.cycle().cleared == (gang,)


def test_what_was_cleared_takes_work_again_once_the_gang_is_gone() -> None:
    shard, small = crowded()
    gang = shard.submit("big", gpus(8, tasks=2))
    shard.now += 25 * HOURS
    for job in small:
        if len({task.node for task in placed_on(shard, job)} & busiest(shard)):
            shard.end(job)
            break
    late = [shard.submit("small", gpus(1)) for _ in range(3)]
    made = shard.cycle()
    assert made.cleared == (gang,)
    assert not set(late) & set(shard.running)
    shard.world.remove_pending([gang])
    assert shard.world.has_work(shard.now)
    shard.cycle()
    assert len(set(late) & set(shard.running)) == 1


def placed_on(shard: Shard, job: JobId) -> tuple[TaskPlacement, ...]:
    return shard.world.ledger.holdings[shard.running[job]].tasks


def busiest(shard: Shard) -> set[int]:
    """Nodes of small jobs alone."""
    big = {task.node for task in placed_on(shard, JobId(61))}
    every = {t.node for h in shard.world.ledger.holdings.values() for t in h.tasks}
    return set(every - big)


def test_what_is_cleared_for_a_gang_is_its_own_to_claim() -> None:
    shard = Shard(nodes(8), (queue("big", 19), queue("small", 44)), order="fair_share")
    held = [shard.put("big", 8, device) for device in range(4)]
    inside = [(node, device) for node in range(3, 9) for device in range(8)][:-4]
    for node, device in inside:
        shard.put("small", node, (device + 4) % 8 if node == 8 else device)
    borrowed = [shard.put("small", node, device) for node in (1, 2) for device in range(8)]
    gang = shard.submit("big", gpus(8, tasks=2))
    shard.now += 25 * HOURS
    made = shard.cycle()
    assert made.cleared == (gang,)
    assert not made.evictions
    # Inside quota from now on; of the nodes that are cleared one holds borrowed work.
    shard.end(held[0])
    made = shard.cycle()
    assert made.cleared == (gang,)
    assert sorted(job_of(e.attempt) for e in made.evictions) == borrowed
