"""Borrowers who give way to each other, when the settings say so."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from atoll.core.model.ids import JobId, job_of
from atoll.core.model.job import Queue
from atoll.core.model.plan import Plan
from atoll.core.policies.fair_share import FairShareSettings

from . import claims
from .claims import Shard, gpus, queue

EVENLY = FairShareSettings(rebalance=True)


def shard_of(count: int, *queues: Queue, shares: FairShareSettings = EVENLY) -> Shard:
    return Shard(claims.nodes(count), queues, order="fair_share", shares=shares)


def submitted(shard: Shard, name: str, count: int, size: int = 1) -> list[JobId]:
    jobs = [shard.submit(name, gpus(size)) for _ in range(count)]
    shard.cycle()
    shard.now += 1000
    return jobs


def stops(shard: Shard) -> int:
    """How many were stopped until nobody is any more."""
    shard.settle()
    return sum(len(made.evictions) for made in shard.plans)


def held(shard: Shard, jobs: list[JobId]) -> int:
    return sum(job in shard.running for job in jobs)


def test_two_that_borrow_come_to_the_same_by_single_jobs() -> None:
    shard = shard_of(1, queue("a"), queue("b"))
    first = submitted(shard, "a", 8)
    second = submitted(shard, "b", 8)
    assert stops(shard) == 4
    assert (held(shard, first), held(shard, second)) == (4, 4)


def test_it_is_off_unless_it_is_asked_for() -> None:
    shard = shard_of(1, queue("a"), queue("b"), shares=FairShareSettings())
    first = submitted(shard, "a", 8)
    submitted(shard, "b", 8)
    assert stops(shard) == 0
    assert held(shard, first) == 8


def test_weights_say_what_is_even() -> None:
    shard = shard_of(1, queue("a", weight=3), queue("b"))
    first = submitted(shard, "a", 8)
    second = submitted(shard, "b", 8)
    assert stops(shard) == 2
    assert (held(shard, first), held(shard, second)) == (6, 2)


def test_a_job_that_would_tip_the_balance_the_other_way_stops_nobody() -> None:
    shard = shard_of(1, queue("a"), queue("b"))
    submitted(shard, "a", 8)
    submitted(shard, "b", 1, size=8)
    assert stops(shard) == 0


def test_no_more_is_stopped_than_starts() -> None:
    shard = shard_of(1, queue("a"), queue("b"))
    submitted(shard, "a", 2, size=4)
    submitted(shard, "b", 2)
    assert stops(shard) == 0


def test_work_inside_quota_is_let_be_and_only_what_is_above_it_counts() -> None:
    shard = shard_of(1, queue("a", 4), queue("b"))
    first = submitted(shard, "a", 8)
    second = submitted(shard, "b", 8)
    assert stops(shard) == 2
    assert (held(shard, first), held(shard, second)) == (6, 2)
    assert set(first[:4]) <= set(shard.running)


def test_teams_of_one_organisation_share_what_it_deserves() -> None:
    shard = shard_of(1, queue("org", 8), queue("org.a"), queue("org.b"), queue("other", 0))
    first = submitted(shard, "org.a", 8)
    second = submitted(shard, "org.b", 8)
    other = submitted(shard, "other", 4)
    assert stops(shard) == 4
    assert (held(shard, first), held(shard, second), held(shard, other)) == (4, 4, 0)


def test_higher_priority_does_not_give_way() -> None:
    shard = shard_of(1, queue("a"), queue("b"))
    for _ in range(8):
        shard.submit("a", gpus(1), priority=1)
    shard.cycle()
    low = submitted(shard, "b", 8)
    assert stops(shard) == 0
    assert held(shard, low) == 0


@settings(max_examples=40, deadline=None)
@given(
    deserved=st.lists(st.integers(0, 3), min_size=3, max_size=3),
    jobs=st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from((1, 1, 1, 2, 3))), min_size=4, max_size=24
    ),
)
def test_each_step_makes_the_larger_smaller_until_none_can(
    deserved: list[int], jobs: list[tuple[int, int]]
) -> None:
    names = ("a", "b", "c")
    shard = shard_of(1, *(queue(n, d) for n, d in zip(names, deserved, strict=True)))
    # By job: its queue, and its size. Those of a have the node first.
    of: dict[JobId, tuple[int, int]] = {}
    above = np.array([-each for each in deserved])
    waiting: set[JobId] = set()
    for at in range(100):
        for number, size in jobs:
            if min(number, 1) == at:
                of[shard.submit(names[number], gpus(size))] = (number, size)
        made = shard.cycle()
        for placed in made.placements:
            above[of[placed.job][0]] += 0 if placed.job in waiting else of[placed.job][1]
        waiting -= {placed.job for placed in made.placements}
        for nomination in made.nominations:
            step(above, of, made, nomination.job)
            waiting.add(nomination.job)
        if at and made.empty and not waiting:
            return
        shard.now += 0 if waiting else 3600
        shard.end_victims()
    raise AssertionError(f"still not settled; {waiting} wait for their places")


def step(
    above: NDArray[np.int64], of: dict[JobId, tuple[int, int]], made: Plan, job: JobId
) -> None:
    """Count a job with those that are stopped for it."""
    mine, size = of[job]
    ends = [of[job_of(e.attempt)] for e in made.evictions if e.for_job == job]
    before = np.maximum(above, 0)
    above[mine] += size
    for number, freed in ends:
        above[number] -= freed
    if above[mine] > 0:
        # It borrows: those who gave way are no worse off than it is, and none gave more.
        assert sum(freed for _, freed in ends) <= size
        for number, _ in ends:
            assert max(above[mine], above[number]) < max(before[mine], before[number])
